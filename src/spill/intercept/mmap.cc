// Anonymous mmap and its relatives: private readable and writable mappings are spilled; everything else
// (files, shared, executable, stacks, no access) is the kernel's, as natively.
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "base/ids.h"
#include "spill/address_space.h"
#include "spill/discard.h"
#include "spill/intercept/intercept.h"
#include "spill/runtime.h"

namespace spill {
namespace {

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

constexpr size_t kSmallestSpilledMap = 64 * 1024;

bool is_spilled_kind(size_t bytes, int protection, int flags) {
  constexpr int kPlainFlags = MAP_SHARED | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_STACK | MAP_GROWSDOWN |
                              MAP_LOCKED | MAP_HUGETLB | MAP_32BIT;
  if ((flags & MAP_ANONYMOUS) == 0 || (flags & kPlainFlags) != 0) return false;
  if (protection != (PROT_READ | PROT_WRITE)) return false;
  if (!runtime.started.load(std::memory_order_acquire)) return false;
  const uint64_t least =
      runtime.options.min_alloc > kSmallestSpilledMap ? runtime.options.min_alloc : kSmallestSpilledMap;
  return runtime.options.spill_all != 0 || bytes >= least;
}

int fail(int number) {
  errno = number;
  return -1;
}

void* no_map() {
  errno = ENOMEM;
  return MAP_FAILED;
}

void* map_spilled(size_t bytes) {
  const uint64_t address = allocate_addresses(base::round_up(bytes, base::kOsPageBytes), base::kOsPageBytes);
  if (address == 0) return no_map();
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  base::statistics.spill_allocated_bytes.add(length);
  base::statistics.spill_live_bytes.add(length);
  return reinterpret_cast<void*>(address);
}

// A global stays where it is.
bool is_global_at(const void* address) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  return !in_reserved_range(begin) && in_range(begin);
}

int unmap_spilled(void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (bytes == 0 || begin % base::kOsPageBytes != 0 || is_global_at(address)) return fail(EINVAL);
  uint64_t end = begin + base::round_up(bytes, base::kOsPageBytes);
  if (end > kRangeEnd) end = kRangeEnd;
  // munmap of what is not mapped is no error: skip the holes.
  for (uint64_t at = begin; at < end;) {
    uint64_t stop = at;
    while (stop < end && is_allocated(stop)) stop += base::kOsPageBytes;
    if (stop > at) {
      discard_and_free(at, stop - at);
      base::statistics.spill_live_bytes.subtract(stop - at);
    }
    at = stop + base::kOsPageBytes;
  }
  return 0;
}

bool holds_globals(const void* address, size_t bytes) {
  return spillway_has_globals.load(std::memory_order_relaxed) &&
         touches_globals(reinterpret_cast<uint64_t>(address), bytes);
}

bool touches_range(const void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  return (begin < kRangeEnd && begin + bytes > kRangeBegin) || holds_globals(address, bytes);
}

// MAP_FIXED onto spilled addresses: what was there is gone, what was free is taken. Only memory that is
// spilled can lie there: entries of the table lead compiled code away from any other mapping.
void* map_fixed(void* address, size_t bytes, bool spilled_kind) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  if (begin % base::kOsPageBytes != 0 || bytes == 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  bool possible = spilled_kind && begin >= kRangeBegin && begin < kRangeEnd && length <= kRangeEnd - begin;
  for (uint64_t at = begin; possible && at < begin + length;) {
    const bool allocated = is_allocated(at);
    uint64_t end = at + base::kOsPageBytes;
    while (end < begin + length && is_allocated(end) == allocated) end += base::kOsPageBytes;
    if (allocated) {
      discard_memory(at, end - at);
    } else if (allocate_addresses_at(at, end - at)) {
      base::statistics.spill_live_bytes.add(end - at);
    } else {
      possible = false;
    }
    at = end;
  }
  return possible ? address : no_map();
}

// mremap with a new address: between spilled addresses only.
void* move_to(void* old_address, size_t old_bytes, size_t new_bytes, int flags, void* fixed) {
  const auto from = reinterpret_cast<uint64_t>(old_address), to = reinterpret_cast<uint64_t>(fixed);
  const bool overlap = from < to + new_bytes && to < from + old_bytes;
  if ((flags & MREMAP_MAYMOVE) == 0 || old_bytes == 0 || new_bytes == 0 || from % base::kOsPageBytes != 0 ||
      overlap) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  if (!in_range(old_address) || is_global_at(old_address)) return no_map();
  void* moved = map_fixed(fixed, new_bytes, true);
  if (moved == MAP_FAILED) return moved;
  copy(moved, old_address, base::round_up(std::min(old_bytes, new_bytes), base::kOsPageBytes));
  unmap_spilled(old_address, old_bytes);
  return moved;
}

void* move_spilled(void* old_address, size_t old_bytes, size_t new_bytes, int flags) {
  const auto old_begin = reinterpret_cast<uint64_t>(old_address);
  const uint64_t old_length = base::round_up(old_bytes, base::kOsPageBytes);
  const uint64_t new_length = base::round_up(new_bytes, base::kOsPageBytes);
  if (new_bytes == 0 || old_bytes == 0 || old_begin % base::kOsPageBytes != 0 ||
      (flags & ~MREMAP_MAYMOVE) != 0 || is_global_at(old_address)) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  if (new_length <= old_length) {
    if (new_length < old_length)
      unmap_spilled(reinterpret_cast<char*>(old_begin) + new_length, old_length - new_length);
    return old_address;
  }
  if (allocate_addresses_at(old_begin + old_length, new_length - old_length)) {
    base::statistics.spill_live_bytes.add(new_length - old_length);
    return old_address;
  }
  if ((flags & MREMAP_MAYMOVE) == 0) return no_map();
  void* moved = map_spilled(new_bytes);
  if (moved == MAP_FAILED) return moved;
  copy(moved, old_address, old_length);
  unmap_spilled(old_address, old_length);
  return moved;
}

}  // namespace

SPILL_EXPORT void* __spill_mmap(void* address, size_t bytes, int protection, int flags, int file,
                                off_t offset) {
  if ((flags & MAP_FIXED) != 0 && touches_runtime(address, bytes)) return no_map();
  if ((flags & MAP_FIXED) != 0 && touches_range(address, bytes)) {
    constexpr int kHarmless = MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK;
    const bool spilled_kind = protection == (PROT_READ | PROT_WRITE) &&
                              (flags & ~kHarmless) == (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
    return map_fixed(address, bytes, spilled_kind);
  }
  if (bytes == 0 || !is_spilled_kind(bytes, protection, flags)) {
    if (in_range(address) && (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == 0) address = nullptr;
    return mmap(address, bytes, protection, flags, file, offset);
  }
  return map_spilled(bytes);
}

SPILL_EXPORT void* __spill_mmap64(void* address, size_t bytes, int protection, int flags, int file,
                                  off_t offset) {
  return __spill_mmap(address, bytes, protection, flags, file, offset);
}

SPILL_EXPORT int __spill_munmap(void* address, size_t bytes) {
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  if (in_range(address)) return unmap_spilled(address, bytes);
  return holds_globals(address, bytes) ? fail(EINVAL) : munmap(address, bytes);
}

SPILL_EXPORT void* __spill_mremap(void* old_address, size_t old_bytes, size_t new_bytes, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* fixed = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  if (touches_runtime(old_address, old_bytes) || (fixed != nullptr && touches_runtime(fixed, new_bytes)))
    return no_map();
  if (fixed != nullptr && (in_range(old_address) || touches_range(fixed, new_bytes)))
    return move_to(old_address, old_bytes, new_bytes, flags, fixed);
  if (in_range(old_address)) return move_spilled(old_address, old_bytes, new_bytes, flags);
  return mremap(old_address, old_bytes, new_bytes, flags, fixed);
}

SPILL_EXPORT int __spill_madvise(void* address, size_t bytes, int advice) {
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  if (!in_range(address)) return madvise(address, bytes, advice);
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (begin % base::kOsPageBytes != 0) return fail(EINVAL);
  if (advice == MADV_DONTNEED || advice == MADV_FREE) {
    if (!is_allocated(begin)) return fail(ENOMEM);
    discard_memory(begin, base::round_up(bytes, base::kOsPageBytes));
  }
  // Other advice is about how the kernel pages, which it does not do here.
  return advice >= 0 && advice <= MADV_COLLAPSE ? 0 : fail(EINVAL);
}

// Spilled memory is always readable and writable: other protection is refused, so that nobody relies on it.
SPILL_EXPORT int __spill_mprotect(void* address, size_t bytes, int protection) {
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  if (!in_range(address)) return mprotect(address, bytes, protection);
  return protection == (PROT_READ | PROT_WRITE) ? 0 : fail(EACCES);
}

SPILL_EXPORT int __spill_msync(void* address, size_t bytes, int flags) {
  return in_range(address) ? 0 : msync(address, bytes, flags);
}

SPILL_EXPORT int __spill_mlock(const void* address, size_t bytes) {
  return in_range(address) ? fail(ENOMEM) : mlock(address, bytes);
}

SPILL_EXPORT int __spill_munlock(const void* address, size_t bytes) {
  return in_range(address) ? 0 : munlock(address, bytes);
}

}  // namespace spill
