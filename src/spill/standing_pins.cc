#include "spill/standing_pins.h"

#include <errno.h>

#include "spill/budget.h"
#include "spill/pins.h"
#include "spill/runtime.h"
#include "sys/lock.h"

namespace spill {
namespace {

struct PinnedRange {
  uint64_t address;
  uint64_t bytes;  // 0: none
};

constinit sys::Mutex mutex;
constinit PinnedRange ranges[kMaxPinnedRanges] = {};
// In pages; one that several ranges have counts as often. Changed under the mutex.
constinit std::atomic<uint64_t> pinned_count = 0;

base::PageId first_page(const PinnedRange& range) { return runtime.cache->page_of(range.address); }
base::PageId last_page(const PinnedRange& range) {
  return runtime.cache->page_of(range.address + range.bytes - 1);
}
uint64_t page_count(const PinnedRange& range) {
  return index(last_page(range)) - index(first_page(range)) + 1;
}

PinnedRange* find(uint64_t address, uint64_t bytes) {
  for (PinnedRange& range : ranges)
    if (range.bytes == bytes && (bytes == 0 || range.address == address)) return &range;
  return nullptr;
}

bool is_in_a_range(base::PageId page) {
  for (const PinnedRange& range : ranges)
    if (range.bytes != 0 && first_page(range) <= page && page <= last_page(range)) return true;
  return false;
}

// Lets those of the pages leave that are in no range any more.
void let_go(base::PageId first, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    if (!is_in_a_range(first + i)) runtime.cache->end_stay(first + i);
}

// REQUIRES: mutex.
void end_pin(PinnedRange& range) {
  const PinnedRange ended = range;
  range = {};
  pinned_count -= page_count(ended);
  let_go(first_page(ended), page_count(ended));
}

}  // namespace

int pin_range(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return 0;
  const PinnedRange wanted = {address, bytes};
  const uint64_t count = page_count(wanted);
  InRuntime inside;
  freeze_budget();
  sys::LockGuard guard(mutex);
  PinnedRange* const free = find(0, 0);
  const bool has_room = free != nullptr && count_as_staying(pinned_count, count);
  thaw_budget();
  if (!has_room) return ENOMEM;
  const base::PageId first = first_page(wanted);
  cache::Workspace& workspace = workspace_of(inside.thread());
  for (uint64_t i = 0; i < count; ++i) {
    if (auto pinned = runtime.cache->pin(first + i, workspace); !pinned) {
      let_go(first, i);
      pinned_count -= count;
      return pinned.error().number;
    }
    runtime.cache->stay(first + i);
  }
  *free = wanted;
  return 0;
}

int unpin_range(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return 0;
  InRuntime inside;
  sys::LockGuard guard(mutex);
  PinnedRange* const range = find(address, bytes);
  if (range == nullptr) return EINVAL;
  end_pin(*range);
  return 0;
}

void end_pins_of(uint64_t address, uint64_t bytes) {
  InRuntime inside;
  sys::LockGuard guard(mutex);
  for (PinnedRange& range : ranges)
    if (range.bytes != 0 && range.address < address + bytes && address < range.address + range.bytes)
      end_pin(range);
}

uint64_t standing_pin_count() { return pinned_count.load(std::memory_order_relaxed); }

void freeze_standing_pins() { mutex.lock(); }
void thaw_standing_pins() { mutex.unlock(); }

void pin_standing_again() {
  for (const PinnedRange& range : ranges) {
    if (range.bytes == 0) continue;
    for (uint64_t i = 0; i < page_count(range); ++i) {
      runtime.cache->pin_again(first_page(range) + i);
      runtime.cache->stay(first_page(range) + i);
    }
  }
}

}  // namespace spill
