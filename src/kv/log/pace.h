// Pace: when each writer may go on while room is short: as fast as the collector gains some, so that it lasts, and evenly, so that nobody
// waits for what the collector does at a time, or between two victims. (The rate is found by what is left free: a proportional controller.)
//
//   gain      what the collector has gained for its time at work, of late (kMemoryNs)
//   writers   that, times how much is free for how much is to be: a quarter to twice as fast. So what is free stays near what is to be
//   a writer  has its turn when those before it have had theirs, each for as long as its grains take at that rate. What nobody uses within
//             kSlackNs is lost
//
// It promises no room: who has had its turn asks for some, and waits if there is none.
// Thread contract: turn() is for all; the rest, one call at a time.
#pragma once
#include <atomic>
#include <cstdint>

namespace kv {

class Pace {
 public:
  static constexpr uint64_t kSlackNs = 1'000'000;
  static constexpr uint64_t kAheadMostNs = 1'000'000'000;

  void open(uint64_t grain_bytes) {
    first_grain_ns_ = static_cast<double>(grain_bytes) * kFirstByteNs;
    set_rate();
  }
  // The collector is at work from now on; nothing if it is already. `level` is what is free, for 1 that is to be.
  void work(double level, uint64_t now_ns);
  // It is not, until work().
  void rest() { gained_at_ns_ = 0; }
  // It has gained so many grains since the last call, or since work(). REQUIRES: it is at work.
  void gained(uint64_t grains, double level, uint64_t now_ns);

  // When so many grains more may be written: in the past, or kAheadMostNs from now at the latest; not before a turn that was asked for
  // earlier.
  uint64_t turn(uint64_t grains, uint64_t now_ns);

 private:
  static constexpr double kFirstByteNs = 12.5;  // as if it gained 80 MB/s, until it is known how much
  static constexpr double kKnownNs = 2e6;       // of work, before it says how fast that is
  static constexpr double kMemoryNs = 200e6;
  static constexpr double kLevelLeast = 0.25, kLevelMost = 2;
  static constexpr double kLevelShare =
      1.0 / 8;  // of the last level: what is free comes and goes by whole segments
  static constexpr double kGrainNsMost = 10e6;

  void set_rate();

  double first_grain_ns_ = 0;
  uint64_t gained_at_ns_ = 0;  // when last; 0: it rests
  double grains_ = 0;          // gained
  double worked_ns_ = 0;       // for them; of both what is long ago counts less
  double level_ = 1;
  std::atomic<uint64_t> grain_ps_{0};  // what a grain takes
  std::atomic<uint64_t> next_ns_{0};   // the next turn
};

}  // namespace kv
