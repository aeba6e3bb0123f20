#include "base/site_table.h"

namespace base {

// All accesses are relaxed: the caller's lock orders additions, and readers do not expect a consistent snapshot.
void SiteTable::add(uint64_t address) {
  Slot* least = &slots_[0];
  for (Slot& slot : slots_) {
    const uint64_t count = slot.count.load(std::memory_order_relaxed);
    if (count == 0) {
      slot.address.store(address, std::memory_order_relaxed);
      slot.count.store(1, std::memory_order_relaxed);
      return;
    }
    if (slot.address.load(std::memory_order_relaxed) == address) {
      slot.count.store(count + 1, std::memory_order_relaxed);
      return;
    }
    if (count < least->count.load(std::memory_order_relaxed)) least = &slot;
  }
  const uint64_t count = least->count.load(std::memory_order_relaxed);
  least->over.store(count, std::memory_order_relaxed);
  least->address.store(address, std::memory_order_relaxed);
  least->count.store(count + 1, std::memory_order_relaxed);
}

uint32_t SiteTable::hottest(std::span<Site> to) const {
  uint32_t found = 0;
  for (const Slot& slot : slots_) {
    const Site site = {slot.address.load(std::memory_order_relaxed),
                       slot.count.load(std::memory_order_relaxed), slot.over.load(std::memory_order_relaxed)};
    if (site.count == 0) break;
    uint32_t at = found;
    if (found < to.size()) {
      ++found;
    } else if (at == 0 || to[--at].count >= site.count) {
      continue;
    }
    for (; at > 0 && to[at - 1].count < site.count; --at) to[at] = to[at - 1];
    to[at] = site;
  }
  return found;
}

}  // namespace base
