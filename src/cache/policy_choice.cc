#include "cache/policy_choice.h"

#include <algorithm>

#include "base/statistics.h"

namespace cache {
namespace {

// A watch knows the speed of about so many periods; nothing is tried before it knows that of a few.
constexpr uint32_t kPeriodsOfSpeed = 4;
constexpr uint32_t kFewPeriods = 2;

}  // namespace

void PolicyChoice::begin(const Parameters& parameters, uint64_t frame_count) {
  parameters_ = parameters;
  // Before pages have come and gone as a policy says, it shows little.
  period_reads_ = std::max<uint64_t>(parameters.least_reads, frame_count / 2);
  std::fill_n(ban_, kCandidateCount, kBan);
  is_on_ = true;
}

void PolicyChoice::report(std::span<const uint32_t, kCandidateCount> sampled, uint32_t all) {
  sys::LockGuard guard(mutex_);
  for (uint32_t i = 0; i < kCandidateCount; ++i) {
    sampled_[i] += sampled[i];
    period_sampled_ += sampled[i];
  }
  period_so_far_ += all;
  if (period_so_far_ >= period_reads_) end_period();
}

void PolicyChoice::end_period() {
  const uint64_t now_ns = parameters_.now_ns();
  // Of the first one nobody knows when it began.
  if (period_began_ns_ != 0) {
    if (speed_.periods == kPeriodsOfSpeed) {
      speed_.reads /= 2;
      speed_.ns /= 2;
      speed_.periods /= 2;
    }
    speed_.reads += static_cast<double>(period_sampled_);
    speed_.ns += static_cast<double>(now_ns - period_began_ns_);
    ++speed_.periods;
  }
  period_began_ns_ = now_ns;
  period_so_far_ = period_sampled_ = 0;

  base::Statistics::Counter* const told[] = {&base::statistics.chosen_policy_clock_reads,
                                             &base::statistics.chosen_policy_s3fifo_reads,
                                             &base::statistics.chosen_policy_random_reads};
  static_assert(std::size(told) == kCandidateCount);
  for (uint32_t i = 0; i < kCandidateCount; ++i) {
    told[i]->set(static_cast<uint64_t>(sampled_[i] * parameters_.one_in));
    if (banned_[i] > 0) --banned_[i];
  }
  ++phase_periods_;
  switch (phase_) {
    case Phase::kWatch:
      if (const uint32_t better = clearly_better();
          better != chosen_.load(std::memory_order_relaxed) && speed_.periods >= kFewPeriods)
        begin_trial(better);
      break;
    case Phase::kSettle:
      speed_ = {};
      if (phase_periods_ < kSettle) break;
      phase_ = Phase::kTrial;
      phase_periods_ = 0;
      break;
    case Phase::kTrial:
      if (phase_periods_ == kTrial || speed_.value() < (1 - kFarSlower) * speed_before_) end_trial();
      break;
  }
  for (double& reads : sampled_) reads *= kOlder;
}

// Of those that are not left alone; the one that is chosen if there is none.
uint32_t PolicyChoice::clearly_better() const {
  const uint32_t now = chosen_.load(std::memory_order_relaxed);
  uint32_t best = now;
  for (uint32_t i = 0; i < kCandidateCount; ++i)
    if (banned_[i] == 0 && sampled_[i] < sampled_[best]) best = i;
  const double fewer = sampled_[now] - sampled_[best];
  const double variance = sampled_[now] + sampled_[best];
  return fewer > kWorthwhile * sampled_[now] && fewer * fewer > kDeviations * kDeviations * variance ? best
                                                                                                     : now;
}

void PolicyChoice::choose(uint32_t candidate, const char* why) {
  chosen_.store(candidate, std::memory_order_relaxed);
  base::statistics.chosen_policy.set(base::name_of(kCandidates[candidate]));
  base::statistics.chosen_policy_why.set(why);
  base::statistics.chosen_policy_changes.add();
}

void PolicyChoice::begin_trial(uint32_t candidate) {
  before_ = chosen_.load(std::memory_order_relaxed);
  speed_before_ = speed_.value();
  speed_ = {};
  phase_ = Phase::kSettle;
  phase_periods_ = 0;
  choose(candidate, "measured");
}

void PolicyChoice::end_trial() {
  const uint32_t tried = chosen_.load(std::memory_order_relaxed);
  phase_ = Phase::kWatch;
  phase_periods_ = 0;
  if (speed_.value() >= (1 - kSlower) * speed_before_) {
    ban_[tried] = kBan;
    return;
  }
  banned_[tried] = ban_[tried];
  ban_[tried] = std::min(2 * ban_[tried], kMostBan);
  speed_ = {};
  choose(before_, "returned");
}

}  // namespace cache
