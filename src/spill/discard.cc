#include "spill/discard.h"

#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/ahead/patterns.h"
#include "spill/mapped_pages.h"
#include "spill/protection.h"
#include "spill/runtime.h"
#include "spill/satc.h"

namespace spill {
namespace {

// Zeroes a part of one page, whatever its protection.
void zero(uint64_t address, uint64_t bytes) {
  with_page_in_memory(address, [bytes](cache::Cache& cache, base::PageId page, uint64_t offset) {
    cache.zero(page, offset, bytes);
  });
}

void discard(uint64_t address, uint64_t bytes, cache::Cache::After after) {
  cache::Cache& cache = *runtime.cache;
  const uint64_t end = address + bytes;
  const uint64_t first = base::round_up(address, cache.page_bytes());
  const uint64_t last = base::round_down(end, cache.page_bytes());
  if (first > last) {
    zero(address, bytes);
    return;
  }
  if (address < first) zero(address, first - address);
  if (last < end) zero(last, end - last);
  if (first == last) return;
  InRuntime inside;
  cache.discard(cache.page_of(first), (last - first) / cache.page_bytes(), workspace_of(inside.thread()),
                after);
}

}  // namespace

void discard_memory(uint64_t address, uint64_t bytes) {
  discard(address, bytes, cache::Cache::After::kInUse);
}

void discard_and_free(uint64_t address, uint64_t bytes) {
  // First everything that holds the pages lets go of them, or they would stay, zeroed, at addresses that are free.
  unmap_range(address, bytes);
  clear_slots();
  satc_invalidate(address, bytes);
  discard(address, bytes, cache::Cache::After::kFree);
  end_protection(address, bytes);
  forget_pattern(address, bytes);
  InRuntime inside;
  free_addresses(address, bytes);
}

}  // namespace spill
