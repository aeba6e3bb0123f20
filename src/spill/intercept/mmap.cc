// mmap and munmap: spilled are private anonymous mappings that can be read and written, or cannot be accessed yet, and
// mappings of files that file_maps.h takes; everything else (other files, shared, executable, stacks) is the kernel's, as natively.
#include "spill/discard.h"
#include "spill/intercept/maps.h"
#include "spill/mapped_pages.h"
#include "spill/next.h"
#include "spill/shared_maps.h"

namespace spill {
namespace {

constexpr size_t kSmallestSpilledMap = 64 * 1024;

bool is_large_enough(size_t bytes) {
  const uint64_t least =
      runtime.options.min_alloc > kSmallestSpilledMap ? runtime.options.min_alloc : kSmallestSpilledMap;
  return runtime.options.spill_all != 0 || bytes >= least;
}

bool is_spilled_kind(size_t bytes, int protection, int flags) {
  constexpr int kPlainFlags =
      MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_STACK | MAP_GROWSDOWN | MAP_LOCKED | MAP_HUGETLB | MAP_32BIT;
  if ((flags & MAP_ANONYMOUS) == 0 || (flags & MAP_TYPE) != MAP_PRIVATE || (flags & kPlainFlags) != 0)
    return false;
  if (protection != (PROT_READ | PROT_WRITE) && protection != PROT_NONE) return false;
  return runtime.started.load(std::memory_order_acquire) && is_large_enough(bytes);
}

// For mappings of files, and for those that are left to the kernel; neither count as allocated.
void count_live(uint64_t bytes) { base::statistics.spill_live_bytes.add(bytes); }

void* map_file_through_cache(size_t bytes, int protection, int flags, int file, off_t offset) {
  if (bytes == 0 || (flags & MAP_ANONYMOUS) != 0 || !is_large_enough(bytes) ||
      !runtime.started.load(std::memory_order_acquire))
    return nullptr;
  const uint64_t address = map_file(bytes, protection, flags, file, offset);
  if (address != 0) count_live(base::round_up(bytes, base::kOsPageBytes));
  return reinterpret_cast<void*>(address);
}

// For MAP_FIXED: allocates those of the spilled addresses that are free. False, with errno, if that is impossible: EINVAL if
// it is no range of OS pages; ENOMEM for globals, file maps and addresses beyond the range. `count` counts the bytes that it allocated.
bool take_fixed(uint64_t begin, size_t bytes, void (*count)(uint64_t)) {
  if (begin % base::kOsPageBytes != 0 || bytes == 0) {
    errno = EINVAL;
    return false;
  }
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  bool possible = !is_too_large(bytes) && begin >= kRangeBegin && begin < kRangeEnd &&
                  length <= kRangeEnd - begin && !is_file_map(begin) &&
                  file_map_end(begin, begin + length) == begin + length;
  for (uint64_t at = begin; possible && at < begin + length;) {
    const uint64_t end = same_allocation_end(at, begin + length);
    if (!is_allocated(at)) {
      possible = take_addresses_at(at, end - at);
      if (possible) count(end - at);
    }
    at = end;
  }
  if (!possible) errno = ENOMEM;
  return possible;
}

// MAP_FIXED of anything else: the kernel's mapping replaces spilled memory.
void* map_fixed_by_kernel(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  if (!take_fixed(begin, bytes, count_live)) return MAP_FAILED;
  end_kept(begin, length);
  if (keeps_any(begin, length)) return no_map();
  struct Call {
    void* address;
    size_t bytes;
    int protection, flags, file;
    off_t offset;
  } call = {address, bytes, protection, flags, file, offset};
  const bool mapped = give_to_kernel(
      begin, length,
      [](void* context) {
        const Call& c = *static_cast<Call*>(context);
        return mmap(c.address, c.bytes, c.protection, c.flags, c.file, c.offset) != MAP_FAILED;
      },
      &call);
  if (!mapped) return MAP_FAILED;
  discard_memory(begin, length);
  return address;
}

// Mappings that the runtime leaves to the kernel.
void* map_by_kernel(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if ((flags & MAP_FIXED) != 0) forget_shared_maps(address, bytes);
  void* mapped = mmap(address, bytes, protection, flags, file, offset);
  if (mapped != MAP_FAILED && is_large_enough(bytes)) note_shared_map(mapped, bytes, flags, file);
  return mapped;
}

// MAP_FIXED at spilled addresses.
void* map_over(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  // A file map's addresses stay the kernel's; those of another mapping of the kernel's are spilled memory again.
  if (bytes != 0 && in_range(begin) && begin % base::kOsPageBytes == 0 && is_file_map(begin) &&
      kernel_kind(begin, base::round_up(bytes, base::kOsPageBytes)) == FileMapKind::kPlain)
    return mmap(address, bytes, protection, flags, file, offset);
  constexpr int kHarmless = MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK;
  const bool spilled_kind =
      (protection & ~kAllAccess) == 0 && (flags & ~kHarmless) == (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
  return spilled_kind ? map_fixed(address, bytes, protection_of_flags(protection))
                      : map_fixed_by_kernel(address, bytes, protection, flags, file, offset);
}

// MAP_FIXED_NOREPLACE at spilled addresses: none of them may be allocated yet.
void* map_where_nothing_is(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  const bool aligned = begin % base::kOsPageBytes == 0;
  if (!aligned || !in_reserved_range(begin) || is_too_large(bytes) || !take_addresses_at(begin, length)) {
    errno = aligned ? EEXIST : EINVAL;
    return MAP_FAILED;
  }
  count_live(length);
  void* mapped =
      map_over(address, bytes, protection, (flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED, file, offset);
  if (mapped != MAP_FAILED) {
    if (protection_at(begin) != Protection::kKernel) base::statistics.spill_allocated_bytes.add(length);
    return mapped;
  }
  const int error = errno;
  unmap_spilled(address, bytes);
  errno = error;
  return MAP_FAILED;
}

}  // namespace

FileMapKind kernel_kind(uint64_t begin, uint64_t bytes) {
  const FileMapKind kind = kind_at(begin);
  if (kind == FileMapKind::kNone || part_end(begin, begin + bytes) < begin + bytes) return FileMapKind::kNone;
  // For a plain one too: it may have become plain just now, and its pages must leave before it is changed.
  if (kind == FileMapKind::kReading || kind == FileMapKind::kPlain) {
    clear_slots();
    make_plain(begin);
  }
  return kind_at(begin);
}

void* map_spilled(size_t bytes, Protection protection) {
  if (is_too_large(bytes)) return no_map();
  const uint64_t address = take_addresses(base::round_up(bytes, base::kOsPageBytes));
  if (address == 0) return no_map();
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  count_mapped(length);
  protect(address, length, protection);
  return reinterpret_cast<void*>(address);
}

int unmap_spilled(void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (bytes == 0 || is_too_large(bytes) || begin % base::kOsPageBytes != 0 || is_global_at(address))
    return fail(EINVAL);
  uint64_t end = begin + base::round_up(bytes, base::kOsPageBytes);
  if (end > kRangeEnd) end = kRangeEnd;
  // It is no error to unmap what is not mapped: skip the holes.
  for (uint64_t at = begin; at < end;) {
    const uint64_t stop = same_allocation_end(at, file_map_end(at, end));
    if (is_allocated(at)) {
      if (is_file_map(at))
        unmap_file(at, stop - at);
      else
        discard_and_free(at, stop - at);
      base::statistics.spill_live_bytes.subtract(stop - at);
    }
    at = stop;
  }
  return 0;
}

void* map_fixed(void* address, size_t bytes, Protection protection) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  if (!take_fixed(begin, bytes, count_mapped)) return MAP_FAILED;
  // So that nobody sees the old content through the new access.
  if (protection != Protection::kOpen) protect(begin, length, protection);
  discard_memory(begin, length);
  protect(begin, length, protection);
  return address;
}

SPILL_EXPORT void* __spill_mmap(void* address, size_t bytes, int protection, int flags, int file,
                                off_t offset) {
  if (offset % static_cast<off_t>(base::kOsPageBytes) != 0 || (flags & MAP_TYPE) == 0) return no_map(EINVAL);
  if (is_beyond_table(address, bytes)) {
    if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0) return no_map();
    address = nullptr;
  }
  if ((flags & MAP_FIXED) != 0 && touches_runtime(address, bytes)) return no_map();
  if ((flags & MAP_FIXED) != 0 && touches_range(address, bytes))
    return map_over(address, bytes, protection, flags, file, offset);
  if ((flags & MAP_FIXED_NOREPLACE) != 0 && bytes != 0 && touches_range(address, bytes))
    return map_where_nothing_is(address, bytes, protection, flags, file, offset);
  if (void* mapped = map_file_through_cache(bytes, protection, flags, file, offset)) return mapped;
  if (bytes == 0 || !is_spilled_kind(bytes, protection, flags)) {
    if (in_range(address) && (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == 0) address = nullptr;
    return map_by_kernel(address, bytes, protection, flags, file, offset);
  }
  if (void* mapped = map_spilled(bytes, protection_of_flags(protection)); mapped != MAP_FAILED) return mapped;
  // A reservation may be larger than all that is left of the range: then it is the kernel's.
  return protection == PROT_NONE ? mmap(nullptr, bytes, protection, flags, file, offset) : no_map();
}

SPILL_EXPORT void* __spill_mmap64(void* address, size_t bytes, int protection, int flags, int file,
                                  off_t offset) {
  return __spill_mmap(address, bytes, protection, flags, file, offset);
}

SPILL_EXPORT int __spill_munmap(void* address, size_t bytes) {
  if (bytes > (uint64_t{1} << kAddressBits)) return fail(EINVAL);  // it may wrap
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  if (in_range(address)) return unmap_spilled(address, bytes);
  if (holds_globals(address, bytes)) return fail(EINVAL);
  forget_shared_maps(address, bytes);
  return LIBC(munmap)(address, bytes);
}

}  // namespace spill
