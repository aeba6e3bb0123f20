#include "sys/resident.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>

#include "base/ids.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/page_scan.h"

namespace sys {
namespace {

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

// Of newer kernels than the system's headers may be.
constexpr uint64_t kIsShared = 8;       // PROCMAP_QUERY_VMA_SHARED
constexpr uint64_t kThisOrNext = 0x10;  // PROCMAP_QUERY_COVERING_OR_NEXT_VMA
struct MapQuery {                       // struct procmap_query
  uint64_t size, query_flags, address, map_begin, map_end, map_flags, page_bytes, offset, inode;
  uint32_t device_major, device_minor, name_bytes, build_id_bytes;
  uint64_t name, build_id;
};
static_assert(sizeof(MapQuery) == 104);

// The mapping of `address`, or the next above. Returns 0 or -errno: ENOENT when there is none.
long query_map(int maps, uint64_t address, MapQuery& query) {
  constexpr unsigned long kQuery = _IOWR('f', 17, MapQuery);  // PROCMAP_QUERY
  query = {};
  query.size = sizeof query;
  query.query_flags = kThisOrNext;
  query.address = address;
  return syscall(SYS_ioctl, maps, kQuery, &query);
}

PageScan scan_of(uint64_t begin, uint64_t end, PageRegion* regions, uint64_t count) {
  PageScan scan = {};
  scan.begin = begin;
  scan.end = end;
  scan.regions = reinterpret_cast<uint64_t>(regions);
  scan.region_count = count;
  scan.category_mask = scan.return_mask = kPagePresent;
  return scan;
}

// In registered memory a fault brings in no more than it needs. Mappings of files can be registered for asynchronous write
// protection only; nothing here protects any page, so nobody is ever notified.
int open_faults() {
  const long fault = syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly);
  if (failed(fault)) return -1;
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = kAsynchronousProtection;
  if (!failed(syscall(SYS_ioctl, fault, UFFDIO_API, &api)))
    if (auto owned = own_descriptor(static_cast<int>(fault))) return *owned;
  syscall(SYS_close, fault);
  return -1;
}

}  // namespace

uint64_t resident_bytes_of(const void* address, uint64_t bytes) {
  unsigned char in_memory[4096];
  const auto* at = static_cast<const char*>(address);
  uint64_t pages = 0;
  for (uint64_t left = bytes / base::kOsPageBytes; left > 0;) {
    const uint64_t some = left < sizeof in_memory ? left : sizeof in_memory;
    const bool told = !failed(syscall(SYS_mincore, at, some * base::kOsPageBytes, in_memory));
    for (uint64_t i = 0; i < some; ++i) pages += told ? in_memory[i] & 1u : 1u;
    at += some * base::kOsPageBytes;
    left -= some;
  }
  return pages * base::kOsPageBytes;
}

base::Expected<void> ResidentFiles::open() {
  constexpr const char* kPaths[] = {"/proc/self/status", "/proc/self/pagemap", "/proc/self/maps"};
  int* const places[] = {&own_.status, &own_.page_map, &own_.maps};
  for (int i = 0; i < 3; ++i) {
    const long opened = syscall(SYS_openat, AT_FDCWD, kPaths[i], O_RDONLY | O_CLOEXEC);
    auto owned = failed(opened) ? base::failure(static_cast<int>(-opened), kPaths[i], ": ",
                                                base::error_name(static_cast<int>(-opened)))
                                : own_new_descriptor(opened);
    if (!owned) {
      close();
      return std::unexpected(owned.error());
    }
    *places[i] = *owned;
  }
  own_.faults = open_faults();
  MapQuery query = {};
  knows_shared_ = query_map(own_.maps, reinterpret_cast<uint64_t>(&query), query) == 0;
  return {};
}

void ResidentFiles::close() {
  for (int* descriptor : {&own_.status, &own_.page_map, &own_.maps, &own_.faults}) {
    if (*descriptor >= 0) close_own_descriptor(*descriptor);
    *descriptor = -1;
  }
}

uint64_t ResidentFiles::all_bytes() const { return number_in_file(own_.status, "\nRssFile:") * 1024; }

uint64_t ResidentFiles::count_bytes(uint64_t begin, uint64_t end, uint64_t unknown) const {
  constexpr uint64_t kRegions = 256;
  PageRegion regions[kRegions];
  PageScan scan = scan_of(begin, end, regions, kRegions);
  uint64_t bytes = 0;
  while (scan.begin < end) {
    const long count = scan_pages(own_.page_map, scan);
    if (failed(count)) return unknown;
    for (long i = 0; i < count; ++i) bytes += regions[i].end - regions[i].begin;
    if (scan.walk_end <= scan.begin) break;
    scan.begin = scan.walk_end;
  }
  return bytes;
}

uint64_t ResidentFiles::find(uint64_t begin, uint64_t end) const {
  PageRegion region;
  PageScan scan = scan_of(begin, end, &region, 1);
  scan.page_limit = 1;
  const long count = scan_pages(own_.page_map, scan);
  if (failed(count)) return begin;
  return count == 0 ? end : region.begin;
}

void ResidentFiles::bring_single_pages(uint64_t begin, uint64_t end) const {
  syscall(SYS_madvise, begin, end - begin, MADV_NOHUGEPAGE);
  if (own_.faults < 0) return;
  uffdio_register range = {};
  range.range = {begin, end - begin};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  syscall(SYS_ioctl, own_.faults, UFFDIO_REGISTER, &range);
}

void ResidentFiles::let_move(uint64_t begin, uint64_t end) const {
  const uffdio_range range = {begin, end - begin};
  if (own_.faults >= 0) syscall(SYS_ioctl, own_.faults, UFFDIO_UNREGISTER, &range);
}

void ResidentFiles::take_out(uint64_t begin, uint64_t end) const {
  MapQuery query;
  while (begin < end) {
    if (query_map(own_.maps, begin, query) != 0) return;
    const uint64_t from = query.map_begin > begin ? query.map_begin : begin;
    const uint64_t to = query.map_end < end ? query.map_end : end;
    if (from < to && (query.map_flags & kIsShared) != 0) syscall(SYS_madvise, from, to - from, MADV_DONTNEED);
    begin = query.map_end;
  }
}

void ResidentFiles::advise_out(uint64_t begin, uint64_t end) {
  syscall(SYS_madvise, begin, end - begin, MADV_PAGEOUT);
}

}  // namespace sys
