// PageSet: a set of 16 ways, and what is needed to find a page in it. (set-associative page cache, "set-associative caching")
//
//   bytes 0-31   a tag of 16 bits for each way: bits of the page's hash; 0: the way is free
//   32-39        the set's lock; whether somebody waits; whether the set is in the flush queue (flush_queue.h)
//   40-          the policy's state (cache/sets/set_policy.h); with lfu, nrlfu, alfu and gclock a hit changes at most the first 16 bytes
//   then         a count of misses; a list of waiting calls; and, beginning on a new CPU line, 16 ways
//
// A hit looks at two CPU lines: the first one of the set, and that of the way. Hits in other sets do not touch them.
//
// Thread contract: tags, keys, and the policy's state change with the lock, except for what hits change. Zeroed memory is an empty set
// without frames.
#pragma once
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "cache/sets/set_policy.h"
#include "pagecache/way.h"
#include "sys/lock.h"
#include "task/call_waiter.h"

namespace pagecache {

inline constexpr uint32_t kMaxWays = 16;
inline constexpr uint32_t kMinWays = 8;  // how many have frames right after a set has been split

class PageSet {
 public:
  // Where the parts of a set are; the same in all sets of a cache.
  struct Layout {
    cache::SetPolicy policy = cache::SetPolicy::kAlfu;
    uint32_t misses_offset = 0;
    uint32_t waiters_offset = 0;
    uint32_t ways_offset = 0;
    uint32_t bytes = 0;  // of the whole set, in whole CPU lines

    explicit Layout(cache::SetPolicy of);
  };

  // Never 0.
  static uint16_t tag_of(uint64_t hash) {
    const auto tag = static_cast<uint16_t>(hash >> 48);
    return tag != 0 ? tag : 1;
  }

  sys::Mutex& lock() { return lock_; }
  Way& way(const Layout& layout, uint32_t index) { return at<Way>(layout.ways_offset)[index]; }

  // Calls see(way) for each way that may hold a page with this tag, until see returns true; returns whether it did. Without the lock, tags
  // may change meanwhile: only the way itself says which page it holds.
  template <class See>
  bool any_of_tag(uint16_t tag, const See& see) const {
    constexpr uint64_t kOnes = 0x0001000100010001;
    for (uint32_t i = 0; i < kMaxWays / 4; ++i) {
      // Lanes with an equal tag become 0. Lanes above a lane that is 0 may be mistaken for 0, too.
      const uint64_t difference = tags_[i].load(std::memory_order_relaxed) ^ (kOnes * tag);
      for (uint64_t found = (difference - kOnes) & ~difference & (kOnes << 15); found != 0;
           found &= found - 1)
        if (see(4 * i + static_cast<uint32_t>(std::countr_zero(found)) / 16)) return true;
    }
    return false;
  }
  // REQUIRES: the lock.
  uint16_t tag(uint32_t way) const {
    return static_cast<uint16_t>(tags_[way / 4].load(std::memory_order_relaxed) >> (way % 4 * 16));
  }
  void set_tag(uint32_t way, uint16_t tag) {
    const uint64_t word = tags_[way / 4].load(std::memory_order_relaxed);
    const unsigned shift = way % 4 * 16;
    tags_[way / 4].store((word & ~(uint64_t{0xffff} << shift)) | uint64_t{tag} << shift,
                         std::memory_order_relaxed);
  }

  void on_hit(const Layout& layout, uint32_t way) {
    by_policy(layout, [&](auto& policy) { policy.on_hit(way); });
  }
  // REQUIRES, for these: the lock; what the policy requires.
  void on_insert(const Layout& layout, uint32_t way) {
    by_policy(layout, [&](auto& policy) { policy.on_insert(way, tag(way)); });
  }
  void on_remove(const Layout& layout, uint32_t way, cache::Removal removal) {
    by_policy(layout, [&](auto& policy) { policy.on_remove(way, tag(way), removal); });
  }
  uint32_t pick_victim(const Layout& layout, cache::WayMask spared) {
    uint32_t victim = cache::kNoWay;
    by_policy(layout, [&](auto& policy) { victim = policy.pick_victim(spared); });
    return victim;
  }
  // The ways that pick_victim() would name in `count` calls if each way that it names were spared from then on. Uses a copy of the policy's
  // state. REQUIRES: the lock.
  cache::WayMask next_victims(const Layout& layout, cache::WayMask spared, uint32_t count);

  // How many misses the set has had since it was first used; at most 2^32 - 1. REQUIRES: the lock.
  uint32_t miss_count(const Layout& layout) { return *at<uint32_t>(layout.misses_offset); }
  void count_miss(const Layout& layout) {
    uint32_t& count = *at<uint32_t>(layout.misses_offset);
    if (count != ~uint32_t{0}) ++count;
  }

  // Is the set in the flush queue? Changes only with the queue's lock.
  bool is_queued() const { return is_queued_.load(std::memory_order_relaxed); }
  void set_queued(bool is_queued) { is_queued_.store(is_queued, std::memory_order_relaxed); }

  // How a call waits for an edge of one of the ways
  //  1 the call, with the lock, sets waits_, checks whether it still has to wait, and appends itself to the list
  //  2 it releases the lock and waits
  //  3 whoever takes an edge calls changed(), which reads waits_. If that is set, it removes all calls from the list, with the lock, and
  //    wakes them; they look again
  // No wakeup is lost: either step 1 sees the edge, or step 3 sees waits_, since both are sequentially consistent.
  void changed(const Layout& layout) {
    if (waits_.load() != 0) wake_all(layout);
  }
  // Steps 1 and 2; returns at once if still() says that there is nothing to wait for. `what`: what is waited for, for dumps of tasks. False:
  // the deadline has passed. REQUIRES: the lock, which this releases.
  template <class Still>
  bool wait(const Layout& layout, const char* what, uint64_t deadline_ns, const Still& still) {
    waits_.store(1);
    if (!still()) {
      lock_.unlock();
      return true;
    }
    Wait wait(*this, waiters(layout), what);
    waiters(layout).append(wait);
    lock_.unlock();
    return wait.wait_until(deadline_ns);
  }

 private:
  class Wait final : public task::CallWaiter {
   public:
    Wait(PageSet& set, task::CallWaiters& waiters, const char* what)
        : CallWaiter(what), set_(set), waiters_(waiters) {}
    bool abandon() override {
      sys::LockGuard scope(set_.lock_);
      return waiters_.remove(*this);
    }

   private:
    PageSet& set_;
    task::CallWaiters& waiters_;
  };

  template <class Act>
  void by_policy(const Layout& layout, const Act& act) {
    cache::visit_set_policy<kMaxWays>(layout.policy,
                                      [&]<class Policy>() { act(*at<Policy>(sizeof(PageSet))); });
  }
  template <class T>
  T* at(size_t offset) {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(this) + offset);
  }
  task::CallWaiters& waiters(const Layout& layout) { return *at<task::CallWaiters>(layout.waiters_offset); }
  void wake_all(const Layout& layout);

  std::atomic<uint64_t> tags_[kMaxWays / 4];
  sys::Mutex lock_;
  std::atomic<uint16_t> waits_;
  std::atomic<bool> is_queued_;
};
static_assert(sizeof(PageSet) == 40);

}  // namespace pagecache
