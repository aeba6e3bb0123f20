// Governor: decides how many flushers are to run now, from nothing but the rate at which lines become durable.
//
// A device takes more lines from more flushers until they stand in each other's way, and then fewer. Where the peak is depends on the
// device and on the load, so it is looked for while the program runs, and again when the load changes.
//
//               bounds differ           estimate                        no gap left, or samples
//   (made) ──────────────────► four points ────────► search ───────────────────────────────────────► watch ◄─┐
//                                                      ▲  the rate moves away, or a probe was better   │     │ a probe
//                                                      └───────────────────────────────────────────────┘     │ was not
//                                                                                                   watch ──► probe
//   four points  the rate at both bounds and at their neighbours gives two lines; they meet at the estimate (Ribbon, full paper)
//   search       the estimate is as good as the two lines. What was sampled brackets the peak, and the widest gap in the bracket that can
//                have a better count is sampled next (not in the paper: governor_test.cc has curves on which the lines lose half of the rate)
//   watch        at the best count; a sum of deviations tells a change from noise
//   probe        one sample somewhere else, now and then: a change may leave the rate at this count as it is
//
// Invariants
//  1 lower <= count() <= upper
//  2 a search ends with kMaxSearchSamples samples, those of the four points included
//  3 probes that bring nothing cost kProbeCost of the rate, in the long run
//  4 of counts whose rates differ by no more than kAlike, the lowest is taken: flushers cost processors
//
// Assumptions, without which it may end at a lesser peak: there is one peak; and n + k flushers reach at most (n + k) / n of what n reach.
//
// Thread contract: one thread at a time. No clock, no I/O, no memory but its own.
#pragma once
#include <cstdint>

namespace persist {

class Governor {
 public:
  static constexpr uint32_t kMaxSearchSamples = 12;
  // Relative differences of rates.
  static constexpr double kAlike = 0.01;       // not worth a flusher
  static constexpr double kNoise = 0.03;       // expected of one sample, until more is known
  static constexpr double kDistinct = 0.08;    // two samples with this noise hardly ever differ by this much
  static constexpr double kWorthwhile = 0.04;  // a probe that is better by this much begins a search
  static constexpr double kProbeCost = 0.015;

  // Both are counts of flushers; the upper one is that of cores, or of the application's threads if there are more.
  // REQUIRES: 1 <= lower <= upper.
  Governor(uint32_t lower, uint32_t upper);

  // Flushers that are to run until the next sample.
  uint32_t count() const { return count_; }
  // It watches or probes. For tests.
  bool is_watching() const { return phase_ == Phase::kWatch || phase_ == Phase::kProbe; }

  // A period has ended in which count() flushers ran: how many lines (or bytes) became durable in a unit of time. A period in which they
  // had nothing to do is no sample: not positive, it is ignored. Cost: tens of additions.
  void on_sample(double rate);

  // The paper's rule, for rates at lower, lower + 1, upper - 1 and upper: where the line through the first two meets that through the others,
  // within the bounds. If the lines do not meet in a peak: the bound that they rise to, or else the better one.
  static uint32_t estimate(uint32_t lower, uint32_t upper, const double (&rates)[4]);

 private:
  enum class Phase : uint8_t { kFourPoints, kSearch, kWatch, kProbe };
  struct Point {
    uint32_t count;
    uint32_t samples;
    double rate;  // their mean
  };

  void record(double rate);
  void continue_four_points();
  void begin_search(double rate);
  void continue_search();
  void begin_watch();
  void watch(double rate);
  void end_probe(double rate);

  const Point* find(uint32_t count) const;
  const Point& best() const;
  uint32_t next_to_sample(const Point& highest) const;
  uint32_t next_to_probe();

  uint32_t lower_;
  uint32_t upper_;
  uint32_t count_;
  Phase phase_;

  // Of this search, by count.
  Point points_[kMaxSearchSamples];
  uint32_t point_count_ = 0;
  uint32_t sample_count_ = 0;

  // Of this watch.
  uint32_t settled_ = 0;  // the best count
  uint32_t watched_ = 0;  // samples
  double reference_ = 0;  // the rate at that count
  double above_ = 0;      // sums of deviations beyond the noise
  double below_ = 0;
  double until_probe_ = 0;  // samples

  // Of all.
  double noise_ = kNoise;  // mean deviation from the reference
  uint32_t turn_ = 0;      // which probe is next (kProbes)
  uint32_t spread_;        // the last one of those that are spread over all counts
};

}  // namespace persist
