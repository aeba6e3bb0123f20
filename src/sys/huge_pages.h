// Large OS pages behind memory that is looked into at random: a miss in it is then one of the cache, not of the address
// translation too. What is linked into programs has none: memory that comes and goes page by page gains nothing by them.
#pragma once
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>

#include "sys/kernel.h"

namespace sys {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Asks for large pages behind [address, address + bytes), multiples of kHugePageBytes. Where the system has none, the memory is
// what it was.
inline void prefer_huge_pages(void* address, size_t bytes) {
  syscall(SYS_madvise, address, bytes, MADV_HUGEPAGE);
}

}  // namespace sys
