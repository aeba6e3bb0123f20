// The points where a deterministic test decides what happens next (simulation.h). In the product they are nothing, a
// lock, a clock and a sleep; the library of the tests is the same sources built with SPILLWAY_SIMULATED.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sys/kernel.h"
#include "sys/lock.h"

namespace task {

#ifdef SPILLWAY_SIMULATED

// Between two steps of a protocol between workers: another worker may run before this returns.
void choice_point();
// One of `count` things, by the seed.
uint32_t choose(uint32_t count);
// The simulated clock.
uint64_t now_ns();
// A turn that found nothing.
inline void relax() {}
// Idle (idle.h).
inline constexpr uint64_t kLookNs = 0;
inline constexpr uint32_t kTurnsPerClock = 8;

// A lock of simulated workers: who finds it held lets another run.
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
inline constexpr uint64_t kLookNs = 20'000;
inline constexpr uint32_t kTurnsPerClock = 64;
using InterLock = sys::Mutex;

#endif

// For what one worker alone uses: no lock is a lock, too. (No task is suspended while it holds one or the other.)
class IntraLock {
 public:
  void lock() {}
  void unlock() {}
};

}  // namespace task
