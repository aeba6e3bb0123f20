// PolicyChoice: chooses the replacement policy, by how often pages had to be read under each candidate, and how much I/O the program needed.
//
// Samples. Partitions keep one for each candidate (policies.h): share() of kParts of the pages, by a hash of their number, in the same share of the
// frames, from which pages leave by the candidate's rule (set duelling: Qureshi et al., Adaptive insertion policies for high performance caching,
// ISCA 2007; here on pages of a fully associative cache). All other pages leave by the chosen policy's rule.
//
// Size of samples. They are large as long as it is not clear which policy is best, since small ones tell little, and late. What they tell depends on how
// many frames they have, not on their share, so the share is smaller in caches of many frames (large_share). They become small when nothing has spoken
// against the chosen policy for kSure periods, since most of their pages leave by worse policies. Small samples are only used to decide whether to make
// them large again.
//
// Beginning. The first periods (warm_up) do not count: the pages that leave then are mostly those that the program wrote when it made its data, so the I/O
// is several times what it is later, and nearly any candidate would seem to need less.
//
//               another sample clearly needed fewer reads              kSettle periods            clearly more I/O or less, kTrial periods
//        watch ───────────────────────────────────────────► settle ──────────────────────► trial ───────────────────────────────────────► watch
//                          it is chosen                       │                                │      with it, or as before
//                                                             └── far more I/O: as before      └── the program does something else: with it, but
//                                                                                                  nothing is known
//
// A sample is compared with all pages of the chosen policy, scaled to the same number of pages. "Clearly" means: fewer reads by kWorthwhile, since a
// change has a price, and by kDeviations standard deviations of that many reads.
//
// Trials. Fewer reads may still be more I/O: pages that leave from scattered places come back one by one instead of in runs. So a candidate is first on
// trial. The samples do not depend on what the other pages do, so the I/O for each of their reads tells what the program pays. I/O is counted (Io),
// not timed, since others use the machine and the device, too. A candidate that caused more of it is excluded for kBan periods, and each time for
// twice as many.
//
// Another program. A program may change what it does. Then the samples' shares of the reads change clearly (kOtherShares); or, while no candidate is on
// trial, a read takes much more or much less I/O than before (kOtherIo). In both cases everything that was known of reads, of I/O and of excluded
// candidates is forgotten. In the second case the first candidate is tried again, since samples do not tell under which policy pages are read in runs.
//
// Thread contract: any thread. Cost: report() is called once every thousand reads or so, and takes a lock of its own.
#pragma once
#include <atomic>
#include <cstdint>
#include <iterator>

#include "base/options.h"
#include "sys/lock.h"

namespace cache {

using base::PolicyKind;

class PolicyChoice {
 public:
  // The first is chosen until something is known. The remaining one of base::kPolicyKinds is too close to it to be a candidate.
  static constexpr PolicyKind kCandidates[] = {PolicyKind::kNrlfu, PolicyKind::kTwoQueues,
                                               PolicyKind::kS3fifo, PolicyKind::kRandom, PolicyKind::kClock};
  static constexpr uint32_t kCandidateCount = std::size(kCandidates);

  static constexpr uint32_t kSure = 16;
  static constexpr uint32_t kSettle = 3;
  static constexpr uint32_t kTrial = 8;
  static constexpr uint32_t kBan = 64;
  static constexpr uint32_t kMaxBan = 4096;

  static constexpr uint32_t kParts = 256;
  static constexpr uint32_t kLargeShare = 12;  // at most

  struct Parameters {
    uint32_t least_sample = 32;    // frames of a small sample, in a partition of the usual size
    uint32_t least_frames = 1024;  // a partition with fewer frames has no samples
    uint32_t least_reads = 1024;   // of a period
    uint32_t large_sample = 192;   // frames of a large one, or half as many in each partition
    uint32_t warm_up = 8;          // periods that do not count
  };

  // What was read and written. An operation itself counts as much as moving kPagesOfOperation OS pages.
  struct Io {
    static constexpr uint32_t kPagesOfOperation = 8;
    uint32_t operations = 0;
    uint32_t os_pages = 0;
  };
  // What a partition has seen since its last report.
  struct Report {
    uint32_t sampled[kCandidateCount] = {};  // pages that were read, by candidate in whose sample they are
    uint32_t reads = 0;                      // pages that were read, in all
    Io io;
  };

  // For a cache of frame_count frames in so many partitions. Called once, before all else.
  void begin(const Parameters& parameters, uint64_t frame_count, uint32_t partition_count);
  bool is_on() const { return is_on_; }
  const Parameters& parameters() const { return parameters_; }

  PolicyKind chosen() const { return kCandidates[chosen_.load(std::memory_order_relaxed)]; }
  uint32_t share() const { return share_.load(std::memory_order_relaxed); }
  uint32_t large_share() const { return large_share_; }
  void report(const Report& report);

 private:
  static constexpr double kOlder = 31.0 / 32;  // the factor by which older counts fade with each period
  static constexpr double kWorthwhile = 0.05;
  static constexpr double kDeviations = 3;
  static constexpr double kFarMore = 1.5;  // I/O that ends a trial while frames settle
  // Chi-square with four degrees of freedom: by chance it is exceeded once in two hundred thousand times.
  static constexpr double kOtherShares = 30;
  static constexpr double kOtherIo = 1.5;     // ratio of the I/O for each read to that before
  static constexpr uint32_t kFewPeriods = 2;  // nothing is tried before so many periods are known
  static constexpr uint32_t kShortWhile = 4;  // periods that are compared with the earlier ones

  enum class Phase : uint8_t { kWatch, kSettle, kTrial };

  // Sums over some periods.
  struct Counted {
    double sampled[kCandidateCount] = {};
    double reads = 0;
    double io = 0;  // in OS pages
    uint32_t periods = 0;

    double all_sampled() const;
    double io_of_sampled() const { return io / all_sampled(); }
    double io_of_read() const { return io / reads; }
    void add(const Counted& more);
    void age();
    bool has_other_shares_than(const Counted& other) const;
  };

  void end_period(const Counted& period);
  void watch(const Counted& period);
  void begin_trial(uint32_t candidate, const char* why);
  void judge(const Counted& period);
  void end_trial(bool is_worse);
  void begin_anew(const Counted& samples, const Counted& own);
  void choose(uint32_t candidate, const char* why);
  void enlarge();
  void reduce();
  uint32_t clearly_better() const;

  Parameters parameters_;
  bool is_on_ = false;
  uint64_t period_reads_ = 0;
  uint32_t small_share_ = kLargeShare;
  uint32_t large_share_ = kLargeShare;
  std::atomic<uint32_t> chosen_{0};
  std::atomic<uint32_t> share_{kLargeShare};
  // Under the lock.
  uint32_t warm_up_ = 0;  // periods left
  sys::Mutex mutex_;
  Counted period_;   // the present one so far
  Counted samples_;  // of the samples, whatever policy was chosen; its io is not used
  Counted own_;      // under the chosen policy, without the periods in which frames settled
  Counted earlier_;  // in a watch, before lately_
  Counted lately_;   // in a watch, up to kShortWhile periods
  Phase phase_ = Phase::kWatch;
  bool tries_first_ = false;  // try the first candidate as soon as enough is known
  uint32_t sure_periods_ = 0;
  uint32_t rest_ = 0;           // periods until small samples are used again
  uint32_t next_rest_ = kSure;  // how long the next rest is
  // Of the trial.
  uint32_t phase_periods_ = 0;
  uint32_t before_ = 0;  // the policy chosen before
  Counted own_before_;   // under that policy
  Counted samples_before_;
  Counted samples_since_;
  uint32_t banned_[kCandidateCount] = {};  // for how many more periods each is excluded
  uint32_t ban_[kCandidateCount];          // how long the next exclusion lasts
};

}  // namespace cache
