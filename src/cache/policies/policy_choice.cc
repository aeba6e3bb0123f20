#include "cache/policies/policy_choice.h"

#include <algorithm>

#include "base/statistics.h"

namespace cache {

double PolicyChoice::Counted::all_sampled() const {
  double all = 0;
  for (const double one : sampled) all += one;
  return std::max(all, 1.0);
}

void PolicyChoice::Counted::add(const Counted& more) {
  for (uint32_t i = 0; i < kCandidateCount; ++i) sampled[i] += more.sampled[i];
  reads += more.reads;
  io += more.io;
  periods += more.periods;
}

void PolicyChoice::Counted::age() {
  for (double& one : sampled) one *= kOlder;
  reads *= kOlder;
  io *= kOlder;
}

bool PolicyChoice::Counted::has_other_shares_than(const Counted& other) const {
  const double mine = all_sampled(), theirs = other.all_sampled();
  double chi_square = 0;
  for (uint32_t i = 0; i < kCandidateCount; ++i) {
    const double apart = sampled[i] * theirs - other.sampled[i] * mine;
    chi_square += apart * apart / (mine * theirs * std::max(sampled[i] + other.sampled[i], 1.0));
  }
  return chi_square > kOtherShares;
}

void PolicyChoice::begin(const Parameters& parameters, uint64_t frame_count, uint32_t partition_count) {
  parameters_ = parameters;
  // A policy shows little before it has replaced a good part of the pages.
  period_reads_ = std::max<uint64_t>(parameters.least_reads, frame_count / 2);
  std::fill_n(ban_, kCandidateCount, kBan);
  const uint64_t part = std::max<uint64_t>(frame_count / partition_count / kParts, 1);  // frames
  small_share_ = static_cast<uint32_t>(std::clamp<uint64_t>(parameters.least_sample / part, 1, kLargeShare));
  const uint64_t wanted = std::max(parameters.large_sample, parameters.large_sample / 2 * partition_count);
  large_share_ =
      static_cast<uint32_t>(std::clamp<uint64_t>(wanted * kParts / frame_count, small_share_, kLargeShare));
  share_.store(large_share_, std::memory_order_relaxed);
  warm_up_ = parameters.warm_up;
  is_on_ = true;
}

void PolicyChoice::report(const Report& report) {
  sys::LockGuard guard(mutex_);
  for (uint32_t i = 0; i < kCandidateCount; ++i) period_.sampled[i] += report.sampled[i];
  period_.reads += report.reads;
  period_.io += report.io.os_pages + double{Io::kPagesOfOperation} * report.io.operations;
  if (period_.reads < static_cast<double>(period_reads_)) return;
  period_.periods = 1;
  end_period(period_);
  period_ = {};
}

void PolicyChoice::end_period(const Counted& period) {
  if (warm_up_ > 0) {
    --warm_up_;
    return;
  }
  samples_.age();
  samples_.add(period);
  for (uint32_t& left : banned_)
    if (left > 0) --left;
  if (phase_ == Phase::kWatch)
    watch(period);
  else
    judge(period);

  base::Statistics::Counter* const told[] = {
      &base::statistics.chosen_policy_nrlfu_reads, &base::statistics.chosen_policy_2q_reads,
      &base::statistics.chosen_policy_s3fifo_reads, &base::statistics.chosen_policy_random_reads,
      &base::statistics.chosen_policy_clock_reads};
  static_assert(std::size(told) == kCandidateCount);
  for (uint32_t i = 0; i < kCandidateCount; ++i)
    told[i]->set(static_cast<uint64_t>(samples_.sampled[i] * kParts / share()));
}

void PolicyChoice::watch(const Counted& period) {
  own_.age();
  own_.add(period);
  lately_.add(period);
  if (lately_.periods == kShortWhile) {
    if (earlier_.periods >= kShortWhile) {
      const double io = lately_.io_of_read() / earlier_.io_of_read();
      const bool is_other_io = io > kOtherIo || io < 1 / kOtherIo;
      if (is_other_io || lately_.has_other_shares_than(earlier_)) {
        tries_first_ |= is_other_io;
        begin_anew(lately_, lately_);
      }
    }
    earlier_.age();
    earlier_.add(lately_);
    lately_ = {};
  }
  if (rest_ > 0) --rest_;
  if (own_.periods < kFewPeriods) return;
  const uint32_t now = chosen_.load(std::memory_order_relaxed), better = clearly_better();
  const bool is_in_doubt = better != now || tries_first_;
  if (share() < large_share_) {
    if (is_in_doubt && rest_ == 0) enlarge();
  } else if (better != now) {
    begin_trial(better, "measured");
  } else if (tries_first_) {
    tries_first_ = false;
    if (now != 0 && banned_[0] == 0) begin_trial(0, "again");
  } else if (++sure_periods_ >= kSure && small_share_ < large_share_) {
    reduce();
  }
}

// What small samples have shown is not enough, so all counts begin again.
void PolicyChoice::enlarge() {
  share_.store(large_share_, std::memory_order_relaxed);
  samples_ = own_ = earlier_ = lately_ = {};
  sure_periods_ = 0;
}

void PolicyChoice::reduce() {
  share_.store(small_share_, std::memory_order_relaxed);
  const double part = static_cast<double>(small_share_) / large_share_;
  for (Counted* const counted : {&samples_, &own_})
    for (double& sampled : counted->sampled) sampled *= part;
  earlier_ = lately_ = {};
  rest_ = next_rest_;
  next_rest_ = std::min(2 * next_rest_, kMaxBan);
}

// The best candidate that is not excluded, if it is clearly better than the chosen policy; else the chosen one.
uint32_t PolicyChoice::clearly_better() const {
  const uint32_t now = chosen_.load(std::memory_order_relaxed);
  uint32_t best = now;
  for (uint32_t i = 0; i < kCandidateCount; ++i)
    if (i != now && banned_[i] == 0 && (best == now || own_.sampled[i] < own_.sampled[best])) best = i;
  if (best == now) return now;
  // All pages under the chosen policy tell more about it than its sample does; scaled to the size of a sample.
  double others = -own_.sampled[now];
  for (const double one : own_.sampled) others += one;
  const double scale = static_cast<double>(share()) / (kParts - (kCandidateCount - 1) * share());
  const double reads = (own_.reads - others) * scale;
  const double fewer = reads - own_.sampled[best];
  const double variance = reads * scale + own_.sampled[best];
  return fewer > kWorthwhile * reads && fewer * fewer > kDeviations * kDeviations * variance ? best : now;
}

void PolicyChoice::choose(uint32_t candidate, const char* why) {
  chosen_.store(candidate, std::memory_order_relaxed);
  base::statistics.chosen_policy.set(base::name_of(kCandidates[candidate]));
  base::statistics.chosen_policy_why.set(why);
  base::statistics.chosen_policy_changes.add();
}

void PolicyChoice::begin_trial(uint32_t candidate, const char* why) {
  before_ = chosen_.load(std::memory_order_relaxed);
  own_before_ = own_;
  samples_before_ = samples_;
  own_ = samples_since_ = {};
  sure_periods_ = 0;
  phase_ = Phase::kSettle;
  phase_periods_ = 0;
  choose(candidate, why);
}

void PolicyChoice::judge(const Counted& period) {
  own_.add(period);
  samples_since_.add(period);
  ++phase_periods_;
  const double more = own_.io_of_sampled() / own_before_.io_of_sampled();
  // Is the ratio so far above 1 that it cannot be chance?
  const double variance = 1 / own_.all_sampled() + 1 / own_before_.all_sampled();
  const auto is_clear = [&](double ratio) {
    return ratio > 1 && (ratio - 1) * (ratio - 1) > kDeviations * kDeviations * variance;
  };
  if (phase_ == Phase::kSettle) {
    if (is_clear(more / kFarMore)) return end_trial(true);
    if (phase_periods_ < kSettle) return;
    phase_ = Phase::kTrial;
    phase_periods_ = 0;
    own_ = {};
    return;
  }
  if (is_clear(more) || is_clear(1 / more) || phase_periods_ == kTrial) end_trial(more > 1);
}

void PolicyChoice::end_trial(bool is_worse) {
  const uint32_t tried = chosen_.load(std::memory_order_relaxed);
  phase_ = Phase::kWatch;
  earlier_ = lately_ = {};
  const bool is_other_program = samples_since_.has_other_shares_than(samples_before_);
  if (is_worse) {
    choose(before_, "returned");
    own_ = own_before_;
    // If the program has changed what it does, the candidate may be better for that: it is not excluded.
    if (!is_other_program) {
      banned_[tried] = ban_[tried];
      ban_[tried] = std::min(2 * ban_[tried], kMaxBan);
    }
  } else {
    ban_[tried] = kBan;
    next_rest_ = kSure;
    sure_periods_ = kSure / 2;
  }
  if (is_other_program) begin_anew(samples_since_, {});
}

// The program does something else now: begins with what was counted since.
void PolicyChoice::begin_anew(const Counted& samples, const Counted& own) {
  samples_ = samples;
  own_ = own;
  earlier_ = {};
  std::fill_n(banned_, kCandidateCount, 0);
  std::fill_n(ban_, kCandidateCount, kBan);
  rest_ = 0;
  next_rest_ = kSure;
}

}  // namespace cache
