// The page map's scan (PAGEMAP_SCAN, Linux 6.7), and the asynchronous write protection of userfaultfd, whose state it reports: declared here, since the
// system's headers may have neither.
#pragma once
#include <linux/ioctl.h>

#include <cstdint>

#include "sys/kernel.h"

namespace sys {

inline constexpr uint64_t kPageWritten = uint64_t{1} << 1;               // PAGE_IS_WRITTEN
inline constexpr uint64_t kPagePresent = uint64_t{1} << 3;               // PAGE_IS_PRESENT
inline constexpr uint64_t kScanRefusesUnprotectable = uint64_t{1} << 1;  // PM_SCAN_CHECK_WPASYNC

// What is asked of userfaultfd: that the kernel lifts the protection at the first store, and notifies nobody; for shared memory and mappings of files, too.
inline constexpr uint64_t kUserModeOnly = 1;                          // UFFD_USER_MODE_ONLY
inline constexpr uint64_t kLiftsByItself = uint64_t{1} << 15;         // UFFD_FEATURE_WP_ASYNC
inline constexpr uint64_t kProtectsSharedMemory = uint64_t{1} << 12;  // UFFD_FEATURE_WP_HUGETLBFS_SHMEM
inline constexpr uint64_t kAsynchronousProtection = kLiftsByItself | kProtectsSharedMemory;

struct PageRegion {
  uint64_t begin, end, categories;
};
struct PageScan {  // struct pm_scan_arg
  uint64_t size, flags, begin, end, walk_end, regions, region_count, page_limit;
  uint64_t category_inverted, category_mask, category_any, return_mask;
};
static_assert(sizeof(PageScan) == 96);

// How many regions were found, or -errno; walk_end says how far it got. `page_map`: /proc/self/pagemap.
inline long scan_pages(int page_map, PageScan& scan) {
  constexpr unsigned long kScan = _IOWR('f', 16, PageScan);  // PAGEMAP_SCAN
  scan.size = sizeof scan;
  return syscall(SYS_ioctl, page_map, kScan, &scan);
}

}  // namespace sys
