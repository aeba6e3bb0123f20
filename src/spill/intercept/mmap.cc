// mmap and its relatives: private anonymous mappings that can be read and written, or not be accessed yet, are spilled, and
// mappings of files that file_maps.h takes; everything else (other files, shared, executable, stacks) is the kernel's, as
// natively. What mprotect says of spilled memory is kept by protection.h.
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/ids.h"
#include "spill/address_space.h"
#include "spill/discard.h"
#include "spill/fault.h"
#include "spill/file_maps.h"
#include "spill/intercept/intercept.h"
#include "spill/next.h"
#include "spill/protection.h"
#include "spill/runtime.h"
#include "spill/shared_maps.h"

namespace spill {
namespace {

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

constexpr size_t kSmallestSpilledMap = 64 * 1024;
constexpr int kAllAccess = PROT_READ | PROT_WRITE | PROT_EXEC;

bool is_large_enough(size_t bytes) {
  const uint64_t least =
      runtime.options.min_alloc > kSmallestSpilledMap ? runtime.options.min_alloc : kSmallestSpilledMap;
  return runtime.options.spill_all != 0 || bytes >= least;
}

bool is_spilled_kind(size_t bytes, int protection, int flags) {
  constexpr int kPlainFlags = MAP_SHARED | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_STACK | MAP_GROWSDOWN |
                              MAP_LOCKED | MAP_HUGETLB | MAP_32BIT;
  if ((flags & MAP_ANONYMOUS) == 0 || (flags & kPlainFlags) != 0) return false;
  if (protection != (PROT_READ | PROT_WRITE) && protection != PROT_NONE) return false;
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

// More than there are addresses, which rounded up may be nothing.
bool is_too_large(size_t bytes) { return bytes > kRangeEnd - kRangeBegin; }

void* map_spilled(size_t bytes, Protection protection) {
  if (is_too_large(bytes)) return no_map();
  const uint64_t address = allocate_addresses(base::round_up(bytes, base::kOsPageBytes), base::kOsPageBytes);
  if (address == 0) return no_map();
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  base::statistics.spill_allocated_bytes.add(length);
  base::statistics.spill_live_bytes.add(length);
  protect(address, length, protection);
  return reinterpret_cast<void*>(address);
}

// Whose the memory at the address is: the kernel's mappings among spilled memory count as plain maps.
FileMapKind kind_at(uint64_t address) {
  return protection_at(address) == Protection::kKernel ? FileMapKind::kPlain : file_map_kind(address);
}

// The end of what is of one kind and one protection; at most `end`.
uint64_t part_end(uint64_t address, uint64_t end) {
  return same_protection_end(address, file_map_end(address, end));
}

// A global stays where it is.
bool is_global_at(const void* address) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  return !in_reserved_range(begin) && in_range(begin);
}

int unmap_spilled(void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (bytes == 0 || is_too_large(bytes) || begin % base::kOsPageBytes != 0 || is_global_at(address))
    return fail(EINVAL);
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
  const FileMapKind kind = kind_at(begin);
  if (kind == FileMapKind::kNone || part_end(begin, begin + bytes) < begin + bytes) return FileMapKind::kNone;
  if (kind != FileMapKind::kReading) return kind;
  clear_slots();
  make_plain(begin);
  return file_map_kind(begin);
}

// Calls f(part, bytes) for what of [address, address + bytes) belongs to one file map each, or to none, and has one
// protection, until one returns something else than 0; returns that.
template <class F>
int for_each_part(const void* address, size_t bytes, F f) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  uint64_t end = begin + base::round_up(bytes, base::kOsPageBytes);
  if (!is_global_at(address)) end = std::min(end, kRangeEnd);
  for (uint64_t at = begin; at < end;) {
    const uint64_t stop = part_end(at, end);
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

// Takes what is free of spilled addresses, for MAP_FIXED. False if that cannot be, and errno: EINVAL for what is no range of
// OS pages; ENOMEM for globals, file maps, addresses beyond.
bool take_fixed(uint64_t begin, size_t bytes) {
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
      possible = allocate_addresses_at(at, end - at);
      if (possible) base::statistics.spill_live_bytes.add(end - at);
    }
    at = end;
  }
  if (!possible) errno = ENOMEM;
  return possible;
}

// MAP_FIXED of private anonymous memory onto spilled addresses: what was there is gone.
void* map_fixed(void* address, size_t bytes, Protection protection) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  if (!take_fixed(begin, bytes)) return MAP_FAILED;
  // Nobody sees the old content once the new access is there.
  if (protection != Protection::kOpen) protect(begin, length, protection);
  discard_memory(begin, length);
  protect(begin, length, protection);
  return address;
}

// MAP_FIXED of anything else: the kernel's mapping takes the place of spilled memory.
void* map_fixed_by_kernel(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  if (!take_fixed(begin, bytes)) return MAP_FAILED;
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

// Copies to memory that can be written, whatever may be done with `from`, which is not the kernel's.
void copy_protected(void* to, const void* from, size_t n) {
  auto* t = static_cast<char*>(to);
  for (auto at = reinterpret_cast<uint64_t>(from); n > 0;) {
    const size_t length = std::min(bytes_to_page_end(reinterpret_cast<void*>(at)), n);
    char piece[base::kOsPageBytes];
    with_page_in_memory(at, [&](cache::Cache& cache, base::PageId page, uint64_t offset) {
      cache.copy_out(page, offset, piece, length);
    });
    copy(t, piece, length);
    t += length, at += length, n -= length;
  }
}

// Are all of the bytes mapped, with one protection? What differs is several mappings to the kernel.
bool is_one_mapping(uint64_t begin, uint64_t length) {
  const uint64_t end = begin + length;
  return is_allocated(begin) && same_allocation_end(begin, end) == end &&
         same_protection_end(begin, end) == end;
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
  if (!in_range(old_address) || is_global_at(old_address) || kind_at(from) != FileMapKind::kNone)
    return no_map();
  const uint64_t old_length = base::round_up(old_bytes, base::kOsPageBytes);
  const uint64_t new_length = base::round_up(new_bytes, base::kOsPageBytes);
  if (!is_one_mapping(from, old_length)) {
    errno = EFAULT;
    return MAP_FAILED;
  }
  const Protection protection = protection_at(from);
  void* moved = map_fixed(fixed, new_bytes, Protection::kOpen);
  if (moved == MAP_FAILED) return moved;
  copy_protected(moved, old_address, std::min(old_length, new_length));
  protect(to, new_length, protection);
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
  if (!is_one_mapping(old_begin, old_length)) {
    errno = EFAULT;
    return MAP_FAILED;
  }
  const Protection protection = protection_at(old_begin);
  if (allocate_addresses_at(old_begin + old_length, new_length - old_length)) {
    base::statistics.spill_live_bytes.add(new_length - old_length);
    protect(old_begin + old_length, new_length - old_length, protection);
    return old_address;
  }
  if ((flags & MREMAP_MAYMOVE) == 0) return no_map();
  void* moved = map_spilled(new_bytes, Protection::kOpen);
  if (moved == MAP_FAILED) return moved;
  copy_protected(moved, old_address, old_length);
  protect(reinterpret_cast<uint64_t>(moved), new_length, protection);
  unmap_spilled(old_address, old_length);
  return moved;
}

}  // namespace

SPILL_EXPORT void* __spill_mmap(void* address, size_t bytes, int protection, int flags, int file,
                                off_t offset) {
  if ((flags & MAP_FIXED) != 0 && touches_runtime(address, bytes)) return no_map();
  if ((flags & MAP_FIXED) != 0 && touches_range(address, bytes)) {
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
  if ((flags & MAP_FIXED_NOREPLACE) != 0 && bytes != 0 && touches_range(address, bytes)) {
    const auto begin = reinterpret_cast<uint64_t>(address);
    const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
    int error = begin % base::kOsPageBytes != 0 ? EINVAL : 0;
    if (error == 0 &&
        (!in_reserved_range(begin) || is_too_large(bytes) || !allocate_addresses_at(begin, length)))
      error = EEXIST;
    if (error != 0) {
      errno = error;
      return MAP_FAILED;
    }
    base::statistics.spill_live_bytes.add(length);
    void* mapped =
        __spill_mmap(address, bytes, protection, (flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED, file, offset);
    error = errno;
    if (mapped == MAP_FAILED) unmap_spilled(address, bytes);
    errno = error;
    return mapped;
  }
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
  if (is_too_large(old_bytes) || is_too_large(new_bytes) || touches_runtime(old_address, old_bytes) ||
      (fixed != nullptr && touches_runtime(fixed, new_bytes)))
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
  if (reinterpret_cast<uint64_t>(address) % base::kOsPageBytes != 0 || is_too_large(bytes))
    return fail(EINVAL);
  return for_each_part(address, bytes, [advice](void* part, size_t length) {
    const auto begin = reinterpret_cast<uint64_t>(part);
    const FileMapKind kind = kind_at(begin);
    if (kind == FileMapKind::kPlain) return madvise(part, length, advice);
    if (!is_allocated(begin)) return fail(ENOMEM);
    if (advice == MADV_DONTNEED || advice == MADV_FREE) {
      if (kind == FileMapKind::kNone)
        discard_memory(begin, length);
      else if (advice == MADV_FREE)
        return fail(EINVAL);
      else if (kind == FileMapKind::kPrivate && !reload_file(begin, length))
        return fail(EIO);
    }
    // It would change what a child of fork finds, or what is stored.
    if (advice == MADV_DONTFORK || advice == MADV_WIPEONFORK || advice == MADV_REMOVE) return fail(EINVAL);
    // Other advice is about how the kernel pages, which it does not do here.
    return advice >= 0 && advice <= MADV_COLLAPSE ? 0 : fail(EINVAL);
  });
}

// Spilled globals, whose pages hold what the compiler put beside them too, are always readable and writable: other
// protection is refused, so that nobody relies on it.
SPILL_EXPORT int __spill_mprotect(void* address, size_t bytes, int protection) {
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  if (!in_range(address)) return mprotect(address, bytes, protection);
  if (reinterpret_cast<uint64_t>(address) % base::kOsPageBytes != 0 || (protection & ~kAllAccess) != 0)
    return fail(EINVAL);
  if (is_too_large(bytes)) return fail(ENOMEM);
  return for_each_part(address, bytes, [protection](void* part, size_t length) {
    const auto begin = reinterpret_cast<uint64_t>(part);
    if (kind_at(begin) == FileMapKind::kReading && protection == PROT_READ) return 0;
    if (kernel_kind(begin, length) == FileMapKind::kPlain) return mprotect(part, length, protection);
    const Protection wanted = protection_of_flags(protection);
    if (is_global_at(part)) return wanted == Protection::kOpen ? 0 : fail(EACCES);
    if (!is_allocated(begin)) return fail(ENOMEM);
    const uint64_t end = same_allocation_end(begin, begin + length);
    protect(begin, end - begin, wanted);
    return end == begin + length ? 0 : fail(ENOMEM);
  });
}

// Keys of protection are the kernel's, by addresses that compiled code does not use.
SPILL_EXPORT int __spill_pkey_mprotect(void* address, size_t bytes, int protection, int key) {
  if (key == -1 || touches_runtime(address, bytes)) return __spill_mprotect(address, bytes, protection);
  return in_range(address) ? fail(EACCES) : pkey_mprotect(address, bytes, protection, key);
}

// What cannot change needs no writing, and private memory is not written.
SPILL_EXPORT int __spill_msync(void* address, size_t bytes, int flags) {
  if (!in_range(address)) return msync(address, bytes, flags);
  return for_each_part(address, bytes, [flags](void* part, size_t length) {
    const auto begin = reinterpret_cast<uint64_t>(part);
    if (kind_at(begin) == FileMapKind::kPlain) return msync(part, length, flags);
    return is_allocated(begin) ? 0 : fail(ENOMEM);
  });
}

SPILL_EXPORT int __spill_mlock(const void* address, size_t bytes) {
  if (!in_range(address)) return mlock(address, bytes);
  return for_each_part(address, bytes, [](void* part, size_t length) {
    return kernel_kind(reinterpret_cast<uint64_t>(part), length) == FileMapKind::kPlain ? mlock(part, length)
                                                                                        : fail(ENOMEM);
  });
}

SPILL_EXPORT int __spill_munlock(const void* address, size_t bytes) {
  if (!in_range(address)) return munlock(address, bytes);
  return for_each_part(address, bytes, [](void* part, size_t length) {
    return kind_at(reinterpret_cast<uint64_t>(part)) == FileMapKind::kPlain ? munlock(part, length) : 0;
  });
}

SPILL_EXPORT int __spill_mlock2(const void* address, size_t bytes, unsigned flags) {
  return in_range(address) ? __spill_mlock(address, bytes) : mlock2(address, bytes, flags);
}

SPILL_EXPORT int __spill_posix_madvise(void* address, size_t bytes, int advice) {
  if (!in_range(address)) return posix_madvise(address, bytes, advice);
  // As the C library has it, nothing may be lost.
  if (advice == POSIX_MADV_DONTNEED) return 0;
  const int error = errno;
  const int result = __spill_madvise(address, bytes, advice) == 0 ? 0 : errno;
  errno = error;
  return result;
}

// Of spilled memory: what can be accessed without the runtime's help.
SPILL_EXPORT int __spill_mincore(void* address, size_t bytes, unsigned char* pages) {
  const size_t count = (bytes + base::kOsPageBytes - 1) / base::kOsPageBytes;
  PlainBytes plain_pages(pages, count, PlainBytes::kInOut);
  if (!in_range(address))
    return mincore(address, bytes, reinterpret_cast<unsigned char*>(plain_pages.data()));
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (begin % base::kOsPageBytes != 0) return fail(EINVAL);
  if (count > 0 && plain_pages.data() == nullptr) return fail(EAGAIN);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t at = begin + i * base::kOsPageBytes;
    if (!in_range(at) || !is_allocated(at)) return fail(ENOMEM);
    plain_pages.data()[i] = entry_of(at).load(std::memory_order_relaxed) != 0;
  }
  return 0;
}

SPILL_EXPORT ssize_t __spill_process_madvise(int process, const iovec* vector, size_t count, int advice,
                                             unsigned flags) {
  PlainBytes plain_vector(vector, count * sizeof(iovec), PlainBytes::kIn);
  return process_madvise(process, reinterpret_cast<iovec*>(plain_vector.data()), count, advice, flags);
}

}  // namespace spill
