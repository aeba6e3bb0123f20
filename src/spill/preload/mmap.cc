// Anonymous mappings in preload mode. Large private ones that may be read and written are memory of the spilled range; all
// others are the kernel's, as natively. Spilled memory is real memory here: mprotect and msync on it are the kernel's.
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "spill/address_space.h"
#include "spill/advice.h"
#include "spill/preload/large.h"
#include "spill/preload/next.h"
#include "spill/preload/service.h"
#include "spill/preload/start.h"
#include "sys/kernel.h"
#include "sys/signals.h"

namespace spill::preload {
namespace {

using base::kOsPageBytes;

DECLARE_NEXT(mmap)
DECLARE_NEXT(munmap)
DECLARE_NEXT(mremap)
DECLARE_NEXT(madvise)
DECLARE_NEXT(mlock)
DECLARE_NEXT(mlock2)
DECLARE_NEXT(mlockall)

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

int fail(int number) {
  errno = number;
  return -1;
}

void* no_map(int number) {
  errno = number;
  return MAP_FAILED;
}

bool touches_range(const void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  return begin < kRangeEnd && begin + bytes > kRangeBegin;
}

bool may_spill(int protection, int flags) {
  constexpr int kHarmless = MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK;
  return protection == kReadWrite && (flags & ~kHarmless) == (MAP_PRIVATE | MAP_ANONYMOUS);
}

// The parts of [begin, end) that are allocated, one after the other; `use` is given begin and bytes.
template <class Use>
void for_allocated(uint64_t begin, uint64_t end, Use&& use) {
  for (uint64_t at = begin; at < end;) {
    const uint64_t stop = same_allocation_end(at, end);
    if (is_allocated(at)) use(at, stop - at);
    at = stop;
  }
}

// MAP_FIXED within the range replaces what was there by a spilled mapping; mappings of other kinds cannot lie there.
void* map_fixed(void* address, size_t bytes, bool spilled_kind) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const uint64_t length = whole_pages(bytes);
  if (begin % kOsPageBytes != 0 || bytes == 0) return no_map(EINVAL);
  if (!spilled_kind || !is_on() || is_too_large(bytes) || begin < kRangeBegin || length > kRangeEnd - begin)
    return no_map(ENOMEM);
  const sys::BlockedSignals blocked(sys::kAllSignals);
  // What is there is not freed first, or another thread might be given its addresses.
  for (uint64_t at = begin; at < begin + length;) {
    const uint64_t stop = same_allocation_end(at, begin + length);
    if (!is_allocated(at) && !map_large_at(at, stop - at)) return no_map(ENOMEM);
    at = stop;
  }
  return renew_large(begin, length) ? address : no_map(ENOMEM);
}

void* map_anywhere(size_t bytes) {
  if (is_too_large(bytes)) return no_map(ENOMEM);
  const sys::BlockedSignals blocked(sys::kAllSignals);
  const uint64_t address = map_large(whole_pages(bytes), kOsPageBytes);
  return address != 0 ? reinterpret_cast<void*>(address) : no_map(ENOMEM);
}

int unmap(void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (bytes == 0 || is_too_large(bytes) || begin % kOsPageBytes != 0) return fail(EINVAL);
  if (!is_on()) return 0;  // a child's, which has nothing there
  const sys::BlockedSignals blocked(sys::kAllSignals);
  // It is no error to unmap what is not mapped.
  for_allocated(begin, std::min(begin + whole_pages(bytes), kRangeEnd), unmap_large);
  return 0;
}

void* resize(void* address, size_t old_bytes, size_t bytes, int flags) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const bool may_move = (flags & MREMAP_MAYMOVE) != 0;
  constexpr int kElsewhere = MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (bytes == 0 || old_bytes == 0 || begin % kOsPageBytes != 0 ||
      (flags & ~(MREMAP_MAYMOVE | kElsewhere)) != 0 || ((flags & kElsewhere) != 0 && !may_move))
    return no_map(EINVAL);
  // Addresses that the program chooses, and memory that stays mapped at both places, are not supported.
  if ((flags & kElsewhere) != 0 || !is_on() || is_too_large(bytes)) return no_map(ENOMEM);
  if (!is_allocated(begin)) return no_map(EFAULT);
  const uint64_t old_end = old_bytes > kRangeEnd - begin ? kRangeEnd : begin + whole_pages(old_bytes);
  const uint64_t end = begin + whole_pages(bytes);
  const sys::BlockedSignals blocked(sys::kAllSignals);
  if (end <= old_end) {
    for_allocated(end, old_end, unmap_large);
    return address;
  }
  if (same_allocation_end(begin, old_end) != old_end) return no_map(EFAULT);
  const uint64_t moved = resize_large(begin, old_end - begin, end - begin, may_move);
  return moved != 0 ? reinterpret_cast<void*>(moved) : no_map(ENOMEM);
}

int advise(void* address, size_t bytes, int advice) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (begin % kOsPageBytes != 0 || whole_pages(bytes) == 0) return fail(EINVAL);
  // A child of fork has none of it, whatever is asked for.
  const Advice meaning = advice == MADV_DONTFORK ? Advice::kNothing : meaning_of_advice(advice);
  if (is_too_large(bytes)) return fail(ENOMEM);
  const uint64_t end = begin + whole_pages(bytes);
  uint64_t found = 0;
  const sys::BlockedSignals blocked(sys::kAllSignals);
  for_allocated(begin, std::min(end, kRangeEnd), [&](uint64_t part, uint64_t length) {
    if (meaning == Advice::kForget && is_on()) ask_discard(part, length);
    found += length;
  });
  if (found > 0 && meaning == Advice::kRefused) return fail(EINVAL);
  return found == end - begin ? 0 : fail(ENOMEM);  // as natively: what is not mapped is skipped, and reported
}

}  // namespace
}  // namespace spill::preload

using namespace spill;           // NOLINT: what follows is the C library's names
using namespace spill::preload;  // NOLINT

SPILL_EXPORT void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (is_passive()) PASS(mmap, address, bytes, protection, flags, file, offset);
  if (offset % static_cast<off_t>(kOsPageBytes) != 0) return no_map(EINVAL);
  if ((flags & MAP_FIXED) != 0 && touches_range(address, bytes))
    return map_fixed(address, bytes, may_spill(protection, flags & ~MAP_FIXED));
  if (may_spill(protection, flags) && bytes != 0 && spills(std::min(bytes, kRangeEnd - kRangeBegin)))
    return map_anywhere(bytes);
  return NEXT(mmap)(address, bytes, protection, flags, file, offset);
}

SPILL_EXPORT void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  [[clang::musttail]] return mmap(address, bytes, protection, flags, file, offset);
}

SPILL_EXPORT int munmap(void* address, size_t bytes) {
  if (is_passive() || !in_range(address)) PASS(munmap, address, bytes);
  return unmap(address, bytes);
}

SPILL_EXPORT void* mremap(void* old_address, size_t old_bytes, size_t bytes, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* fixed = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  if (is_passive()) return NEXT(mremap)(old_address, old_bytes, bytes, flags, fixed);
  if (in_range(old_address)) return resize(old_address, old_bytes, bytes, flags);
  if (fixed != nullptr && touches_range(fixed, bytes)) return no_map(ENOMEM);
  return NEXT(mremap)(old_address, old_bytes, bytes, flags, fixed);
}

SPILL_EXPORT int madvise(void* address, size_t bytes, int advice) {
  // For 0 bytes the kernel only says whether it knows the advice.
  if (is_passive() || !in_range(address) || bytes == 0) PASS(madvise, address, bytes, advice);
  return advise(address, bytes, advice);
}

// Spilled memory cannot be locked: all of it may leave.
SPILL_EXPORT int mlock(const void* address, size_t bytes) {
  if (is_passive() || !in_range(address)) PASS(mlock, address, bytes);
  return fail(EAGAIN);
}

SPILL_EXPORT int mlock2(const void* address, size_t bytes, unsigned flags) {
  if (is_passive() || !in_range(address)) PASS(mlock2, address, bytes, flags);
  return fail((flags & ~MLOCK_ONFAULT) != 0 ? EINVAL : EAGAIN);
}

SPILL_EXPORT int mlockall(int flags) {
  if (!is_passive() && !stay_plain()) return fail(EAGAIN);
  PASS(mlockall, flags);
}
