#include "persist/policy.h"

#include <algorithm>

#include "base/check.h"
#include "base/mix.h"

namespace persist {
namespace {

// A candidate that costs this many times as much as inline drops out of the trial.
constexpr double kFarWorse = 1.5;
// A smaller gain does not count, however little noise there is: in a trial each flush is a call, since lines are counted, while afterwards those of
// inline are not (direct.h). That may hide a loss of this size.
constexpr double kMinGain = 0.05;

double median(double* values, size_t count) {
  std::sort(values, values + count);
  return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

}  // namespace

const char* name_of(Way way) {
  switch (way) {
    case Way::kInline: return "inline";
    case Way::kEpoch: return "epoch";
    case Way::kDecoupled: return "decoupled";
    case Way::kProactive: return "proactive";
    case Way::kAuto: return "auto";
  }
  return "";
}

void Policy::ask(Way asked) {
  asked_ = asked;
  is_trying_ = false;
  is_first_window_ = true;
  fences_ = 0;
  chosen_ = winner_ = asked == Way::kAuto ? Way::kInline : asked;
}

void Policy::add_candidate(Way way) {
  CHECK(way == Way::kDecoupled || way == Way::kProactive);
  for (size_t i = 0; i < candidate_count_; ++i)
    if (candidates_[i].way == way) return;
  CHECK_LT(candidate_count_, kMaxCandidates);
  candidates_[candidate_count_++] = {.way = way, .windows = 0, .costs = {}};
  // A trial that is under way begins anew with it.
  is_first_window_ = true;
}

bool Policy::choose(Way way) {
  is_warm_ = chosen_ == way;
  if (is_warm_) return false;
  chosen_ = way;
  return true;
}

void Policy::begin_trial(uint64_t now) {
  is_trying_ = true;
  trial_begin_ = now;
  round_ = 0;
  current_ = 0;
  for (Candidate& candidate : candidates_) candidate.windows = 0;
}

bool Policy::end_window(uint64_t now, uint64_t lines) {
  const uint64_t flushed = lines - window_lines_;
  fences_ = 0;  // a window with too few lines goes on, and is looked at again after some more fences
  window_fences_ = kWindowFences + base::mix(++window_count_) % (kMaxWindowFences - kWindowFences + 1);
  if (is_trying_ && !is_first_window_ && flushed < kWindowLines) return false;
  const uint64_t began = window_begin_;
  window_begin_ = now;
  window_lines_ = lines;
  if (is_first_window_) {
    is_first_window_ = false;
    begin_trial(now);
    return choose(candidates_[0].way);
  }
  if (!is_trying_) {
    if (now < held_until_) return false;
    begin_trial(now);
    return choose(candidates_[0].way);
  }
  // In the first window after a change the previous way still shows, by lines that were put off or thrown out of the caches.
  if (!is_warm_) {
    is_warm_ = true;
    return false;
  }
  Candidate& candidate = candidates_[current_];
  candidate.costs[candidate.windows++] = static_cast<double>(now - began) / static_cast<double>(flushed);
  const Candidate& plain = candidates_[0];
  do {
    if (++current_ == candidate_count_) {
      current_ = 0;
      if (++round_ == kRounds) return end_trial(now);
    }
    // A candidate that has dropped out gets no more windows.
  } while (candidates_[current_].windows < round_ ||
           (current_ != 0 && round_ > 0 &&
            candidates_[current_].costs[round_ - 1] > kFarWorse * plain.costs[round_ - 1]));
  return choose(candidates_[current_].way);
}

bool Policy::end_trial(uint64_t now) {
  is_trying_ = false;
  ++trials_;
  Way best = Way::kInline;
  double best_ratio = 1;
  for (size_t i = 1; i < candidate_count_; ++i) {
    const Candidate& candidate = candidates_[i];
    if (candidate.windows < kRounds) continue;
    double ratios[kRounds], distances[kRounds];
    for (uint32_t k = 0; k < kRounds; ++k) ratios[k] = candidate.costs[k] / candidates_[0].costs[k];
    const double middle = median(ratios, kRounds);
    for (uint32_t k = 0; k < kRounds; ++k)
      distances[k] = ratios[k] > middle ? ratios[k] - middle : middle - ratios[k];
    const double noise = std::max(kMinGain, median(distances, kRounds));
    if (middle < 1 - noise && middle < best_ratio) {
      best_ratio = middle;
      best = candidate.way;
    }
  }
  const bool is_again = best == winner_ && trials_ > 1;
  hold_trials_ = is_again ? std::min(2 * hold_trials_, kMaxHoldTrials) : kHoldTrials;
  if (best != winner_) ++changes_;
  winner_ = best;
  held_until_ = now + hold_trials_ * (now - trial_begin_);
  return choose(best);
}

}  // namespace persist
