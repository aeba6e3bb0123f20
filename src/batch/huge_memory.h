// HugeMemory: memory filled with zeros, in large OS pages if the system has some.
#pragma once
#include <utility>

#include "base/error.h"
#include "base/ids.h"
#include "sys/huge_pages.h"
#include "sys/memory.h"

namespace batch {

class HugeMemory {
 public:
  static constexpr uint64_t kMax = uint64_t{1} << 47;  // of an address space

  HugeMemory() = default;
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;
  ~HugeMemory() { close(); }

  // Takes at least `bytes` bytes, which begin at a large page. Errors: ENOMEM. REQUIRES: not open.
  base::Expected<void> open(uint64_t bytes, const char* purpose) {
    if (bytes > kMax) return base::failure(ENOMEM, "no memory for ", purpose, ": ", bytes, " bytes");
    const uint64_t rounded = base::round_up(bytes, sys::kHugePageBytes);
    // One page more than needed, so that it can begin at a page's boundary.
    auto mapped = sys::map_anonymous(rounded + sys::kHugePageBytes, purpose);
    if (!mapped) return std::unexpected(mapped.error());
    bytes_ = rounded;
    mapped_ = *mapped;
    begin_ = mapped_ + (-reinterpret_cast<uintptr_t>(mapped_) & (sys::kHugePageBytes - 1));
    sys::prefer_huge_pages(begin_, bytes_);
    return {};
  }
  void close() {
    sys::unmap(mapped_, bytes_ + sys::kHugePageBytes);
    mapped_ = nullptr;
    bytes_ = 0;
  }
  void swap(HugeMemory& other) {
    std::swap(mapped_, other.mapped_);
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
  }

  template <class T>
  T* at(uint64_t offset_bytes) const {
    return reinterpret_cast<T*>(begin_ + offset_bytes);
  }
  uint64_t bytes() const { return bytes_; }
  bool is_open() const { return mapped_ != nullptr; }

 private:
  char* mapped_ = nullptr;
  char* begin_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace batch
