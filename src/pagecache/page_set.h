// PageSet: the pages of a set, 16 at most, and what is looked at to find one. (set-associative page cache, "set-associative caching")
//
//   bytes 0-31   a tag of 16 bits for each way, 0: it is free
//   32-39        the set's lock, whether somebody waits, whether it is to be flushed (flush_queue.h)
//   40-          what the policy knows (cache/sets/set_policy.h); of lfu, nrlfu, alfu and gclock the next 16 bytes are all that a hit changes
//   then         how often a page had to come; who waits; and, in CPU lines of their own, 16 ways
//
// A hit looks at two CPU lines: this one, and that of its way. Nobody else's hits in other sets touch them.
//
// Thread contract: tags, keys, and what the policy knows change under the lock, but for what hits change. Zeroed memory is an empty set
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

inline constexpr uint32_t kWaysMost = 16;
inline constexpr uint32_t kWaysLeast = 8;  // that have frames

class PageSet {
 public:
  // Where things are; the same in all sets of a cache.
  struct Layout {
    cache::SetPolicy policy = cache::SetPolicy::kAlfu;
    uint32_t misses_offset = 0;
    uint32_t waiters_offset = 0;
    uint32_t ways_offset = 0;
    uint32_t bytes = 0;  // of a set, whole CPU lines

    explicit Layout(cache::SetPolicy of);
  };

  // Never 0.
  static uint16_t tag_of(uint64_t hash) {
    const auto tag = static_cast<uint16_t>(hash >> 48);
    return tag != 0 ? tag : 1;
  }

  sys::Mutex& lock() { return lock_; }
  Way& way(const Layout& layout, uint32_t index) { return at<Way>(layout.ways_offset)[index]; }

  // Calls see(way) for each way that may hold a page of this tag, until it returns true; returns whether it has. Tags may change
  // meanwhile, without the lock: only the way tells what it holds.
  template <class See>
  bool any_of_tag(uint16_t tag, const See& see) const {
    constexpr uint64_t kOnes = 0x0001000100010001;
    for (uint32_t i = 0; i < kWaysMost / 4; ++i) {
      // Those that are equal become 0. Of lanes above one that is 0, others may be taken for it, too.
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
  // REQUIRES: the lock; those of a policy.
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
  // Those that would be picked if it were done `count` times, each spared from then on. A copy of what the policy knows is asked.
  // REQUIRES: the lock.
  cache::WayMask next_victims(const Layout& layout, cache::WayMask spared, uint32_t count);

  // Pages that had to come, since the set was first one; at most 2^32 - 1. REQUIRES: the lock.
  uint32_t miss_count(const Layout& layout) { return *at<uint32_t>(layout.misses_offset); }
  void count_miss(const Layout& layout) {
    uint32_t& count = *at<uint32_t>(layout.misses_offset);
    if (count != ~uint32_t{0}) ++count;
  }

  // Changes under the lock of the queue that the set is in.
  bool is_queued() const { return is_queued_.load(std::memory_order_relaxed); }
  void set_queued(bool is_queued) { is_queued_.store(is_queued, std::memory_order_relaxed); }

  // Waiting for an edge of one of its ways
  //  1 who waits, with the lock: says so in waits_, looks whether there is still something to wait for, and appends itself
  //  2 it gives the lock back and waits
  //  3 whoever took an edge looks into waits_; and if somebody waits, with the lock: takes all out, and wakes them. They look again
  // Nothing is lost, since either 1 sees the edge, or 3 sees that somebody waits: both are sequentially consistent.
  void changed(const Layout& layout) {
    if (waits_.load() != 0) wake_all(layout);
  }
  // REQUIRES: the lock, which is given back. Calls still() to know whether to wait. False: the deadline has come.
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
    cache::visit_set_policy<kWaysMost>(layout.policy,
                                       [&]<class Policy>() { act(*at<Policy>(sizeof(PageSet))); });
  }
  template <class T>
  T* at(size_t offset) {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(this) + offset);
  }
  task::CallWaiters& waiters(const Layout& layout) { return *at<task::CallWaiters>(layout.waiters_offset); }
  void wake_all(const Layout& layout);

  std::atomic<uint64_t> tags_[kWaysMost / 4];
  sys::Mutex lock_;
  std::atomic<uint16_t> waits_;
  std::atomic<bool> is_queued_;
};
static_assert(sizeof(PageSet) == 40);

}  // namespace pagecache
