#include "pagecache/page_set.h"

#include <algorithm>

namespace pagecache {

PageSet::Layout::Layout(cache::SetPolicy of) : policy(of) {
  const size_t policy_bytes =
      cache::visit_set_policy<kMaxWays>(of, []<class Policy>() { return sizeof(Policy); });
  misses_offset = static_cast<uint32_t>(base::round_up(sizeof(PageSet) + policy_bytes, sizeof(uint32_t)));
  waiters_offset =
      static_cast<uint32_t>(base::round_up(misses_offset + sizeof(uint32_t), alignof(task::CallWaiters)));
  ways_offset =
      static_cast<uint32_t>(base::round_up(waiters_offset + sizeof(task::CallWaiters), base::kLineBytes));
  bytes = static_cast<uint32_t>(base::round_up(ways_offset + kMaxWays * sizeof(Way), base::kLineBytes));
}

// Copies byte by byte, since hits may change numbers meanwhile. A torn number only puts one page at a wrong position in the order.
cache::WayMask PageSet::next_victims(const Layout& layout, cache::WayMask spared, uint32_t count) {
  return cache::visit_set_policy<kMaxWays>(layout.policy, [&]<class Policy>() {
    alignas(Policy) std::byte copy[sizeof(Policy)];
    std::byte* const bytes = at<std::byte>(sizeof(PageSet));
    for (size_t i = 0; i < sizeof copy; ++i)
      copy[i] = std::atomic_ref(bytes[i]).load(std::memory_order_relaxed);
    auto& policy = *reinterpret_cast<Policy*>(copy);
    cache::WayMask victims = 0;
    for (; count > 0; --count) {
      const uint32_t victim = policy.pick_victim(spared | victims);
      if (victim == cache::kNoWay) break;
      victims |= cache::way_bit(victim);
    }
    return victims;
  });
}

// Step 3.
void PageSet::wake_all(const Layout& layout) {
  task::CallWaiters all;
  {
    sys::LockGuard scope(lock_);
    waits_.store(0);
    all = waiters(layout).take_all();
  }
  all.wake_all();
}

}  // namespace pagecache
