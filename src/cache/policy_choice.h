// PolicyChoice: which policy is to choose the pages that leave, from how often pages had to be read under each, and how fast the program was.
//
// Partitions keep samples (policies.h): of the pages, by a hash of their number, one in `one_in` for each candidate, in the same share of the frames,
// from which pages leave as the candidate says (set duelling: Qureshi et al., Adaptive insertion policies for high performance caching,
// ISCA 2007, on pages of a cache that is fully associative). All other pages leave as the chosen policy says.
//
//               another sample clearly needed fewer reads              kSettle periods             kTrial periods
//        watch ───────────────────────────────────────────► settle ──────────────────────► trial ──────────────────► watch, with it if the
//                          it is chosen                                                                               program was no slower
//
// Clearly: fewer by kWorthwhile, since to change has a price, and by kDeviations times what chance makes of as many reads. Fewer reads may take longer
// all the same: pages that leave one here and one there come back one by one. So it is a trial: the samples are what they are, whatever the other pages
// do, and how many reads they need in a second says how fast the program goes. A candidate that made it slower is left alone
// for kBan periods, twice as many each time.
//
// Thread contract: any thread. Cost: report is called once for some thousand reads, and takes a lock of its own.
#pragma once
#include <atomic>
#include <cstdint>
#include <iterator>
#include <span>

#include "base/options.h"
#include "sys/kernel.h"
#include "sys/lock.h"

namespace cache {

using base::PolicyKind;

class PolicyChoice {
 public:
  // The first is chosen until something is known. The others of base::kPolicyKinds are near one of these.
  static constexpr PolicyKind kCandidates[] = {PolicyKind::kClock, PolicyKind::kS3fifo, PolicyKind::kRandom};
  static constexpr uint32_t kCandidateCount = std::size(kCandidates);

  static constexpr uint32_t kSettle = 3;
  static constexpr uint32_t kTrial = 4;
  static constexpr uint32_t kBan = 32;
  static constexpr uint32_t kMostBan = 1024;

  struct Parameters {
    uint32_t one_in = 64;           // pages, one is in the sample of a candidate
    uint32_t least_frames = 1024;   // of a partition; one that has fewer has no samples
    uint32_t least_reads = 16'384;  // of a period
    uint64_t (*now_ns)() = sys::monotonic_ns;
  };

  // `frame_count`: of the cache. A period is so many reads at least.
  void begin(const Parameters& parameters, uint64_t frame_count);
  bool is_on() const { return is_on_; }
  const Parameters& parameters() const { return parameters_; }

  PolicyKind chosen() const { return kCandidates[chosen_.load(std::memory_order_relaxed)]; }
  // So many pages of the candidates' samples were read since the partition reported last, and so many in all.
  void report(std::span<const uint32_t, kCandidateCount> sampled, uint32_t all);

 private:
  static constexpr double kOlder = 0.875;  // what reads count when another period has gone by
  static constexpr double kWorthwhile = 0.0625;
  static constexpr double kDeviations = 3;
  static constexpr double kSlower = 0.05;     // what chance makes of a program's speed
  static constexpr double kFarSlower = 0.25;  // ends a trial at once

  enum class Phase : uint8_t { kWatch, kSettle, kTrial };

  void end_period();
  void choose(uint32_t candidate, const char* why);
  uint32_t clearly_better() const;
  void begin_trial(uint32_t candidate);
  void end_trial();
  // How fast it went: reads of samples in a nanosecond.
  struct Speed {
    double reads = 0;
    double ns = 0;
    uint32_t periods = 0;
    double value() const { return ns > 0 ? reads / ns : 0; }
  };

  Parameters parameters_;
  bool is_on_ = false;
  uint64_t period_reads_ = 0;
  std::atomic<uint32_t> chosen_{0};
  // Under the lock.
  sys::Mutex mutex_;
  uint64_t period_so_far_ = 0;
  uint64_t period_sampled_ = 0;
  uint64_t period_began_ns_ = 0;
  double sampled_[kCandidateCount] = {};  // of this period and those before
  Phase phase_ = Phase::kWatch;
  uint32_t phase_periods_ = 0;
  uint32_t before_ = 0;                    // what was chosen before the trial
  double speed_before_ = 0;                // and how fast it went
  Speed speed_;                            // of this watch, or trial
  uint32_t banned_[kCandidateCount] = {};  // periods from now
  uint32_t ban_[kCandidateCount];          // how long the next one is
};

}  // namespace cache
