#include "sys/write_watch.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>

#include "base/bits.h"
#include "base/ids.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/page_scan.h"

namespace sys {
namespace {

base::Expected<void> refused(const char* what, long result) {
  return base::failure(static_cast<int>(-result), "the kernel does not say which pages were written (", what,
                       "): ", base::error_name(static_cast<int>(-result)));
}

uint64_t address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

}  // namespace

base::Expected<void> WriteWatch::open() {
  const long fault = syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly);
  if (failed(fault)) return refused("userfaultfd", fault);
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = kAsynchronousProtection;
  const long agreed = syscall(SYS_ioctl, fault, UFFDIO_API, &api);
  const long page_map =
      failed(agreed) ? agreed : syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (failed(page_map)) {
    syscall(SYS_close, fault);
    return refused(failed(agreed) ? "write protection" : "/proc/self/pagemap", page_map);
  }
  int pair[2] = {static_cast<int>(fault), static_cast<int>(page_map)};
  if (auto owned = own_descriptor_pair(pair); !owned) return owned;
  fault_descriptor_ = pair[0];
  page_map_descriptor_ = pair[1];
  return {};
}

void WriteWatch::close() {
  if (!is_open()) return;
  close_own_descriptor(fault_descriptor_);
  close_own_descriptor(page_map_descriptor_);
  fault_descriptor_ = page_map_descriptor_ = -1;
}

base::Expected<void> WriteWatch::add(const void* memory, uint64_t bytes) {
  uffdio_register range = {};
  range.range = {address(memory), bytes};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  if (long result = syscall(SYS_ioctl, fault_descriptor_, UFFDIO_REGISTER, &range); failed(result))
    return refused("a range", result);
  // Some kernels protect memory but cannot be asked about it.
  PageScan scan = {};
  scan.flags = kScanRefusesUnprotectable;
  scan.begin = address(memory);
  scan.end = address(memory) + base::kOsPageBytes;
  scan.category_mask = scan.return_mask = kPagePresent;
  if (long result = scan_pages(page_map_descriptor_, scan); failed(result)) return refused("a scan", result);
  return {};
}

bool WriteWatch::protect(const void* memory, uint64_t bytes) {
  uffdio_writeprotect range = {};
  range.range = {address(memory), bytes};
  range.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  return !failed(syscall(SYS_ioctl, fault_descriptor_, UFFDIO_WRITEPROTECT, &range));
}

void WriteWatch::find_untouched(const void* memory, uint64_t page_count, uint64_t* untouched) const {
  for (uint64_t word = 0; word < (page_count + 63) / 64; ++word) untouched[word] = 0;
  constexpr uint64_t kRegions = 16;
  PageRegion regions[kRegions];
  PageScan scan = {};
  scan.flags = kScanRefusesUnprotectable;
  scan.begin = address(memory);
  scan.end = address(memory) + page_count * base::kOsPageBytes;
  scan.regions = address(regions);
  scan.region_count = kRegions;
  scan.category_inverted = kPageWritten;
  scan.category_mask = kPageWritten | kPagePresent;  // present, and not written
  scan.return_mask = kPagePresent;
  while (scan.begin < scan.end) {
    const long count = scan_pages(page_map_descriptor_, scan);
    if (failed(count)) return;
    for (long i = 0; i < count; ++i) {
      for (uint64_t at = regions[i].begin; at < regions[i].end; at += base::kOsPageBytes) {
        const uint64_t page = (at - address(memory)) / base::kOsPageBytes;
        base::set_bit(untouched, page);
      }
    }
    if (scan.walk_end <= scan.begin) return;
    scan.begin = scan.walk_end;
  }
}

}  // namespace sys
