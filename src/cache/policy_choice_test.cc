#include "cache/policy_choice.h"

#include <gtest/gtest.h>

#include "base/statistics.h"

namespace cache {
namespace {

uint64_t clock_ns = 1;

class PolicyChoiceTest : public testing::Test {
 protected:
  PolicyChoiceTest() {
    choice.begin({.one_in = 64, .least_frames = 1, .least_reads = 1000, .now_ns = [] { return clock_ns; }},
                 100);
  }
  // A period: how many reads of samples, in how many nanoseconds. Returns what is chosen afterwards.
  PolicyKind report(uint32_t clock, uint32_t s3fifo, uint32_t random, uint64_t ns = 1000) {
    clock_ns += ns;
    const uint32_t sampled[] = {clock, s3fifo, random};
    choice.report(sampled, 1000);
    return choice.chosen();
  }
  PolicyChoice choice;
};

TEST_F(PolicyChoiceTest, ChangesWhenAPeriodIsOver) {
  PolicyChoice off;
  EXPECT_FALSE(off.is_on());
  EXPECT_TRUE(choice.is_on());
  EXPECT_EQ(report(2000, 1000, 1500), PolicyKind::kClock);
  EXPECT_EQ(report(2000, 1000, 1500), PolicyKind::kClock) << "how fast it goes is not known yet";
  clock_ns += 1000;
  const uint32_t sampled[] = {2000, 1000, 1500};
  choice.report(sampled, 999);
  EXPECT_EQ(choice.chosen(), PolicyKind::kClock);
  const uint32_t none[] = {0, 0, 0};
  choice.report(none, 1);
  EXPECT_EQ(choice.chosen(), PolicyKind::kS3fifo);
}

// Of few reads it may be chance; of many a difference of a few parts of a hundred is not worth it.
TEST_F(PolicyChoiceTest, ChangesWhenItIsClear) {
  EXPECT_EQ(report(20, 10, 15), PolicyKind::kClock);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(report(100'000, 95'000, 100'000), PolicyKind::kClock);
  for (int i = 0; i < 60; ++i) report(1000, 800, 900);
  EXPECT_EQ(choice.chosen(), PolicyKind::kS3fifo) << "what was reported long ago counts no more";
  for (int i = 0; i < 60; ++i) report(1000, 800, 700);
  EXPECT_EQ(choice.chosen(), PolicyKind::kRandom);
}

TEST_F(PolicyChoiceTest, ReturnsFromWhatIsSlower) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(report(2000, 2000, 2000), PolicyKind::kClock);
  uint32_t periods = 0;
  while (report(2000, 2000, 1000) == PolicyKind::kClock) ASSERT_LT(++periods, 10u);
  // What comes just after a change tells nothing of it.
  for (uint32_t i = 0; i < PolicyChoice::kSettle; ++i)
    EXPECT_EQ(report(2000, 2000, 1000, 500), PolicyKind::kRandom);
  for (uint32_t i = 1; i < PolicyChoice::kTrial; ++i)
    EXPECT_EQ(report(2000, 2000, 1000, 1200), PolicyKind::kRandom);
  EXPECT_EQ(report(2000, 2000, 1000, 1200), PolicyKind::kClock);
  EXPECT_EQ(base::WordText(base::statistics.chosen_policy_why.get()).view(), "returned");
  // For a while, and then for twice as long.
  for (uint32_t ban : {PolicyChoice::kBan, 2 * PolicyChoice::kBan}) {
    for (uint32_t i = 1; i < ban; ++i) ASSERT_EQ(report(2000, 2000, 1000), PolicyKind::kClock) << i;
    EXPECT_EQ(report(2000, 2000, 1000), PolicyKind::kRandom);
    for (uint32_t i = 0; i < PolicyChoice::kSettle + PolicyChoice::kTrial; ++i)
      report(2000, 2000, 1000, 1200);
    EXPECT_EQ(choice.chosen(), PolicyKind::kClock);
  }
  // What is far slower is not tried to the end.
  while (report(2000, 2000, 1000) == PolicyKind::kClock) {
  }
  for (uint32_t i = 0; i < PolicyChoice::kSettle; ++i)
    EXPECT_EQ(report(2000, 2000, 1000, 2000), PolicyKind::kRandom);
  EXPECT_EQ(report(2000, 2000, 1000, 2000), PolicyKind::kClock);
}

}  // namespace
}  // namespace cache
