// mremap: spilled memory grows in place, or is copied to where there is room; the kernel's is remapped as natively.
#include <stdarg.h>

#include "spill/discard.h"
#include "spill/intercept/maps.h"
#include "spill/next.h"
#include "spill/shared_maps.h"

namespace spill {
namespace {

// Copies to memory that can be written, whatever the protection of `from`, which is not the kernel's.
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

// Are all of the bytes mapped, with one protection? Otherwise they would be several mappings to the kernel.
bool is_one_mapping(uint64_t begin, uint64_t length) {
  const uint64_t end = begin + length;
  return is_allocated(begin) && same_allocation_end(begin, end) == end &&
         same_protection_end(begin, end) == end;
}

void* move_by_kernel(void* old_address, size_t old_bytes, size_t new_bytes, int flags, void* fixed) {
  const MovedSharedMap map(old_address, old_bytes);
  if (fixed != nullptr) forget_shared_maps(fixed, new_bytes);
  void* moved = LIBC(mremap)(old_address, old_bytes, new_bytes, flags, fixed);
  map.moved_to(moved, new_bytes, (flags & MREMAP_DONTUNMAP) != 0);
  return moved;
}

// mremap of a part of a file map by the kernel; what is left of it at the old addresses is unmapped.
void* move_plain(void* old_address, size_t old_bytes, size_t new_bytes, int flags) {
  if ((flags & ~MREMAP_MAYMOVE) != 0) return no_map(EINVAL);
  void* moved = LIBC(mremap)(old_address, old_bytes, new_bytes, flags);
  if (moved == MAP_FAILED || old_bytes == 0) return moved;
  if (moved != old_address)
    unmap_spilled(old_address, old_bytes);
  else if (const size_t kept = base::round_up(new_bytes, base::kOsPageBytes); kept < old_bytes)
    unmap_spilled(static_cast<char*>(old_address) + kept, old_bytes - kept);
  return moved;
}

constexpr int kMremapFlags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;

// Would the kernel refuse the call? What stays mapped (MREMAP_DONTUNMAP) cannot change its length, and must move.
bool is_wrong_kind(int flags, uint64_t old_length, uint64_t new_length) {
  if ((flags & ~kMremapFlags) != 0) return true;
  if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0 && (flags & MREMAP_MAYMOVE) == 0) return true;
  return (flags & MREMAP_DONTUNMAP) != 0 && old_length != new_length;
}

// Unmaps the old addresses, or leaves them mapped with zeros.
void leave(uint64_t begin, uint64_t length, int flags) {
  if ((flags & MREMAP_DONTUNMAP) != 0)
    discard_memory(begin, length);
  else
    unmap_spilled(reinterpret_cast<void*>(begin), length);
}

// mremap to a given address: only between spilled addresses.
void* move_to(void* old_address, size_t old_bytes, size_t new_bytes, int flags, void* fixed) {
  const auto from = reinterpret_cast<uint64_t>(old_address), to = reinterpret_cast<uint64_t>(fixed);
  const bool overlap = from < to + new_bytes && to < from + old_bytes;
  const uint64_t old_length = base::round_up(old_bytes, base::kOsPageBytes);
  const uint64_t new_length = base::round_up(new_bytes, base::kOsPageBytes);
  if (is_wrong_kind(flags, old_length, new_length) || old_bytes == 0 || new_bytes == 0 ||
      from % base::kOsPageBytes != 0 || overlap)
    return no_map(EINVAL);
  if (!in_range(old_address) || is_global_at(old_address) || kind_at(from) != FileMapKind::kNone)
    return no_map();
  if (!is_one_mapping(from, old_length)) return no_map(EFAULT);
  const Protection protection = protection_at(from);
  void* moved = map_fixed(fixed, new_bytes, Protection::kOpen);
  if (moved == MAP_FAILED) return moved;
  copy_protected(moved, old_address, std::min(old_length, new_length));
  protect(to, new_length, protection);
  leave(from, old_length, flags);
  return moved;
}

void* move_spilled(void* old_address, size_t old_bytes, size_t new_bytes, int flags) {
  const auto old_begin = reinterpret_cast<uint64_t>(old_address);
  const uint64_t old_length = base::round_up(old_bytes, base::kOsPageBytes);
  const uint64_t new_length = base::round_up(new_bytes, base::kOsPageBytes);
  const bool stays_mapped = (flags & MREMAP_DONTUNMAP) != 0;
  if (new_bytes == 0 || old_bytes == 0 || old_begin % base::kOsPageBytes != 0 ||
      is_wrong_kind(flags, old_length, new_length) || is_global_at(old_address))
    return no_map(EINVAL);
  if (!is_allocated(old_begin)) return no_map(EFAULT);
  if (new_length <= old_length && !stays_mapped) {
    if (new_length < old_length)
      unmap_spilled(reinterpret_cast<char*>(old_begin) + new_length, old_length - new_length);
    return old_address;
  }
  // A longer mapping would have to show more of its file, not anonymous memory.
  if (is_file_map(old_begin)) return no_map();
  if (!is_one_mapping(old_begin, old_length)) return no_map(EFAULT);
  const Protection protection = protection_at(old_begin);
  if (!stays_mapped && take_addresses_at(old_begin + old_length, new_length - old_length)) {
    count_mapped(new_length - old_length);
    protect(old_begin + old_length, new_length - old_length, protection);
    return old_address;
  }
  if ((flags & MREMAP_MAYMOVE) == 0) return no_map();
  void* moved = map_spilled(new_bytes, Protection::kOpen);
  if (moved == MAP_FAILED) return moved;
  copy_protected(moved, old_address, old_length);
  protect(reinterpret_cast<uint64_t>(moved), new_length, protection);
  leave(old_begin, old_length, flags);
  return moved;
}

}  // namespace

SPILL_EXPORT void* __spill_mremap(void* old_address, size_t old_bytes, size_t new_bytes, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* fixed = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  if (is_too_large(old_bytes) || is_too_large(new_bytes) || touches_runtime(old_address, old_bytes) ||
      (fixed != nullptr && touches_runtime(fixed, new_bytes)))
    return no_map();
  if (fixed != nullptr && is_beyond_table(fixed, new_bytes)) return no_map(EINVAL);
  if (fixed != nullptr && (in_range(old_address) || touches_range(fixed, new_bytes)))
    return move_to(old_address, old_bytes, new_bytes, flags, fixed);
  if (!in_range(old_address)) return move_by_kernel(old_address, old_bytes, new_bytes, flags, fixed);
  const auto begin = reinterpret_cast<uint64_t>(old_address);
  if (begin % base::kOsPageBytes == 0 &&
      kernel_kind(begin, base::round_up(old_bytes, base::kOsPageBytes)) == FileMapKind::kPlain)
    return move_plain(old_address, old_bytes, new_bytes, flags);
  return move_spilled(old_address, old_bytes, new_bytes, flags);
}

}  // namespace spill
