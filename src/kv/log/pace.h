// Pace: when each writer may go on while room is short. Writers as a whole go on as fast as the collector gains room, so that room lasts, and
// evenly, so that nobody waits for as long as a whole victim takes. The rate is set by a proportional controller:
//
//   gain      the grains that the collector has lately (kMemoryNs) gained for each ns of its work
//   writers   gain times the level, which is what is free as a share of what should be free, clamped to kMinLevel and kMaxLevel. This keeps
//             the level near 1
//   a turn    begins when those before it are over; each lasts as long as its grains take at the writers' rate. Time that no writer has
//             used is lost after kSlackNs
//
// A turn promises no room: the writer then asks for some, and waits if there is none.
// Thread contract: turn() may be called by any thread; the rest by one thread at a time.
#pragma once
#include <atomic>
#include <cstdint>

namespace kv {

class Pace {
 public:
  static constexpr uint64_t kSlackNs = 1'000'000;
  static constexpr uint64_t kMaxAheadNs = 1'000'000'000;

  void open(uint64_t grain_bytes) {
    first_grain_ns_ = static_cast<double>(grain_bytes) * kFirstByteNs;
    set_rate();
  }
  // The collector is at work from now on; does nothing if it is already. `level`: what is free as a share of what should be.
  void work(double level, uint64_t now_ns);
  // The collector is not at work any more.
  void rest() { gained_at_ns_ = 0; }
  // The collector has gained so many grains since the last call, or since work(). REQUIRES: it is at work.
  void gained(uint64_t grains, double level, uint64_t now_ns);

  // When the next turn, of this many grains, begins: by now_ns's clock, kMaxAheadNs from now at the latest, maybe in the past. Turns are in the
  // order of the calls.
  uint64_t turn(uint64_t grains, uint64_t now_ns);

 private:
  static constexpr double kFirstByteNs = 12.5;  // until the gain is known: that of 80 MB/s
  static constexpr double kKnownNs = 2e6;       // after this much work it is known
  static constexpr double kMemoryNs = 200e6;
  static constexpr double kMinLevel = 0.25, kMaxLevel = 2;
  // The weight of the latest level against those before it: room comes and goes by whole segments.
  static constexpr double kLevelShare = 1.0 / 8;
  static constexpr double kMaxGrainNs = 10e6;

  void set_rate();

  double first_grain_ns_ = 0;
  uint64_t gained_at_ns_ = 0;  // the last gained() or work(); 0: the collector is not at work
  double grains_ = 0;          // gained, with less weight the longer ago
  double worked_ns_ = 0;       // the work that gained them, weighted likewise
  double level_ = 1;
  std::atomic<uint64_t> grain_ps_{0};  // of a turn, for each grain
  std::atomic<uint64_t> next_ns_{0};   // when the next turn begins
};

}  // namespace kv
