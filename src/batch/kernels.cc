// The kernels for every CPU, and choose_kernels().
#include "batch/kernels.h"

#include "batch/kernels_inside.h"

namespace batch {
namespace {

// Compares the keys of all slots of a bucket.
template <class Sizes>
class WholeLayout : public Sizes {
 public:
  explicit WholeLayout(const Shape& shape) : Sizes(shape), slots_(shape.slots()) {}

  uint64_t matches(const std::byte* bucket, const Key& key) const {
    uint64_t found = 0;
    for (uint32_t slot = 0; slot < slots_; ++slot)
      found |= uint64_t{load_key(bucket + slot * Sizes::record_bytes(), Sizes::key_bytes()) == key} << slot;
    return found;
  }
  [[clang::no_sanitize("thread")]] uint64_t tag_matches(const uint8_t* tags, uint8_t tag) const {
    uint64_t found = 0;
    for (uint32_t slot = 0; slot < slots_; ++slot) found |= uint64_t{tags[slot] == tag} << slot;
    return found;
  }

 protected:
  const uint32_t slots_;
};

// Stops at the first record that has the key.
template <class Sizes>
class LinearLayout : public WholeLayout<Sizes> {
 public:
  using WholeLayout<Sizes>::WholeLayout;

  uint64_t matches(const std::byte* bucket, const Key& key) const {
    for (uint32_t slot = 0; slot < this->slots_; ++slot)
      if (load_key(bucket + slot * Sizes::record_bytes(), Sizes::key_bytes()) == key)
        return uint64_t{1} << slot;
    return 0;
  }
};

}  // namespace

Kernels choose_kernels(const Shape& shape) {
  Kernels kernels;
  const auto set = [&]<class Sizes>(Sizes) {
    set_linear<LinearLayout<Sizes>>(kernels);
    set_kernels<WholeLayout<Sizes>>(kernels);
  };
  if (!with_common_sizes(shape, set)) with_sizes<AnySizes>(shape, set);
  if (__builtin_cpu_supports("avx2")) choose_avx2_kernels(shape, kernels);
  return kernels;
}

}  // namespace batch
