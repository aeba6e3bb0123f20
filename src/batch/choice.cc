#include "batch/choice.h"

#include <algorithm>
#include <cmath>

namespace batch {
namespace {

constexpr uint64_t kWarmKeys = 1 << 14, kTimedKeys = 1 << 18, kMaxStagedKeys = 1 << 26;

}  // namespace

void Choice::want(Why why) {
  why_ = why;
  is_wanted_ = true;
  keys_of_phase_.store(0, std::memory_order_relaxed);
  is_trying_.store(true, std::memory_order_release);
}

void Choice::begin(const Load& load, const Machine& machine, const BaseCosts& base) {
  is_wanted_ = false;
  load_ = load;
  machine_ = machine;
  double best = HUGE_VAL;
  for (size_t i = 0; i < kCandidateCount; ++i) {
    const bool may_be = load.staging_bytes != 0 || !is_staging(kCandidates[i]);
    candidates_[i] = {.engine = kCandidates[i],
                      .modelled_ns = may_be ? modelled_ns(kCandidates[i], load, machine, base) : HUGE_VAL};
    best = std::min(best, candidates_[i].modelled_ns);
  }
  for (Candidate& candidate : candidates_) candidate.is_in = candidate.modelled_ns <= best * kModelFactor;
  std::ranges::sort(candidates_, {}, &Candidate::modelled_ns);
  round_ = 0;
  at_ = 0;
  begin_phase(true);
}

uint64_t Choice::staged_keys(Engine engine) const {
  const uint64_t record_bytes = load_.shape.record_bytes();
  const uint64_t table_bytes = load_.buckets * load_.shape.bucket_bytes;
  switch (engine) {
    case Engine::kPartitioned: return load_.staging_bytes / record_bytes * load_.sessions;
    case Engine::kCacheBuckets: return std::min(load_.cache_bytes, table_bytes) / record_bytes;
    default: return 0;
  }
}

void Choice::begin_phase(bool warms) {
  warms_ = warms;
  const uint64_t keys =
      std::max(std::min(staged_keys(engine()), kMaxStagedKeys), warms ? kWarmKeys : kTimedKeys);
  keys_of_phase_.store(keys, std::memory_order_relaxed);
}

void Choice::step(double ns_each, double answers) {
  answers_.store(answers, std::memory_order_relaxed);
  if (warms_) return begin_phase(false);
  Candidate& candidate = candidates_[at_];
  if (candidate.measured_ns == 0 || ns_each < candidate.measured_ns) candidate.measured_ns = ns_each;
  next();
}

bool Choice::leave_out() {
  candidates_[at_].is_in = false;
  return next();
}

// Goes on to the next candidate, or decides after the last round. False: no candidate is left.
bool Choice::next() {
  for (++at_;; at_ = 0) {
    while (at_ < kCandidateCount && !candidates_[at_].is_in) ++at_;
    if (at_ < kCandidateCount) return begin_phase(true), true;
    const double best = best_measured();
    if (best == HUGE_VAL) return at_ = 0, false;
    for (Candidate& candidate : candidates_)
      if (candidate.measured_ns > best * kTrialFactor) candidate.is_in = false;
    if (++round_ == kRounds || std::ranges::count_if(candidates_, &Candidate::is_in) == 1) break;
  }
  decide();
  return true;
}

double Choice::best_measured() const {
  double best = HUGE_VAL;
  for (const Candidate& candidate : candidates_)
    if (candidate.is_in && candidate.measured_ns != 0) best = std::min(best, candidate.measured_ns);
  return best;
}

void Choice::decide() {
  double best = HUGE_VAL;
  for (size_t i = 0; i < kCandidateCount; ++i) {
    if (!candidates_[i].is_in) continue;
    const double cost = candidates_[i].measured_ns * (is_staging(candidates_[i].engine) ? kStagingGain : 1);
    if (cost >= best) continue;
    best = cost;
    at_ = i;
  }
  end();
}

void Choice::stay(Engine engine) {
  for (size_t i = 0; i < kCandidateCount; ++i)
    if (candidates_[i].engine == engine) at_ = i;
  end();
}

void Choice::stop() {
  is_wanted_ = false;
  is_trying_.store(false, std::memory_order_release);
}

void Choice::end() {
  ++decisions_;
  is_trying_.store(false, std::memory_order_release);
}

bool Choice::has_other_answers(double answers) const {
  return std::abs(answers - answers_.load(std::memory_order_relaxed)) > kShareChange;
}

}  // namespace batch
