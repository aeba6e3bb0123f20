#include "persist/policy.h"

#include <gtest/gtest.h>

#include <random>

namespace persist {
namespace {

// A thread whose fences take as long as the test says, depending on the chosen way.
class Driven {
 public:
  explicit Driven(Way asked, uint64_t seed = 1) : policy_(asked), random_(seed) {}

  Policy& policy() { return policy_; }
  double ns() const { return static_cast<double>(now); }

  // `costs`: of a fence and its lines, by way; `noise`: relative.
  void run(uint64_t fences, const double (&costs)[4], double noise, uint64_t lines_per_fence = 8) {
    for (uint64_t i = 0; i < fences; ++i) {
      const double factor = 1 + noise * (static_cast<double>(random_() % 2001) / 1000 - 1);
      now += static_cast<uint64_t>(costs[static_cast<int>(policy_.chosen())] * factor);
      ++by_way[static_cast<int>(policy_.chosen())];
      lines += lines_per_fence;
      if (policy_.count_fences(1)) policy_.end_window(now, lines);
    }
  }
  uint64_t by_way[4] = {};

 private:
  Policy policy_;
  std::mt19937_64 random_;
  static inline uint64_t now = 1'000'000;
  uint64_t lines = 0;
};

constexpr uint64_t kTrialFences = 4 * 2 * Policy::kRounds * Policy::kMaxWindowFences + 200;

TEST(Policy, AWayThatWasAskedForIsTakenForGood) {
  for (const Way way : {Way::kInline, Way::kEpoch, Way::kDecoupled, Way::kProactive}) {
    Driven driven(way);
    driven.run(5'000, {100, 900, 900, 900}, 0.1);
    EXPECT_EQ(driven.by_way[static_cast<int>(way)], 5'000u);
    EXPECT_EQ(driven.policy().trials(), 0u);
  }
}

TEST(Policy, TheCheapestIsFoundAndHeld) {
  const double costs[][4] = {
      {1000, 500, 3000, 2000}, {1000, 1200, 600, 900}, {1000, 1010, 990, 700}, {1000, 1050, 1100, 1200}};
  const Way best[] = {Way::kEpoch, Way::kDecoupled, Way::kProactive, Way::kInline};
  for (int i = 0; i < 4; ++i) {
    Driven driven(Way::kAuto);
    driven.policy().add_candidate(Way::kDecoupled);
    driven.policy().add_candidate(Way::kProactive);
    driven.run(kTrialFences, costs[i], 0.05);
    EXPECT_EQ(driven.policy().trials(), 1u);
    EXPECT_EQ(driven.policy().chosen(), best[i]) << i;
    driven.run(200'000, costs[i], 0.05);
    EXPECT_EQ(driven.policy().chosen(), best[i]) << i;
    EXPECT_GT(static_cast<double>(driven.by_way[static_cast<int>(best[i])]), 0.95 * 200'000);
  }
}

// Two ways that cost the same cannot be told apart: then the thread does what the program would.
TEST(Policy, NoiseAloneWinsNothing) {
  uint32_t others = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Driven driven(Way::kAuto, seed);
    driven.run(kTrialFences, {1000, 1000, 0, 0}, 0.3);
    ASSERT_EQ(driven.policy().trials(), 1u);
    others += driven.policy().chosen() != Way::kInline;
  }
  EXPECT_LE(others, 5u);
}

TEST(Policy, AChangeOfTheLoadIsNoticedInTheNextTrial) {
  Driven driven(Way::kAuto);
  driven.run(kTrialFences, {1000, 500, 0, 0}, 0.05);
  EXPECT_EQ(driven.policy().chosen(), Way::kEpoch);
  driven.run(Policy::kHoldTrials * kTrialFences * 2, {500, 1000, 0, 0}, 0.05);
  EXPECT_EQ(driven.policy().chosen(), Way::kInline);
  EXPECT_EQ(driven.policy().changes(), 2u);
}

// The cost of looking for something better that does not exist.
TEST(Policy, TrialsCostLittleWhereInlineIsBest) {
  Driven driven(Way::kAuto);
  driven.policy().add_candidate(Way::kDecoupled);
  driven.run(kTrialFences, {1000, 1100, 6000, 0}, 0.05);
  const double before = driven.ns();
  constexpr uint64_t kFences = 500'000;
  driven.run(kFences, {1000, 1100, 6000, 0}, 0.05);
  EXPECT_LT((driven.ns() - before) / (1000.0 * kFences), 1.02);
  EXPECT_GT(driven.policy().trials(), 2u);
}

// What one way leaves behind, lines that were put off or thrown out of the caches, is paid for in the next way's first window.
TEST(Policy, TheFirstWindowAfterAChangeIsNotTheWaysOwn) {
  Driven driven(Way::kAuto);
  for (uint64_t windows = 0; driven.policy().trials() == 0; ++windows) {
    ASSERT_LT(windows, kTrialFences);
    const uint64_t before = driven.by_way[static_cast<int>(Way::kEpoch)];
    driven.run(1, {1000, 1100, 0, 0}, 0.01);
    const bool changes =
        driven.by_way[static_cast<int>(Way::kEpoch)] != before && driven.policy().chosen() == Way::kInline;
    if (changes) driven.run(Policy::kWindowFences - 1, {3000, 1100, 0, 0}, 0.01);
  }
  EXPECT_EQ(driven.policy().chosen(), Way::kInline);
}

TEST(Policy, AWindowHasEnoughLines) {
  Driven driven(Way::kAuto);
  // Fences without flushes say nothing.
  driven.run(10'000, {1000, 10, 0, 0}, 0, 0);
  EXPECT_EQ(driven.policy().trials(), 0u);
}

// What a program does every so many fences must not count against any way, even if windows of a trial recur at the same interval.
TEST(Policy, WhatComesNowAndThenIsNobodys) {
  uint64_t trials = 0, others = 0, now = 1, lines = 0;
  for (const uint64_t period : {96, 127, 128, 129, 192, 255, 256, 257})
    for (uint64_t phase = 0; phase < period; phase += 8, ++trials) {
      Policy policy(Way::kAuto);
      for (uint64_t fence = phase; policy.trials() == 0; ++fence) {
        now += 1000 + (fence % period == 0 ? 20'000 : 0);
        lines += 4;
        if (policy.count_fences(1)) policy.end_window(now, lines);
      }
      others += policy.chosen() != Way::kInline;
    }
  EXPECT_LE(others, trials / 15) << "of " << trials;
}

}  // namespace
}  // namespace persist
