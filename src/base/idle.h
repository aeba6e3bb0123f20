// Idle: how long a thread that finds no work looks for some before it sleeps. A sleep and the wake that ends it cost both sides about 10 us, so a thread
// whose work comes sooner gains by looking. A thread whose work comes later loses that time once, and then ever more rarely, the longer looking has been
// in vain: a thread that waits for something slow, or whose CPU is needed by the thread that will answer, all but stops looking.
#pragma once
#include <algorithm>
#include <cstdint>

namespace base {

class Idle {
 public:
  static constexpr uint32_t kTurnsAlways = 4;
  static constexpr uint32_t kMaxSleepsBetween = 255;

  // A turn has found something to do.
  void end() {
    if (turns_ > kTurnsAlways) sleeps_between_ = 0;
    turns_ = 0;
  }

  // How many turns in a row have found nothing.
  uint32_t turns() const { return turns_; }

  struct Pace {
    uint64_t look_ns;
    uint32_t turns_per_clock;  // reading the clock is a system call
  };
  static constexpr Pace kPace = {20'000, 64};
  // A turn has found nothing: should the thread sleep now? `clock` is in ns.
  bool should_sleep(uint64_t (*clock)(), Pace pace = kPace) {
    ++turns_;
    if (turns_ < kTurnsAlways) return false;
    if (turns_ == kTurnsAlways) {
      if (sleeps_left_ == 0) {
        until_ns_ = clock() + pace.look_ns;
        return false;
      }
      --sleeps_left_;
    } else {
      if (turns_ % pace.turns_per_clock != 0 || clock() < until_ns_) return false;
      sleeps_left_ = sleeps_between_ = std::min(2 * sleeps_between_ + 1, kMaxSleepsBetween);
    }
    turns_ = 0;
    return true;
  }

 private:
  uint32_t turns_ = 0;           // in a row that found nothing, since the last sleep
  uint64_t until_ns_ = 0;        // when it stops looking, if turns_ > kTurnsAlways
  uint32_t sleeps_between_ = 0;  // how many sleeps come without looking first, after looking was in vain
  uint32_t sleeps_left_ = 0;     // how many of these sleeps are still to come
};

}  // namespace base
