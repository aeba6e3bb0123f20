// AllMappings: while it exists, the process has as many mappings as the kernel allows, so that the kernel cannot split any of them.
// Meanwhile tests must do as little as possible: memory that they allocate may need a mapping, too.
#pragma once
#include <sys/mman.h>

#include <cstdint>

#include "base/check.h"
#include "base/ids.h"

namespace cache {

class AllMappings {
 public:
  AllMappings() {
    void* const memory = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    memory_ = static_cast<char*>(memory);
    // Every second OS page is a mapping of its own, and so is each page between two of them.
    for (uint64_t at = base::kOsPageBytes; at < kBytes && !are_all_; at += 2 * base::kOsPageBytes)
      are_all_ = mprotect(memory_ + at, base::kOsPageBytes, PROT_READ) != 0;
  }
  AllMappings(const AllMappings&) = delete;
  ~AllMappings() {
    mprotect(memory_, kBytes, PROT_NONE);  // one mapping again, so that mappings can be split
    munmap(memory_, kBytes);
  }

  // False: the kernel allows more than kMax.
  bool are_all() const { return are_all_; }

 private:
  static constexpr uint64_t kMax = uint64_t{1} << 17;
  static constexpr uint64_t kBytes = kMax * base::kOsPageBytes;

  char* memory_ = nullptr;
  bool are_all_ = false;
};

}  // namespace cache
