#include "persist/governor.h"

#include <algorithm>

#include "base/check.h"

namespace persist {
namespace {

// The ratio of the next count to the last point, on the way to a bound that has not been sampled.
constexpr double kStride = 1.6;
// A search counts the samples that have revealed the change as one of its own, besides its first point.
constexpr uint32_t kChangeSamples = 1;
// Of a watch.
constexpr double kProbeEvery = 16;          // at least so many samples lie between probes
constexpr uint32_t kReferenceSamples = 16;  // the reference is the mean of at most so many samples
constexpr double kNoiseWeight = 1.0 / 32;   // of one sample in the mean noise
constexpr double kChange = 3.3;             // a sum of deviations of so many times the noise is a change
// Which counts a watch probes, in turn: its best count times this factor, or, for kSpread, the next of those that are spread over all counts.
constexpr double kSpread = 0;
constexpr double kProbes[] = {1.1, 0.9, 1.6, 0.625, kSpread, 1.25, 0.8, kSpread};

double magnitude(double x) { return x < 0 ? -x : x; }

// A count strictly between a and b, about their geometric mean. REQUIRES: a + 1 < b.
uint32_t between(uint32_t a, uint32_t b) {
  uint32_t middle = a + 1;
  while (middle + 1 < b && uint64_t{middle} * middle < uint64_t{a} * b) ++middle;
  return middle;
}

}  // namespace

Governor::Governor(uint32_t lower, uint32_t upper)
    : lower_(lower), upper_(upper), count_(lower), phase_(Phase::kFourPoints), spread_(upper) {
  CHECK(lower >= 1 && lower <= upper);
}

uint32_t Governor::estimate(uint32_t lower, uint32_t upper, const double (&rates)[4]) {
  const double first = rates[1] - rates[0], last = rates[3] - rates[2];
  if (first <= 0 && last <= 0) return lower;
  if (first <= last) return first > 0 || rates[3] > rates[0] ? upper : lower;
  // rates[0] + first * x = rates[3] + last * (x - span), x from the lower bound on.
  const double span = upper - lower;
  const double x = (rates[3] - rates[0] - last * span) / (first - last);
  if (x <= 0) return lower;
  if (x >= span) return upper;
  return lower + static_cast<uint32_t>(x + 0.5);
}

void Governor::on_sample(double rate) {
  if (!(rate > 0)) return;
  switch (phase_) {
    case Phase::kFourPoints:
      record(rate);
      continue_four_points();
      break;
    case Phase::kSearch:
      record(rate);
      continue_search();
      break;
    case Phase::kWatch: watch(rate); break;
    case Phase::kProbe: end_probe(rate); break;
  }
}

void Governor::record(double rate) {
  ++sample_count_;
  uint32_t at = 0;
  while (at < point_count_ && points_[at].count < count_) ++at;
  if (at < point_count_ && points_[at].count == count_) {
    Point& point = points_[at];
    ++point.samples;
    point.rate += (rate - point.rate) / point.samples;
    return;
  }
  DCHECK(point_count_ < kMaxSearchSamples);
  std::move_backward(points_ + at, points_ + point_count_, points_ + point_count_ + 1);
  points_[at] = {.count = count_, .samples = 1, .rate = rate};
  ++point_count_;
}

void Governor::continue_four_points() {
  for (const uint32_t count : {lower_, std::min(lower_ + 1, upper_), std::max(upper_ - 1, lower_), upper_}) {
    if (find(count) != nullptr) continue;
    count_ = count;
    return;
  }
  phase_ = Phase::kSearch;
  if (point_count_ == 4) {
    const uint32_t estimated =
        estimate(lower_, upper_, {points_[0].rate, points_[1].rate, points_[2].rate, points_[3].rate});
    if (find(estimated) == nullptr) {
      count_ = estimated;
      return;
    }
  }
  continue_search();
}

// Searches from the present count on, whose rate is known; the bounds are not sampled unless the search comes to them.
void Governor::begin_search(double rate) {
  phase_ = Phase::kSearch;
  point_count_ = 0;
  sample_count_ = kChangeSamples;
  record(rate);
}

void Governor::continue_search() {
  const Point& highest = best();
  count_ = sample_count_ < kMaxSearchSamples ? next_to_sample(highest) : 0;
  if (count_ == 0) begin_watch();
}

const Governor::Point* Governor::find(uint32_t count) const {
  for (uint32_t i = 0; i < point_count_; ++i)
    if (points_[i].count == count) return &points_[i];
  return nullptr;
}

const Governor::Point& Governor::best() const {
  const Point* highest = points_;
  for (uint32_t i = 1; i < point_count_; ++i)
    if (points_[i].rate > highest->rate) highest = &points_[i];
  return *highest;
}

// The count to sample next; 0: none can be better by more than kAlike.
uint32_t Governor::next_to_sample(const Point& highest) const {
  // The peak lies between the nearest points that are lower by more than noise. If one is missing, the way to that bound is open. A rate that much
  // lower with hardly fewer flushers can be nothing but noise.
  const double low = highest.rate * (1 - kDistinct);
  const auto is_end = [&](const Point& point) {
    return point.rate < low && point.count < (1 - kDistinct) * highest.count;
  };
  const uint32_t top = static_cast<uint32_t>(&highest - points_);
  uint32_t from = top, to = top;
  while (from > 0 && !is_end(points_[from])) --from;
  while (to + 1 < point_count_ && points_[to].rate >= low) ++to;

  uint32_t chosen = 0;
  double most = highest.rate * (1 + kAlike);
  const auto consider = [&](uint32_t count, double reach) {
    if (reach <= most) return;
    most = reach;
    chosen = count;
  };
  for (uint32_t i = from; i < to; ++i) {
    const Point &a = points_[i], &b = points_[i + 1];
    if (b.count - a.count < 2) continue;
    consider(between(a.count, b.count), a.rate * (b.count - 1) / a.count);
  }
  const Point &first = points_[from], &last = points_[to];
  if (!is_end(first) && first.count > lower_) {
    const auto count = static_cast<uint32_t>(first.count / kStride);
    consider(std::max(count, lower_), highest.rate * kStride);
  }
  if (last.rate >= low && last.count < upper_) {
    const auto count = static_cast<uint32_t>(last.count * kStride + 0.5);
    consider(std::min(count, upper_), highest.rate * kStride);
  }
  return chosen;
}

void Governor::begin_watch() {
  const double alike = best().rate * (1 - kAlike);
  const Point* taken = points_;
  while (taken->rate < alike) ++taken;
  phase_ = Phase::kWatch;
  settled_ = count_ = taken->count;
  reference_ = taken->rate;
  watched_ = 0;
  above_ = below_ = 0;
  until_probe_ = kProbeEvery;
}

void Governor::watch(double rate) {
  const double deviation = rate / reference_ - 1;
  // The reference is itself the mean of but a few samples at first.
  const double slack = std::max(kNoise, noise_) * (1 + 1.0 / (watched_ + 1));
  above_ = std::max(0.0, above_ + deviation - slack);
  below_ = std::max(0.0, below_ - deviation - slack);
  if (lower_ < upper_ && std::max(above_, below_) > kChange * slack) {
    begin_search(rate);
    continue_search();
    return;
  }
  ++watched_;
  noise_ += (magnitude(deviation) - noise_) * kNoiseWeight;
  // What a search has found to be the best of several is too high on average: the first samples replace it.
  reference_ += (rate - reference_) / std::min(watched_ + 1, kReferenceSamples);
  until_probe_ -= 1;
  if (until_probe_ > 0 || lower_ == upper_) return;
  const uint32_t probed = next_to_probe();
  if (probed == settled_) return;
  count_ = probed;
  phase_ = Phase::kProbe;
}

uint32_t Governor::next_to_probe() {
  const double factor = kProbes[turn_];
  turn_ = (turn_ + 1) % (sizeof kProbes / sizeof kProbes[0]);
  if (factor == kSpread) {
    spread_ = spread_ >= upper_ ? lower_ : std::min(static_cast<uint32_t>(spread_ * kStride + 0.5), upper_);
    return spread_;
  }
  uint32_t count = static_cast<uint32_t>(settled_ * factor + 0.5);
  if (count == settled_) count = factor > 1 ? settled_ + 1 : settled_ - 1;
  return std::clamp(count, lower_, upper_);
}

void Governor::end_probe(double rate) {
  const double gain = rate / reference_ - 1;
  if (gain > kWorthwhile) {
    begin_search(rate);
    // The load may have changed: what was known about the other count is no longer trusted.
    count_ = settled_;
    return;
  }
  phase_ = Phase::kWatch;
  count_ = settled_;
  until_probe_ = std::max(kProbeEvery, -gain / kProbeCost);
}

}  // namespace persist
