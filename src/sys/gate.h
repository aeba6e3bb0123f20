// Gate: keeps the calls of a session out for a moment, so that another thread may act in its place; calls pay next to nothing for it.
//
//   a call: enter() ... leave()          another thread: shut() ... open()
//
//  1 a call says that it is inside, and then looks whether the gate is shut; if so it is not inside, and waits until it is open
//  2 who shuts the gate says so, then has all threads pass a barrier, and then waits until nobody is inside
// One of them sees what the other has said: 1 has the compiler keep the order, and the barrier of 2 the processor. Where the kernel has
// none each call has a fence.
//
// Thread contract: one call at a time, by any thread; one shuts it at a time. Whoever shuts it is not inside.
#pragma once
#include <atomic>
#include <climits>

#include "sys/barrier.h"
#include "sys/lock.h"

namespace sys {

class Gate {
 public:
  // Does the kernel have barriers for this process?
  explicit constexpr Gate(bool has_barrier) : has_barrier_(has_barrier) {}

  // Cost: a store, a load, and another store.
  void enter() {
    for (;;) {
      is_inside_.store(1, std::memory_order_relaxed);
      pass_often(has_barrier_);
      // Pairs with the release in open().
      if (is_shut_.load(std::memory_order_acquire) == 0) [[likely]]
        return;
      leave();
      futex_wait(is_shut_, 1);
    }
  }
  // Does somebody wait for the call that is inside? One that waits for others leaves, and comes back.
  bool is_shut() const { return is_shut_.load(std::memory_order_relaxed) != 0; }
  // Pairs with the acquire in shut().
  void leave() { is_inside_.store(0, std::memory_order_release); }

  // May block for as long as a call takes. Whoever is inside tells nobody when it leaves: this looks again.
  void shut() {
    begin_shut();
    pass_seldom(has_barrier_);
    end_shut();
  }
  // The same of several gates, so that nobody inside of one waits for somebody who does not know of it yet: begin for each, pass_seldom(), end for each.
  void begin_shut() { is_shut_.store(1, std::memory_order_relaxed); }
  void end_shut() {
    while (is_inside_.load(std::memory_order_acquire) != 0) futex_wait(is_inside_, 1, kLookNs);
  }
  void open() {
    is_shut_.store(0, std::memory_order_release);
    futex_wake(is_shut_, INT_MAX);
  }

 private:
  static constexpr uint64_t kLookNs = 200'000;

  std::atomic<uint32_t> is_inside_{0};
  std::atomic<uint32_t> is_shut_{0};
  const bool has_barrier_;
};

}  // namespace sys
