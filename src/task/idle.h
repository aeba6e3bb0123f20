// Idle: for how long a worker that finds nothing to do looks again before it sleeps. A sleep and the wake that ends it cost both
// sides some 10 us, so a worker that is answered sooner gains by looking on. One that is not pays that once, and then the more
// rarely, the longer looking has been in vain: a worker that waits for slow things, or whose CPU is wanted by who will answer, all
// but stops to look.
#pragma once
#include <algorithm>
#include <cstdint>

#include "task/choice.h"

namespace task {

class Idle {
 public:
  static constexpr uint32_t kTurnsAlways = 4;
  static constexpr uint32_t kMostSleepsBetween = 255;

  // A turn has found something.
  void end() {
    if (turns_ > kTurnsAlways) sleeps_between_ = 0;
    turns_ = 0;
  }

  // A turn has found nothing: should the worker sleep now? `clock` is now_ns, but for tests.
  bool should_sleep(uint64_t (*clock)() = [] { return now_ns(); }) {
    ++turns_;
    if (turns_ < kTurnsAlways) return false;
    if (turns_ == kTurnsAlways) {
      if (sleeps_left_ == 0) {
        until_ns_ = clock() + kLookNs;
        return false;
      }
      --sleeps_left_;
    } else {
      // The clock is a system call.
      if (turns_ % kTurnsPerClock != 0 || clock() < until_ns_) return false;
      sleeps_left_ = sleeps_between_ = std::min(2 * sleeps_between_ + 1, kMostSleepsBetween);
    }
    turns_ = 0;
    return true;
  }

 private:
  uint32_t turns_ = 0;           // that found nothing, since one did or since a sleep
  uint64_t until_ns_ = 0;        // it looks on, when turns_ > kTurnsAlways
  uint32_t sleeps_between_ = 0;  // without a look, after one that was in vain
  uint32_t sleeps_left_ = 0;     // of these
};

}  // namespace task
