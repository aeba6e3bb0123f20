// PolicyChoice: which policy is to choose the pages that leave, by how often pages had to be read under each of them, and how much I/O the program
// needed.
//
// Samples. Partitions keep one for each candidate (policies.h): share() of kParts of the pages, by a hash of their number, in the same share of the
// frames, from which pages leave as the candidate says (set duelling: Qureshi et al., Adaptive insertion policies for high performance caching,
// ISCA 2007; here on pages of a cache that is fully associative). All other pages leave as the chosen policy says.
//
// Size of samples. They are large as long as it is not clear which policy is best, since small ones tell little, and late. They become small when
// nothing has spoken against the chosen policy for kSure periods, since most of their pages leave by policies that are worse. What small samples say
// only makes them large again.
//
//               another sample clearly needed fewer reads              kSettle periods            clearly more I/O or less, kTrial periods
//        watch ───────────────────────────────────────────► settle ──────────────────────► trial ───────────────────────────────────────► watch
//                          it is chosen                       │                                │      with it, or as before
//                                                             └── far more I/O: as before      └── the program does something else: with it, but
//                                                                                                  nothing is known
//
// A sample is compared with all pages of the chosen policy, for as many pages. "Clearly" means: fewer reads by kWorthwhile, since a change has a
// price, and by kDeviations times what chance makes of as many reads.
//
// Trials. Fewer reads may be more I/O all the same: pages that leave one here and one there come back one by one, and not in runs. So a candidate is
// on trial first. The samples do not change with what the other pages do, so the I/O for each of their reads tells what the program pays. I/O is
// counted (Io) and not timed, since others use the machine and the device, too. A candidate with which there was more of it is left alone for kBan
// periods, and each time for twice as many.
//
// Another program. A program does one thing now and another later. Then the samples' shares of the reads change clearly (kOtherShares); or, while
// nothing is tried, a page takes much more I/O than before, or much less (kOtherIo). In both cases everything is forgotten that was known of reads, of I/O, and
// of candidates to leave alone. In the second case the first candidate is tried again, since samples do not tell whose pages are read in runs.
//
// Thread contract: any thread. Cost: report() is called once for some thousand reads, and takes a lock of its own.
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
  // The first is chosen until something is known. The other one of base::kPolicyKinds is near it.
  static constexpr PolicyKind kCandidates[] = {PolicyKind::kNrlfu, PolicyKind::kTwoQueues,
                                               PolicyKind::kS3fifo, PolicyKind::kRandom, PolicyKind::kClock};
  static constexpr uint32_t kCandidateCount = std::size(kCandidates);

  static constexpr uint32_t kSure = 16;
  static constexpr uint32_t kSettle = 3;
  static constexpr uint32_t kTrial = 8;
  static constexpr uint32_t kBan = 64;
  static constexpr uint32_t kMaxBan = 4096;

  static constexpr uint32_t kParts = 256;
  static constexpr uint32_t kLargeShare = 12;

  struct Parameters {
    uint32_t least_sample = 32;    // frames of a small sample, in a partition of the usual size
    uint32_t least_frames = 1024;  // a partition that has fewer has no samples
    uint32_t least_reads = 1024;   // of a period
  };

  // What was read and written. An operation counts as much as kPagesOfOperation OS pages that it moves.
  struct Io {
    static constexpr uint32_t kPagesOfOperation = 8;
    uint32_t operations = 0;
    uint32_t os_pages = 0;
  };
  // What a partition has seen since its last report.
  struct Report {
    uint32_t sampled[kCandidateCount] = {};  // pages of the candidates' samples that were read
    uint32_t reads = 0;                      // pages, in all
    Io io;
  };

  // For a cache of frame_count frames in so many partitions. Called once, before all else.
  void begin(const Parameters& parameters, uint64_t frame_count, uint32_t partition_count);
  bool is_on() const { return is_on_; }
  const Parameters& parameters() const { return parameters_; }

  PolicyKind chosen() const { return kCandidates[chosen_.load(std::memory_order_relaxed)]; }
  uint32_t share() const { return share_.load(std::memory_order_relaxed); }
  void report(const Report& report);

 private:
  static constexpr double kOlder = 31.0 / 32;  // what was counted counts when another period has gone by
  static constexpr double kWorthwhile = 0.05;
  static constexpr double kDeviations = 3;
  static constexpr double kFarMore = 1.5;  // I/O that ends a trial while frames settle
  // By chi-square, of four degrees: chance makes it once in two hundred thousand times.
  static constexpr double kOtherShares = 30;
  static constexpr double kOtherIo = 1.5;     // I/O of a page that is read, over before
  static constexpr uint32_t kFewPeriods = 2;  // nothing is tried before so many are known
  static constexpr uint32_t kShortWhile = 4;  // periods that are compared with those before

  enum class Phase : uint8_t { kWatch, kSettle, kTrial };

  // What was counted in some periods.
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
  std::atomic<uint32_t> chosen_{0};
  std::atomic<uint32_t> share_{kLargeShare};
  // Under the lock.
  sys::Mutex mutex_;
  Counted period_;   // so far
  Counted samples_;  // what is known of them, whatever was chosen: no I/O
  Counted own_;      // with what is chosen, but while frames settled
  Counted earlier_;  // in a watch, before what is lately_
  Counted lately_;   // in a watch, up to kShortWhile periods
  Phase phase_ = Phase::kWatch;
  bool tries_first_ = false;  // a candidate, as soon as enough is known
  uint32_t sure_periods_ = 0;
  uint32_t rest_ = 0;           // periods until small samples are listened to again
  uint32_t next_rest_ = kSure;  // how long the next rest is
  // Of the trial.
  uint32_t phase_periods_ = 0;
  uint32_t before_ = 0;  // what was chosen
  Counted own_before_;   // with that
  Counted samples_before_;
  Counted samples_since_;
  uint32_t banned_[kCandidateCount] = {};  // periods from now
  uint32_t ban_[kCandidateCount];          // how long the next one is
};

}  // namespace cache
