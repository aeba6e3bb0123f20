// Gate: holds off the calls of a session for a moment, so that another thread may act for it. Calls pay next to nothing for it.
//
//   a call: enter() ... leave()          another thread: shut() ... open()
//
//  1 a call marks itself inside, then checks whether the gate is shut; if it is, the call takes its mark back and waits until the gate is open
//  2 the thread that shuts the gate marks it shut, then has all threads pass a barrier, then waits until no call is inside
// At least one of the two sees the other's mark: in 1 the compiler keeps the store before the load, and the barrier of 2 makes the processor do so. Where
// the kernel has no barriers, each call has a fence.
//
// Thread contract: one call at a time, by any thread; one thread at a time shuts it, and not from inside a call.
#pragma once
#include <atomic>
#include <climits>

#include "sys/barrier.h"
#include "sys/lock.h"

namespace sys {

class Gate {
 public:
  // `has_barrier`: the kernel has barriers for this process (register_barrier).
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
  // Does a thread wait for the call that is inside? A call that waits for others has to ask, and if so to leave and enter again.
  bool is_shut() const { return is_shut_.load(std::memory_order_relaxed) != 0; }
  // Pairs with the acquire in shut().
  void leave() { is_inside_.store(0, std::memory_order_release); }

  // May block for as long as a call takes. A call that leaves wakes nobody, so this polls.
  void shut() {
    begin_shut();
    pass_seldom(has_barrier_);
    end_shut();
  }
  // The same for several gates: begin_shut() for each, pass_seldom() once, end_shut() for each. All are marked before any is waited for, so no call inside
  // one gate waits for a call that cannot know yet that its own gate is being shut.
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
