// Large OS pages for memory that is accessed at random: a miss there is then one of the cache only, and not of the address
// translation as well. The frames of spilled memory are in a memory file, which takes another call than a process's own memory.
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

// Gives [address, address + kHugePageBytes) of a shared mapping of a memory file memory, as one large page. Returns false where
// there is none, or the kernel does not do so (before Linux 6.1); then a part of it may have memory, of zeros. REQUIRES: nothing
// but zeros is there; address and the offset in the file are multiples of kHugePageBytes; no userfaultfd watches it. Cost: 2 to 3
// ms, most of it zeroing.
inline bool fill_huge_page(void* address) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, of newer kernels than the headers may be
  // The kernel does not collapse what has no memory at all.
  *static_cast<volatile char*>(address) = 0;
  return syscall(SYS_madvise, address, kHugePageBytes, kCollapse) == 0;
}

}  // namespace sys
