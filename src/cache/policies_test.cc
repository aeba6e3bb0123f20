// Samples, and what is chosen by them, beside policies that were asked for.
#include "cache/policies.h"

#include <gtest/gtest.h>

#include "cache/test_frames.h"

namespace cache {
namespace {

constexpr PolicyChoice::Parameters kQuick = {.least_frames = 1024, .least_reads = 2048};

TEST(ChosenPolicy, IsTheOneThatReadsLeast) {
  constexpr uint32_t kFrames = 1024;
  const std::pair<PolicyKind, Trace> traces[] = {{PolicyKind::kRandom, looped(1180, 80'000)},
                                                 {PolicyKind::kS3fifo, skewed(10'000, 160'000)},
                                                 {PolicyKind::kClock, looped(800, 10'000)}};
  for (const auto& [expected, trace] : traces) {
    Frames frames(std::nullopt, kFrames, kQuick);
    run(frames, trace);
    // Some are as good as each other.
    const bool is_near =
        expected == PolicyKind::kS3fifo && frames.policy->follows() == PolicyKind::kTwoQueues;
    EXPECT_TRUE(is_near || frames.policy->follows() == expected) << base::name_of(expected);
    EXPECT_EQ(frames.choice.chosen(), frames.policy->follows());
    // From now on as if it had been asked for, but for the samples, which are an eighth of the pages here.
    Frames asked(expected, kFrames);
    run(asked, trace);
    const auto misses = static_cast<double>(run(frames, trace)),
               best = static_cast<double>(run(asked, trace));
    printf("%s: %.0f misses, asked for %.0f\n", base::name_of(expected), misses, best);
    EXPECT_LE(misses, 1.12 * best);
  }
}

// One thing after the other, whenever a trial of what is good at the one happens to be under way.
TEST(ChosenPolicy, FollowsTheProgram) {
  for (const uint32_t length : {60'000u, 100'000u, 105'000u, 110'000u, 115'000u, 120'000u}) {
    Frames frames(std::nullopt, 1024, kQuick);
    run(frames, looped(1180, length));
    EXPECT_EQ(frames.policy->follows(), PolicyKind::kRandom) << length;
    run(frames, scanned(700, 200'000));
    EXPECT_TRUE(frames.policy->follows() == PolicyKind::kTwoQueues ||
                frames.policy->follows() == PolicyKind::kS3fifo)
        << length;
    run(frames, looped(1180, 200'000));
    EXPECT_EQ(frames.policy->follows(), PolicyKind::kRandom) << length;
  }
}

// Reads in runs: half as many with random, each by an operation of its own.
TEST(ChosenPolicy, IsNoneThatNeedsMoreIo) {
  Frames frames(std::nullopt, 1024, kQuick);
  const uint64_t changes = base::statistics.chosen_policy_changes.get();
  uint64_t last = 0;
  for (const uint64_t page : looped(1180, 150'000)) {
    if (frames.has(page)) continue;
    frames.load(page, true, page != last + 1 || page % 16 == 0);
    last = page;
  }
  EXPECT_NE(frames.policy->follows(), PolicyKind::kRandom);
  EXPECT_GE(base::statistics.chosen_policy_changes.get(), changes + 2);
}

// Samples become smaller and larger: every page is some policy's, and leaves.
TEST(ChosenPolicy, PagesStayHeldWhenSharesChange) {
  Frames frames(std::nullopt, 1024, kQuick);
  std::mt19937_64 random(6);
  std::set<uint32_t> shares;
  for (int i = 0; i < 400'000; ++i) {
    // Now and then something else, so that it is in doubt.
    frames.access(i / 60'000 % 2 == 0 ? random() % 1600 : static_cast<uint64_t>(i) % 1180);
    if (!shares.insert(frames.choice.share()).second && i % 1000 != 0) continue;
    ASSERT_EQ(frames.policy->held_count(), frames.resident().size());
    for (const auto& [page, frame] : frames.resident()) ASSERT_TRUE(frames.policy->holds(FrameId{frame}));
  }
  EXPECT_EQ(shares.size(), 2u);
  while (!frames.resident().empty()) frames.evict();
  EXPECT_EQ(frames.policy->held_count(), 0u);
}

TEST(ChosenPolicy, SmallPartitionsHaveNoSamples) {
  Frames small(std::nullopt, kQuick.least_frames - 1, kQuick),
      large(std::nullopt, kQuick.least_frames, kQuick);
  Frames clock(PolicyKind::kClock, kQuick.least_frames - 1);
  EXPECT_EQ(small.budget.used_bytes(), clock.budget.used_bytes());
  EXPECT_GT(large.budget.used_bytes(), clock.budget.used_bytes() + 12 * kQuick.least_frames);
}

}  // namespace
}  // namespace cache
