// mmap and its relatives: private readable and writable anonymous mappings are spilled, and mappings of files that
// file_maps.h takes; everything else (other files, shared, executable, stacks, no access) is the kernel's, as natively.
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "base/ids.h"
#include "spill/address_space.h"
#include "spill/discard.h"
#include "spill/file_maps.h"
#include "spill/intercept/intercept.h"
#include "spill/next.h"
#include "spill/runtime.h"
#include "spill/shared_maps.h"

namespace spill {
namespace {

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

constexpr size_t kSmallestSpilledMap = 64 * 1024;

bool is_large_enough(size_t bytes) {
  const uint64_t least =
      runtime.options.min_alloc > kSmallestSpilledMap ? runtime.options.min_alloc : kSmallestSpilledMap;
  return runtime.options.spill_all != 0 || bytes >= least;
}

bool is_spilled_kind(size_t bytes, int protection, int flags) {
  constexpr int kPlainFlags = MAP_SHARED | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_STACK | MAP_GROWSDOWN |
                              MAP_LOCKED | MAP_HUGETLB | MAP_32BIT;
  if ((flags & MAP_ANONYMOUS) == 0 || (flags & kPlainFlags) != 0) return false;
  if (protection != (PROT_READ | PROT_WRITE)) return false;
  return runtime.started.load(std::memory_order_acquire) && is_large_enough(bytes);
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

bool holds_globals(const void* address, size_t bytes) {
  return spillway_has_globals.load(std::memory_order_relaxed) &&
         touches_globals(reinterpret_cast<uint64_t>(address), bytes);
}

// The kind of the file map that all of [begin, begin + bytes) belongs to, made plain if only the kernel can do what is
// asked for.
FileMapKind kernel_kind(uint64_t begin, uint64_t bytes) {
  const FileMapKind kind = file_map_kind(begin);
  if (kind == FileMapKind::kNone || file_map_end(begin, begin + bytes) < begin + bytes)
    return FileMapKind::kNone;
  if (kind != FileMapKind::kReading) return kind;
  clear_slots();
  make_plain(begin);
  return file_map_kind(begin);
}

// Calls f(part, bytes) for what of [address, address + bytes) belongs to one file map each, or to none, until one returns
// something else than 0; returns that.
template <class F>
int for_each_map(const void* address, size_t bytes, F f) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  uint64_t end = begin + base::round_up(bytes, base::kOsPageBytes);
  if (!is_global_at(address)) end = std::min(end, kRangeEnd);
  for (uint64_t at = begin; at < end;) {
    const uint64_t stop = file_map_end(at, end);
    if (const int result = f(reinterpret_cast<void*>(at), stop - at); result != 0) return result;
    at = stop;
  }
  return 0;
}

void* map_file_through_cache(size_t bytes, int protection, int flags, int file, off_t offset) {
  if (bytes == 0 || (flags & MAP_ANONYMOUS) != 0 || !is_large_enough(bytes) ||
      !runtime.started.load(std::memory_order_acquire))
    return nullptr;
  const uint64_t address = map_file(bytes, protection, flags, file, offset);
  if (address != 0) base::statistics.spill_live_bytes.add(base::round_up(bytes, base::kOsPageBytes));
  return reinterpret_cast<void*>(address);
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
  bool possible = spilled_kind && begin >= kRangeBegin && begin < kRangeEnd && length <= kRangeEnd - begin &&
                  !is_file_map(begin) && file_map_end(begin, begin + length) == begin + length;
  for (uint64_t at = begin; possible && at < begin + length;) {
    const bool allocated = is_allocated(at);
    const uint64_t end = same_allocation_end(at, begin + length);
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

// What the runtime leaves to the kernel.
void* map_by_kernel(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if ((flags & MAP_FIXED) != 0) forget_shared_maps(address, bytes);
  void* mapped = mmap(address, bytes, protection, flags, file, offset);
  if (mapped != MAP_FAILED && is_large_enough(bytes)) note_shared_map(mapped, bytes, flags, file);
  return mapped;
}

void* move_by_kernel(void* old_address, size_t old_bytes, size_t new_bytes, int flags, void* fixed) {
  const MovedSharedMap map(old_address, old_bytes);
  if (fixed != nullptr) forget_shared_maps(fixed, new_bytes);
  void* moved = LIBC(mremap)(old_address, old_bytes, new_bytes, flags, fixed);
  map.moved_to(moved, new_bytes, (flags & MREMAP_DONTUNMAP) != 0);
  return moved;
}

// mremap of a part of a file map: what is left of it here is unmapped.
void* move_plain(void* old_address, size_t old_bytes, size_t new_bytes, int flags) {
  if ((flags & ~MREMAP_MAYMOVE) != 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  void* moved = LIBC(mremap)(old_address, old_bytes, new_bytes, flags);
  if (moved == MAP_FAILED || old_bytes == 0) return moved;
  if (moved != old_address)
    unmap_spilled(old_address, old_bytes);
  else if (const size_t kept = base::round_up(new_bytes, base::kOsPageBytes); kept < old_bytes)
    unmap_spilled(static_cast<char*>(old_address) + kept, old_bytes - kept);
  return moved;
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
  if (!in_range(old_address) || is_global_at(old_address) || is_file_map(from)) return no_map();
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
  // What a longer mapping would show of its file is not anonymous memory.
  if (is_file_map(old_begin)) return no_map();
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
    const auto begin = reinterpret_cast<uint64_t>(address);
    if (bytes != 0 && in_range(begin) && begin % base::kOsPageBytes == 0 &&
        kernel_kind(begin, base::round_up(bytes, base::kOsPageBytes)) == FileMapKind::kPlain)
      return mmap(address, bytes, protection, flags, file, offset);
    constexpr int kHarmless = MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK;
    const bool spilled_kind = protection == (PROT_READ | PROT_WRITE) &&
                              (flags & ~kHarmless) == (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
    return map_fixed(address, bytes, spilled_kind);
  }
  if (void* mapped = map_file_through_cache(bytes, protection, flags, file, offset)) return mapped;
  if (bytes == 0 || !is_spilled_kind(bytes, protection, flags)) {
    if (in_range(address) && (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == 0) address = nullptr;
    return map_by_kernel(address, bytes, protection, flags, file, offset);
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
  if (holds_globals(address, bytes)) return fail(EINVAL);
  forget_shared_maps(address, bytes);
  return LIBC(munmap)(address, bytes);
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
  if (!in_range(old_address)) return move_by_kernel(old_address, old_bytes, new_bytes, flags, fixed);
  const auto begin = reinterpret_cast<uint64_t>(old_address);
  if (begin % base::kOsPageBytes == 0 &&
      kernel_kind(begin, base::round_up(old_bytes, base::kOsPageBytes)) == FileMapKind::kPlain)
    return move_plain(old_address, old_bytes, new_bytes, flags);
  return move_spilled(old_address, old_bytes, new_bytes, flags);
}

SPILL_EXPORT int __spill_madvise(void* address, size_t bytes, int advice) {
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  if (!in_range(address)) return madvise(address, bytes, advice);
  if (reinterpret_cast<uint64_t>(address) % base::kOsPageBytes != 0) return fail(EINVAL);
  return for_each_map(address, bytes, [advice](void* part, size_t length) {
    const auto begin = reinterpret_cast<uint64_t>(part);
    const FileMapKind kind = file_map_kind(begin);
    if (kind == FileMapKind::kPlain) return madvise(part, length, advice);
    if (advice == MADV_DONTNEED || advice == MADV_FREE) {
      if (!is_allocated(begin)) return fail(ENOMEM);
      if (kind == FileMapKind::kNone)
        discard_memory(begin, length);
      else if (advice == MADV_FREE)
        return fail(EINVAL);
      else if (kind == FileMapKind::kPrivate && !reload_file(begin, length))
        return fail(EIO);
    }
    // Other advice is about how the kernel pages, which it does not do here.
    return advice >= 0 && advice <= MADV_COLLAPSE ? 0 : fail(EINVAL);
  });
}

// Spilled memory is always readable and writable, but for files that are mapped to be read: other protection is refused,
// so that nobody relies on it.
SPILL_EXPORT int __spill_mprotect(void* address, size_t bytes, int protection) {
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  if (!in_range(address)) return mprotect(address, bytes, protection);
  return for_each_map(address, bytes, [protection](void* part, size_t length) {
    const auto begin = reinterpret_cast<uint64_t>(part);
    if (file_map_kind(begin) == FileMapKind::kReading && protection == PROT_READ) return 0;
    if (kernel_kind(begin, length) == FileMapKind::kPlain) return mprotect(part, length, protection);
    return protection == (PROT_READ | PROT_WRITE) ? 0 : fail(EACCES);
  });
}

// What cannot change needs no writing, and private memory is not written.
SPILL_EXPORT int __spill_msync(void* address, size_t bytes, int flags) {
  if (!in_range(address)) return msync(address, bytes, flags);
  return for_each_map(address, bytes, [flags](void* part, size_t length) {
    return file_map_kind(reinterpret_cast<uint64_t>(part)) == FileMapKind::kPlain ? msync(part, length, flags)
                                                                                  : 0;
  });
}

SPILL_EXPORT int __spill_mlock(const void* address, size_t bytes) {
  if (!in_range(address)) return mlock(address, bytes);
  return for_each_map(address, bytes, [](void* part, size_t length) {
    return kernel_kind(reinterpret_cast<uint64_t>(part), length) == FileMapKind::kPlain ? mlock(part, length)
                                                                                        : fail(ENOMEM);
  });
}

SPILL_EXPORT int __spill_munlock(const void* address, size_t bytes) {
  if (!in_range(address)) return munlock(address, bytes);
  return for_each_map(address, bytes, [](void* part, size_t length) {
    return file_map_kind(reinterpret_cast<uint64_t>(part)) == FileMapKind::kPlain ? munlock(part, length) : 0;
  });
}

}  // namespace spill
