// Together: decides whether all threads with policy auto hand their lines for devices over to flushers, from nothing but the rate at which they flush.
//
// A thread by itself finds out which way is best for it (policy.h) while the others go on as they are. It cannot find out that there are more threads
// than the device can take, which stand in each other's way: if only one of them flushes less, neither it nor any other one gains much. So all
// threads try it at the same time, alternating with each on its own.
//
//   rounds   | alone | together, at first until the Governor has found its number | alone | together | ...       then hold
//
// Together wins if it is better in every round, by more than noise. A result holds for many times what the rounds took, and for longer each time that
// it is the same again.
//
// Pure: the caller brings the rates. Thread contract: one thread. (In the paper all threads always hand their lines over: Ribbon, section 2.1)
#pragma once
#include <algorithm>
#include <cstdint>

#include "persist/governor.h"

namespace persist {

class Together {
 public:
  static constexpr uint32_t kRounds = 3, kBlockPeriods = 4;
  static constexpr uint32_t kSettlePeriods = Governor::kMaxSearchSamples + 2;
  static constexpr uint32_t kHoldPeriods = 400, kMaxHoldPeriods = 6400;
  static constexpr double kMinGain = 0.04;

  bool is_on() const { return is_on_; }
  // Does a result hold? For tests.
  bool is_holding() const { return hold_left_ > 0; }

  // Takes the number of lines that were flushed in a unit of time during the last period; 0, when nobody flushed, says nothing. Returns whether
  // is_on() has changed.
  bool on_period(double rate) {
    if (!(rate > 0)) return false;
    if (hold_left_ > 0) {
      if (--hold_left_ > 0) return false;
      return begin_block(false);
    }
    if (skip_left_ > 0) {
      --skip_left_;
      return false;
    }
    sum_ += rate;
    if (++block_periods_ < kBlockPeriods) return false;
    const double mean = sum_ / kBlockPeriods;
    if (!is_on_) {
      alone_ = mean;
      return begin_block(true);
    }
    wins_ += mean > (1 + kMinGain) * alone_;
    if (++round_ < kRounds) return begin_block(false);
    return end_trial();
  }

 private:
  bool begin_block(bool is_on) {
    skip_left_ = is_on && round_ == 0 ? kSettlePeriods : 1;  // until what was begun the other way has ended
    block_periods_ = 0;
    sum_ = 0;
    return set(is_on);
  }
  bool end_trial() {
    const bool wins = wins_ == kRounds;
    hold_periods_ =
        has_result_ && wins == result_ ? std::min(2 * hold_periods_, kMaxHoldPeriods) : kHoldPeriods;
    hold_left_ = hold_periods_;
    has_result_ = true;
    result_ = wins;
    round_ = wins_ = 0;
    return set(wins);
  }
  bool set(bool is_on) {
    const bool is_changed = is_on_ != is_on;
    is_on_ = is_on;
    return is_changed;
  }

  bool is_on_ = false, has_result_ = false, result_ = false;
  uint32_t round_ = 0, wins_ = 0, skip_left_ = 1, block_periods_ = 0;
  uint32_t hold_left_ = 0, hold_periods_ = kHoldPeriods;
  double sum_ = 0, alone_ = 0;
};

}  // namespace persist
