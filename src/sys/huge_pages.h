// Huge pages for memory that is accessed at random: an access then misses in the CPU's cache only, and not in its TLB as
// well. The frames of spilled memory are in a memory file, which takes another call than a process's private memory.
#pragma once
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>

#include "sys/kernel.h"

namespace sys {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Asks for huge pages for [address, address + bytes), both multiples of kHugePageBytes. Where the system has none, nothing
// changes.
inline void prefer_huge_pages(void* address, size_t bytes) {
  syscall(SYS_madvise, address, bytes, MADV_HUGEPAGE);
}

// Backs [address, address + kHugePageBytes) of a shared mapping of a memory file with one huge page. Returns false where there is
// none, or the kernel does not do so (before Linux 6.1); then a part of the range may have memory, of zeros. REQUIRES: the range
// holds nothing but zeros; address and the offset in the file are multiples of kHugePageBytes; no userfaultfd watches it. Cost: 2
// to 3 ms, most of it zeroing.
inline bool fill_huge_page(void* address) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, of newer kernels than the headers may be
  // The kernel does not collapse a range that has no memory at all.
  *static_cast<volatile char*>(address) = 0;
  return syscall(SYS_madvise, address, kHugePageBytes, kCollapse) == 0;
}

}  // namespace sys
