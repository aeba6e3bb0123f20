// Sizes: the sizes of keys, values and records. Common ones are constants, so that loops over records are compiled for them. All is local to the file that
// includes this, since each file may be compiled for other CPUs.
#pragma once
#include "batch/shape.h"

namespace batch {
namespace {

class AnySizes {
 public:
  explicit AnySizes(const Shape& shape) : shape_(shape) {}
  uint32_t key_bytes() const { return shape_.key_bytes; }
  uint32_t value_bytes() const { return shape_.value_bytes; }
  uint32_t record_bytes() const { return shape_.record_bytes(); }
  static bool fit(const Shape&) { return true; }

 private:
  Shape shape_;
};

template <uint32_t kKeyBytes, uint32_t kRecordBytes>
class FixedSizes {
 public:
  explicit FixedSizes(const Shape&) {}
  static constexpr uint32_t key_bytes() { return kKeyBytes; }
  static constexpr uint32_t value_bytes() { return kRecordBytes - kKeyBytes; }
  static constexpr uint32_t record_bytes() { return kRecordBytes; }
  static bool fit(const Shape& shape) {
    return shape.key_bytes == kKeyBytes && shape.record_bytes() == kRecordBytes;
  }
};

// Calls set() with the first of these Sizes that fits the shape. False: none fits.
template <class... Sizes, class Set>
bool with_sizes(const Shape& shape, Set set) {
  return ((Sizes::fit(shape) && (set(Sizes(shape)), true)) || ...);
}
template <class Set>
bool with_common_sizes(const Shape& shape, Set set) {
  return with_sizes<FixedSizes<4, 8>, FixedSizes<4, 16>, FixedSizes<8, 16>, FixedSizes<8, 32>,
                    FixedSizes<16, 32>, FixedSizes<8, 64>, FixedSizes<16, 64>>(shape, set);
}

}  // namespace
}  // namespace batch
