// Bell: lets a server sleep until somebody has work for it, or its loads progress.
//
// Sleeper   1 lie_down()   2 looks once more for work from others   3 sleep(), or get_up() if there is some
// Others    1 store the work   2 ring()
// Each side has a fence between its store and its load, so that at least one of them sees what the other has stored: no wakeup is lost.
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
  // Errors: as sys::Event::open.
  base::Expected<void> open() { return rung_.open(); }
  void close() { rung_.close(); }

  void lie_down() {
    asleep_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with must_ring()'s
  }
  void get_up() { asleep_.store(0, std::memory_order_relaxed); }
  // Sleeps until somebody rings or `quiet` ends, and gets up. A poller with neither descriptor nor time is polled every 20 us. Returns false, without
  // sleeping, if `quiet` has ended, or ends sooner than the kernel's timers can wake a thread.
  bool sleep(base::Quiet quiet);

  // Cost: a fence, and a system call if the sleeper sleeps.
  void ring() {
    if (must_ring()) rung_.set();
  }
  // The first half of ring(): must this thread wake the sleeper? Of several that ring, exactly one must.
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
