// Choice points, where a deterministic test decides what happens next (simulation.h): steps between workers, locks, the clock, a turn
// without work. In the product a choice point does nothing, and the locks and the clock are real ones. The tests' library has the same
// sources, built with SPILLWAY_SIMULATED.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/idle.h"
#include "sys/kernel.h"
#include "sys/lock.h"

namespace task {

#ifdef SPILLWAY_SIMULATED

// Between two steps of a protocol between workers: another worker may run before this returns.
void choice_point();
// Chooses one of `count` things, by the seed.
uint32_t choose(uint32_t count);
// The simulated clock.
uint64_t now_ns();
// Called in a turn that has found nothing to do.
inline void relax() {}
inline constexpr base::Idle::Pace kPace = {0, 8};

// A lock for simulated workers: a worker that finds it held lets others run.
class InterLock {
 public:
  void lock() {
    choice_point();
    while (held_) choice_point();
    held_ = true;
  }
  void unlock() {
    held_ = false;
    choice_point();
  }

 private:
  bool held_ = false;
};

#else

inline void choice_point() {}
inline uint32_t choose(uint32_t) { return 0; }
inline uint64_t now_ns() { return sys::monotonic_ns(); }
inline void relax() { __builtin_ia32_pause(); }
inline constexpr base::Idle::Pace kPace = base::Idle::kPace;
using InterLock = sys::Mutex;

#endif

// For data that only one worker uses. No task is suspended while it holds this or an InterLock, so it need not do anything.
class IntraLock {
 public:
  void lock() {}
  void unlock() {}
};

// A word that tasks of any worker change atomically. Whoever sees a change also sees what was written before it.
class InterWord {
 public:
  uintptr_t get() const { return word_.load(std::memory_order_relaxed); }
  void set(uintptr_t value) { word_.store(value, std::memory_order_release); }
  // False: the word is not `expected`, and is unchanged.
  bool replace(uintptr_t expected, uintptr_t value) {
    return word_.compare_exchange_strong(expected, value, std::memory_order_acq_rel,
                                         std::memory_order_relaxed);
  }
  // Adds the bits; returns the word before.
  uintptr_t mark(uintptr_t bits) { return word_.fetch_or(bits, std::memory_order_acq_rel); }

 private:
  std::atomic<uintptr_t> word_{0};
};

// The same for tasks of one worker.
class IntraWord {
 public:
  uintptr_t get() const { return word_; }
  void set(uintptr_t value) { word_ = value; }
  bool replace(uintptr_t expected, uintptr_t value) {
    if (word_ != expected) return false;
    word_ = value;
    return true;
  }
  uintptr_t mark(uintptr_t bits) {
    const uintptr_t before = word_;
    word_ |= bits;
    return before;
  }

 private:
  uintptr_t word_ = 0;
};

template <class Lock>
using WordBeside = std::conditional_t<std::is_same_v<Lock, IntraLock>, IntraWord, InterWord>;

}  // namespace task
