#include "cache/policies/policy_choice.h"

#include <gtest/gtest.h>

#include "base/statistics.h"

namespace cache {
namespace {

using Io = PolicyChoice::Io;

class PolicyChoiceTest : public testing::Test {
 protected:
  static constexpr uint32_t kSmallShare = 2;

  PolicyChoiceTest() {
    choice.begin({.least_sample = kSmallShare, .least_frames = 1, .least_reads = 1, .warm_up = 0}, 256, 1);
  }

  // Reports one period: the reads of each sample (clock's equal nrlfu's), in proportion as many under the chosen policy, and the number of
  // one-page operations. Returns the policy chosen afterwards.
  PolicyKind report(uint32_t nrlfu, uint32_t two_queues, uint32_t s3fifo, uint32_t random,
                    uint32_t operations = 4096) {
    PolicyChoice::Report report = {.sampled = {nrlfu, two_queues, s3fifo, random, nrlfu},
                                   .io = {operations, operations}};
    const uint32_t others = PolicyChoice::kParts / choice.share() - PolicyChoice::kCandidateCount;
    for (uint32_t i = 0; i < PolicyChoice::kCandidateCount; ++i)
      report.reads += report.sampled[i] * (PolicyChoice::kCandidates[i] == choice.chosen() ? 1 + others : 1);
    choice.report(report);
    return choice.chosen();
  }
  std::string why() { return std::string(base::WordText(base::statistics.chosen_policy_why.get()).view()); }
  // How many periods it takes until `kind` is chosen.
  uint32_t periods_until(PolicyKind kind, uint32_t most, auto&& one) {
    for (uint32_t i = 1; i <= most; ++i)
      if (one() == kind) return i;
    ADD_FAILURE() << "not within " << most;
    return 0;
  }
  PolicyChoice choice;
};

TEST_F(PolicyChoiceTest, ChangesWhenAPeriodIsOver) {
  PolicyChoice off;
  EXPECT_FALSE(off.is_on());
  EXPECT_TRUE(choice.is_on());
  choice.begin({.least_sample = 1, .least_frames = 1, .least_reads = 30'000, .warm_up = 0}, 256, 1);
  EXPECT_EQ(report(2000, 1500, 1000, 1500), PolicyKind::kNrlfu) << "how much I/O there is is not known yet";
  choice.report({.sampled = {2000, 1500, 1000, 1500, 2000}, .reads = 29'999, .io = {4096, 4096}});
  EXPECT_EQ(choice.chosen(), PolicyKind::kNrlfu);
  choice.report({.sampled = {}, .reads = 1, .io = {}});
  EXPECT_EQ(choice.chosen(), PolicyKind::kS3fifo);
  EXPECT_EQ(why(), "measured");
}

// A policy may do better on its small sample than on all of its pages.
TEST_F(PolicyChoiceTest, WhatIsChosenIsJudgedByAllOfItsPages) {
  periods_until(PolicyKind::kS3fifo, 10, [&] { return report(200, 200, 100, 150); });
  const auto worse = [&] {
    choice.report({.sampled = {200, 200, 100, 150, 200}, .reads = 850 + 16 * 190, .io = {4096, 4096}});
    return choice.chosen();
  };
  EXPECT_LT(periods_until(PolicyKind::kRandom, 20, worse), 20u);
}

// With few reads a difference may be chance; with many, a few per cent are not worth a change.
TEST_F(PolicyChoiceTest, ChangesWhenItIsClear) {
  EXPECT_EQ(report(20, 20, 10, 15), PolicyKind::kNrlfu);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(report(10'000, 10'000, 9'600, 10'000), PolicyKind::kNrlfu);
  EXPECT_LT(periods_until(PolicyKind::kS3fifo, 20, [&] { return report(10'000, 10'000, 8'000, 10'000); }),
            20u);
}

// A sequential program reads in runs under one policy, and page by page under the other.
TEST_F(PolicyChoiceTest, ReturnsFromWhatNeedsMoreIo) {
  const auto usual = [&] { return report(200, 200, 200, 100, 512); };
  const auto tried = [&] { return report(200, 200, 200, 100, 700); };
  periods_until(PolicyKind::kRandom, 10, usual);
  // The first periods after a change tell little.
  for (uint32_t i = 0; i < PolicyChoice::kSettle; ++i) EXPECT_EQ(tried(), PolicyKind::kRandom);
  EXPECT_LE(periods_until(PolicyKind::kNrlfu, PolicyChoice::kTrial, tried), PolicyChoice::kTrial);
  EXPECT_EQ(why(), "returned");
  // It is excluded for a while, and then for twice as long.
  for (uint32_t ban : {PolicyChoice::kBan, 2 * PolicyChoice::kBan}) {
    uint32_t before = 0;
    while (usual() == PolicyKind::kNrlfu) ASSERT_LT(++before, 4 * ban);
    EXPECT_GE(before + 1, ban);
    EXPECT_LE(before, ban + 40);
    while (tried() == PolicyKind::kRandom) {
    }
  }
}

// A program makes its data. What of it is still in memory is written when other pages are read.
TEST_F(PolicyChoiceTest, WhatIsWrittenAtFirstDoesNotSpeakForACandidate) {
  choice.begin({.least_sample = kSmallShare, .least_frames = 1, .least_reads = 1, .warm_up = 3}, 256, 1);
  for (const uint32_t operations : {20'000u, 4096u, 2048u})
    ASSERT_EQ(report(200, 200, 200, 100, operations), PolicyKind::kNrlfu);
  periods_until(PolicyKind::kRandom, 4, [&] { return report(200, 200, 200, 100, 512); });
  const auto tried = [&] { return report(200, 200, 200, 100, 700); };
  periods_until(PolicyKind::kNrlfu, PolicyChoice::kSettle + PolicyChoice::kTrial, tried);
  EXPECT_EQ(why(), "returned");
}

TEST_F(PolicyChoiceTest, WhatNeedsFarMoreIoIsNotTriedToTheEnd) {
  periods_until(PolicyKind::kRandom, 10, [&] { return report(200, 200, 200, 100, 512); });
  EXPECT_EQ(report(200, 200, 200, 100, 3000), PolicyKind::kNrlfu);
}

TEST_F(PolicyChoiceTest, StaysWithWhatNeedsLessIo) {
  periods_until(PolicyKind::kRandom, 10, [&] { return report(200, 200, 200, 100); });
  for (int i = 0; i < 200; ++i) ASSERT_EQ(report(300, 300, 300, 150), PolicyKind::kRandom);
}

// During a trial the program changes to something that needs more I/O under the candidate: that does not count against it where it is good.
TEST_F(PolicyChoiceTest, NothingIsKnownOfAProgramThatChangesDuringATrial) {
  const auto first = [&] { return report(200, 200, 200, 100, 1000); };
  periods_until(PolicyKind::kRandom, 10, first);
  first();
  const auto second = [&] { return report(300, 300, 100, 300, 4000); };
  EXPECT_LE(periods_until(PolicyKind::kNrlfu, PolicyChoice::kSettle + PolicyChoice::kTrial, second),
            PolicyChoice::kSettle + PolicyChoice::kTrial);
  EXPECT_LE(periods_until(PolicyKind::kS3fifo, 4, second), 4u) << "what is known is of the second";
  for (int i = 0; i < 20; ++i) second();
  EXPECT_EQ(choice.chosen(), PolicyKind::kS3fifo);
  // And it is not excluded when the first kind of work comes back.
  EXPECT_LE(periods_until(PolicyKind::kRandom, 24, first), 24u);
}

TEST_F(PolicyChoiceTest, SamplesAreSmallWhereNothingIsInDoubt) {
  EXPECT_EQ(choice.share(), PolicyChoice::kLargeShare);
  const auto small = [&] { return choice.share() == kSmallShare; };
  uint32_t periods = 0;
  for (; !small(); ++periods) {
    ASSERT_LT(periods, 2 * PolicyChoice::kSure);
    report(160, 160, 160, 160);
  }
  EXPECT_GE(periods, PolicyChoice::kSure);
  // Large samples have to confirm it, and small ones are used again only after twice as long.
  for (const uint32_t rest : {PolicyChoice::kSure, 2 * PolicyChoice::kSure}) {
    periods = 0;
    for (; small(); ++periods) {
      ASSERT_LT(periods, 2 * rest);
      report(20, 20, 10, 20);
    }
    EXPECT_GE(periods, rest);
    EXPECT_EQ(choice.chosen(), PolicyKind::kNrlfu);
    for (; !small(); ++periods) {
      ASSERT_LT(periods, 4 * rest + 2 * PolicyChoice::kSure);
      report(160, 160, 160, 160);
    }
  }
}

TEST_F(PolicyChoiceTest, ShareOfSmallSamplesFollowsFrames) {
  for (const auto& [frames, partitions, share] : {std::tuple{uint64_t{1} << 20, 16u, 1u},
                                                  {uint64_t{4096}, 1u, 4u},
                                                  {uint64_t{4096}, 4u, PolicyChoice::kLargeShare},
                                                  {uint64_t{64}, 1u, PolicyChoice::kLargeShare}}) {
    PolicyChoice other;
    other.begin({.least_sample = 64, .least_frames = 1, .least_reads = 1}, frames, partitions);
    for (uint32_t i = 0; i < 2 * PolicyChoice::kSure; ++i)
      other.report(
          {.sampled = {1 << 16, 1 << 16, 1 << 16, 1 << 16, 1 << 16}, .reads = 1 << 20, .io = {1000, 1000}});
    EXPECT_EQ(other.share(), share) << frames;
  }
}

TEST_F(PolicyChoiceTest, LargeSamplesHaveAsManyFramesAsTheyNeed) {
  for (const auto& [frames, partitions, share] : {std::tuple{uint64_t{4096}, 1u, PolicyChoice::kLargeShare},
                                                  {uint64_t{8192}, 1u, 6u},
                                                  {uint64_t{16384}, 1u, 3u},
                                                  {uint64_t{1} << 17, 16u, 3u},
                                                  {uint64_t{1} << 20, 16u, 1u}}) {
    PolicyChoice other;
    other.begin({}, frames, partitions);
    EXPECT_EQ(other.share(), share) << frames;
    EXPECT_EQ(other.large_share(), share) << frames;
  }
}

// The same reads take far more operations: the policy that was chosen while they came in runs is compared again.
TEST_F(PolicyChoiceTest, TheFirstIsTriedAgainWhenIoIsOtherThanBefore) {
  periods_until(PolicyKind::kRandom, 10, [&] { return report(200, 200, 200, 100, 4096); });
  for (int i = 0; i < 60; ++i) ASSERT_EQ(report(200, 200, 200, 100, 3000), PolicyKind::kRandom);
  uint32_t periods = 0;
  while (report(200, 200, 200, 100, 1000) == PolicyKind::kRandom) ASSERT_LT(++periods, 40u);
  EXPECT_EQ(choice.chosen(), PolicyKind::kNrlfu);
  EXPECT_EQ(why(), "again");
}

// Of so many frames the least share is enough, always.
TEST_F(PolicyChoiceTest, SamplesThatAreNeverLargeTellOfOtherIo) {
  choice.begin({.least_sample = 1, .least_frames = 1, .least_reads = 1, .warm_up = 0}, 1 << 16, 1);
  ASSERT_EQ(choice.large_share(), 1u);
  periods_until(PolicyKind::kRandom, 10, [&] { return report(400, 400, 400, 200, 4096); });
  for (int i = 0; i < 60; ++i) ASSERT_EQ(report(400, 400, 400, 200, 3000), PolicyKind::kRandom);
  periods_until(PolicyKind::kNrlfu, 40, [&] { return report(400, 400, 400, 200, 1000); });
  EXPECT_EQ(why(), "again");
}

}  // namespace
}  // namespace cache
