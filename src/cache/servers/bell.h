// Bell: how a server sleeps until somebody has something for it, or its loads go on.
//
// Sleeper   1 lie_down()   2 looks once more for all that others may have for it   3 sleep(), or get_up() if there is something
// Others    1 store what they have for it   2 ring()
// Each side has a fence between its store and its load, so that one of them sees what the other has stored: the sleeper misses nothing.
//
// Thread contract: one sleeper; any thread rings.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/poller.h"
#include "sys/events.h"

namespace cache {

class Bell {
 public:
  // Errors: as sys::Event's.
  base::Expected<void> open() { return rung_.open(); }
  void close() { rung_.close(); }

  void lie_down() {
    asleep_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with must_ring()'s
  }
  void get_up() { asleep_.store(0, std::memory_order_relaxed); }
  // Sleeps until somebody rings, or `quiet` ends, and gets up. A poller without a descriptor and a time is looked after every 20 us. Returns false,
  // without sleeping, if `quiet` ends sooner than the kernel's timers wake anybody, or has ended.
  bool sleep(base::Quiet quiet);

  // Cost: a fence, and a system call if the sleeper sleeps.
  void ring() {
    if (must_ring()) rung_.set();
  }
  // The first half of ring(): must this thread wake the sleeper? Of several that ring, one must.
  bool must_ring() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return asleep_.load(std::memory_order_relaxed) != 0 &&
           asleep_.exchange(0, std::memory_order_relaxed) != 0;
  }

 private:
  std::atomic<uint32_t> asleep_{0};
  sys::Event rung_;
};

}  // namespace cache
