#include "kv/index/table.h"

#include "base/check.h"
#include "sys/spin.h"

namespace kv {

RegionWord Table::lock(uint32_t region) {
  for (int spins = 0;; ++spins) {
    uint64_t bits = words[region].load(std::memory_order_relaxed);
    // Pairs with the release in unlock().
    if ((bits & RegionWord::kLocked) == 0 &&
        words[region].compare_exchange_weak(bits, bits | RegionWord::kLocked, std::memory_order_acquire)) {
      // Whoever reads what is stored to a slot from now on sees the lock as well: pairs with the fence in Index::search().
      std::atomic_thread_fence(std::memory_order_release);
      return {bits | RegionWord::kLocked};
    }
    sys::spin(spins);
  }
}

// Records that an entry lies this far from its home. Adjacent homes share a reach, and their entries may be moved under the locks of different regions:
// hence the compare-and-swap.
void Table::reach(uint32_t home, uint32_t offset) {
  std::atomic<uint8_t>& known = reaches[home / kReachHomes];
  const auto groups = static_cast<uint8_t>(offset / kGroup + 1);
  uint8_t before = known.load(std::memory_order_relaxed);
  while (before < groups && !known.compare_exchange_weak(before, groups, std::memory_order_relaxed)) {
  }
}

void Table::measure(uint32_t region) {
  const uint32_t begin = region * kRegionSlots;
  for (uint32_t i = 0; i < kRegionSlots; i += kReachHomes)
    reaches[(begin + i) / kReachHomes].store(0, std::memory_order_relaxed);
  for (uint32_t i = 0; i < kRegionSlots + kNeighbourhood - 1; ++i) {
    const uint32_t slot = slot_at(begin, i);
    const uint64_t entry = at(slot);
    if (entry == 0) continue;
    const uint32_t offset = EntryFormat::offset(entry), home = slot_at(slot, kSlots - offset);
    if (region_of(home) == region) reach(home, offset);
  }
}

bool Table::place(uint32_t home, uint64_t entry, bool both) {
  const std::atomic<uint64_t>* const all = slots.load(std::memory_order_relaxed);
  // 1 The first free slot within the regions. Distances are from home.
  const uint32_t limit = kRegionSlots - home % kRegionSlots + (both ? kRegionSlots : 0);
  uint32_t free = limit;
  for (uint32_t distance = 0; distance < limit; distance += kGroup) {
    const uint32_t begin = slot_at(home, distance);
    uint32_t found = 0;
    if (begin > kSlots - kGroup) {
      for (uint32_t i = 0; i < kGroup; ++i) found |= (at(slot_at(begin, i)) == 0 ? 1u : 0u) << i;
    } else {
      const __m128i zero = _mm_setzero_si128();
      found = halves(all + begin, true).equal(zero, zero);
    }
    if (found != 0) {
      free = distance + static_cast<uint32_t>(std::countr_zero(found));
      break;
    }
  }
  if (free >= limit) return false;
  // 2 While that is too far from home, an entry before it that may lie there is moved into it, the farthest one if possible.
  while (free >= kNeighbourhood) {
    uint32_t from = free - (kNeighbourhood - 1);
    for (; from < free; ++from) {
      const uint64_t other = at(slot_at(home, from));
      const uint32_t offset = EntryFormat::offset(other) + (free - from);
      if (offset >= kNeighbourhood) continue;
      reach(slot_at(home, free + kSlots - offset), offset);
      set(slot_at(home, free), EntryFormat::with_offset(other, offset));
      set(slot_at(home, from), 0);
      break;
    }
    if (from == free) return false;
    free = from;
  }
  reach(home, free);
  set(slot_at(home, free), EntryFormat::with_offset(entry, free));
  return true;
}

uint64_t Table::count() const {
  uint64_t sum = 0;
  for (const auto& word : words) sum += RegionWord{word.load(std::memory_order_relaxed)}.count();
  return sum;
}

}  // namespace kv
