// What programs ask for by calls (include/spillway/spill.h): pages that are loaded ahead of use, that stay, or that are written
// now, and spilled memory whatever its size. Memory that is not spilled is the kernel's: nothing is done for it.
#include <errno.h>

#include <algorithm>

#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/ahead/prefetch.h"
#include "spill/file_maps.h"
#include "spill/heap.h"
#include "spill/runtime.h"
#include "spill/satc.h"
#include "spill/standing_pins.h"

namespace spill {
namespace {

bool is_started() { return runtime.started.load(std::memory_order_acquire); }

enum class Range { kPlain, kSpilled, kOther };

// What kind of memory [address, address + bytes) is. kOther: mapped files, protected or unmapped memory, and any mixture.
Range kind_of(uint64_t address, uint64_t bytes) {
  if (bytes == 0 || !is_started() || !in_range(address)) return Range::kPlain;
  const uint64_t end = address + bytes;
  if (end < address || end > uint64_t{1} << kAddressBits) return Range::kOther;
  for (uint64_t at = address; at < end; at = base::round_down(at, base::kOsPageBytes) + base::kOsPageBytes)
    if (!in_range(at) || !is_allocated(at) || file_map_kind(at) != FileMapKind::kNone ||
        protection_at(at) != Protection::kOpen)
      return Range::kOther;
  return Range::kSpilled;
}

int failed(int error) {
  errno = error;
  return -1;
}

// Carries out `wish` if the memory is spilled; does nothing for plain memory. Returns what the program's call is
// to return: 0, or -1 with errno set.
template <class Wish>
int of_spilled(const void* address, size_t bytes, Wish wish) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  switch (kind_of(begin, bytes)) {
    case Range::kPlain: return 0;
    case Range::kOther: return failed(EINVAL);
    case Range::kSpilled: break;
  }
  // What this thread used last is no longer in use.
  clear_slots();
  const int error = wish(begin, bytes);
  return error == 0 ? 0 : failed(error);
}

int write_range(uint64_t begin, uint64_t bytes) {
  satc_give_up();
  InRuntime inside;
  cache::Cache& cache = *runtime.cache;
  const base::PageId first = cache.page_of(begin), last = cache.page_of(begin + bytes - 1);
  auto failures = cache.write_back(first, index(last) - index(first) + 1, workspace_of(inside.thread()));
  if (!failures) return failures.error().number;
  return *failures == 0 ? 0 : EIO;
}

}  // namespace

SPILL_EXPORT void __spillway_prefetch(const void* address, size_t bytes);
void __spillway_prefetch(const void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (!is_started() || !in_range(begin)) return;
  // A library's global may lie less than that below the end of all addresses.
  const uint64_t most = std::min(kRangeEnd - kRangeBegin, (uint64_t{1} << kAddressBits) - begin);
  if (bytes <= most) prefetch_range(begin, bytes);
}

SPILL_EXPORT int __spillway_pin(const void* address, size_t bytes);
int __spillway_pin(const void* address, size_t bytes) { return of_spilled(address, bytes, pin_range); }

SPILL_EXPORT int __spillway_unpin(const void* address, size_t bytes);
int __spillway_unpin(const void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (bytes == 0 || !is_started() || !in_range(begin)) return 0;
  const int error = unpin_range(begin, bytes);
  return error == 0 ? 0 : failed(error);
}

SPILL_EXPORT int __spillway_flush(const void* address, size_t bytes);
int __spillway_flush(const void* address, size_t bytes) { return of_spilled(address, bytes, write_range); }

SPILL_EXPORT void* __spillway_alloc(size_t bytes, size_t alignment);
void* __spillway_alloc(size_t bytes, size_t alignment) {
  return is_started() ? heap_allocate_spilled(bytes, alignment)
                      : heap_allocate(bytes, alignment, false, Caller::kInstrumented);
}

SPILL_EXPORT void __spillway_free(void* block);
void __spillway_free(void* block) { heap_free(block, Caller::kInstrumented); }

}  // namespace spill
