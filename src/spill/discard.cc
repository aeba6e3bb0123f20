#include "spill/discard.h"

#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/fault.h"
#include "spill/fork.h"
#include "spill/intercept/intercept.h"
#include "spill/runtime.h"

namespace spill {
namespace {

void zero(uint64_t address, uint64_t bytes) {
  for_each_piece(reinterpret_cast<void*>(address), bytes, kHoldCross, [](char* raw, size_t length) {
    spillway_plain_memset(raw, 0, length);
    return true;
  });
}

// Pages of a child of fork that it keeps in part come to it first.
void discard_of_child(uint64_t address, uint64_t bytes) {
  const size_t page = runtime.cache->page_bytes();
  const uint64_t end = address + bytes;
  if (address % page != 0) own_for_child(address);
  if (end % page != 0) own_for_child(end - 1);
  const uint64_t first = base::round_up(address, base::kOsPageBytes),
                 last = base::round_down(end, base::kOsPageBytes);
  if (first >= last) {
    zero(address, bytes);
    return;
  }
  if (address < first) zero(address, first - address);
  if (last < end) zero(last, end - last);
  zero_for_child(first, last - first);
}

}  // namespace

void discard_memory(uint64_t address, uint64_t bytes) {
  if (runtime.is_fork_child.load(std::memory_order_relaxed)) {
    discard_of_child(address, bytes);
    return;
  }
  cache::Cache& cache = *runtime.cache;
  const uint64_t end = address + bytes;
  const uint64_t first = base::round_up(address, cache.page_bytes());
  const uint64_t last = base::round_down(end, cache.page_bytes());
  if (first >= last) {
    zero(address, bytes);
    return;
  }
  if (address < first) zero(address, first - address);
  if (last < end) zero(last, end - last);
  InRuntime inside;
  cache.discard(cache.page_of(first), (last - first) / cache.page_bytes(), lane_of(inside.thread()));
}

void discard_and_free(uint64_t address, uint64_t bytes) {
  // First of all nothing may hold the pages any more, or they would stay, zeroed, at addresses that are free.
  unmap_range(address, bytes);
  clear_slots();
  discard_memory(address, bytes);
  free_addresses(address, bytes);
}

}  // namespace spill
