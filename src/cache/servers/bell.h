// Bell: how a server sleeps until somebody has something for it, or its loads go on.
//
// Sleeper   1 lie_down()   2 looks once more for all that others may have for it   3 sleep(), or get_up() if there was something
// Others    1 store what they have for it   2 ring()
// Either sees the other's store, by a fence on both sides: nothing is slept over.
//
// Thread contract: one sleeper; anybody rings.
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
  // Until it rings, or `quiet` ends; a poller that has no descriptor and no time is looked after every 20 us. What ends sooner
  // than the kernel's timers wake anybody, or is to be polled now, is not slept for: false. Gets up.
  bool sleep(base::Quiet quiet);

  // Cost: a fence; a system call when it sleeps.
  void ring() {
    if (must_ring()) rung_.set();
  }
  // Its first half: says whether to wake it; to one of many.
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
