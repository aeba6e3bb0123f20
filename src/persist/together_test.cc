#include "persist/together.h"

#include <gtest/gtest.h>

#include <random>

namespace persist {
namespace {

// How many periods until it holds, and whether it is on then. `gain`: the rate together over that alone; `noise`: relative.
struct Result {
  uint32_t periods = 0, on_periods = 0;
  bool is_on = false;
};
Result run_trial(Together& together, double gain, double noise, uint64_t seed) {
  std::mt19937_64 random(seed);
  Result result;
  do {
    const double factor = 1 + noise * (static_cast<double>(random() % 2001) / 1000 - 1);
    result.on_periods += together.is_on();
    together.on_period((together.is_on() ? 1 + gain : 1) * factor);
    ++result.periods;
  } while (!together.is_holding() && result.periods < 1000);
  result.is_on = together.is_on();
  return result;
}

TEST(Together, WhatIsBetterTogetherIsDoneTogether) {
  for (uint64_t seed = 1; seed < 50; ++seed) {
    Together better, worse, alike;
    EXPECT_TRUE(run_trial(better, 0.15, 0.03, seed).is_on);
    EXPECT_FALSE(run_trial(worse, -0.1, 0.03, seed).is_on);
    EXPECT_FALSE(run_trial(alike, 0.01, 0.05, seed).is_on);  // of which one round is often better
  }
}

TEST(Together, ATrialIsShortAndAloneForAPart) {
  Together together;
  const Result result = run_trial(together, 0.2, 0, 1);
  EXPECT_LT(result.periods, 50u);
  EXPECT_EQ(result.on_periods,
            Together::kSettlePeriods + 2 * 1 + Together::kRounds * Together::kBlockPeriods);
}

TEST(Together, AResultHoldsAndIsFoundOutAgain) {
  Together together;
  ASSERT_TRUE(run_trial(together, 0.2, 0, 1).is_on);
  for (uint32_t i = 0; i + 1 < Together::kHoldPeriods; ++i) {
    EXPECT_FALSE(together.on_period(1));
    EXPECT_TRUE(together.is_on());
  }
  // Another load, for which alone is better.
  EXPECT_TRUE(together.on_period(1));
  EXPECT_FALSE(together.is_on());
  EXPECT_FALSE(run_trial(together, -0.2, 0, 1).is_on);
  // The same again holds for twice as long.
  for (uint32_t i = 0; i < Together::kHoldPeriods; ++i) together.on_period(1);
  EXPECT_FALSE(run_trial(together, -0.2, 0, 1).is_on);
  uint32_t held = 0;
  while (together.is_holding()) {
    together.on_period(1);
    ++held;
  }
  EXPECT_EQ(held, 2 * Together::kHoldPeriods);
}

TEST(Together, PeriodsWithoutFlushesSayNothing) {
  Together together;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(together.on_period(0));
  EXPECT_FALSE(together.is_holding());
  EXPECT_TRUE(run_trial(together, 0.2, 0, 1).is_on);
}

}  // namespace
}  // namespace persist
