#include "pagecache/page_set.h"

#include <algorithm>

namespace pagecache {

PageSet::Layout::Layout(cache::SetPolicy of) : policy(of) {
  const size_t policy_bytes =
      cache::visit_set_policy<kWaysMost>(of, []<class Policy>() { return sizeof(Policy); });
  waiters_offset =
      static_cast<uint32_t>(base::round_up(sizeof(PageSet) + policy_bytes, alignof(task::CallWaiters)));
  ways_offset =
      static_cast<uint32_t>(base::round_up(waiters_offset + sizeof(task::CallWaiters), base::kLineBytes));
  bytes = static_cast<uint32_t>(base::round_up(ways_offset + kWaysMost * sizeof(Way), base::kLineBytes));
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
