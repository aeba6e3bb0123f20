#include "spill/seldom.h"

#include <gtest/gtest.h>

namespace spill {
namespace {

TEST(Seldom, RestsAsLongAsItTook) {
  Seldom seldom;
  EXPECT_TRUE(seldom.is_due(0));
  seldom.done(1000, 1000);
  EXPECT_TRUE(seldom.is_due(1000));
  seldom.done(1000, 1500);
  EXPECT_FALSE(seldom.is_due(1500 + 64 * 500 - 1));
  EXPECT_TRUE(seldom.is_due(1500 + 64 * 500));
}

// Like the heap's metadata for 10 TB of blocks, which takes 50 ms to look at, in rounds of 64 ms.
TEST(Seldom, TakesASmallPartOfTheTime) {
  constexpr uint64_t kRound = 64'000'000, kTakes = 50'000'000;
  Seldom seldom;
  uint64_t now = 0, taken = 0;
  for (int round = 0; round < 10'000; ++round) {
    if (seldom.is_due(now)) {
      seldom.done(now, now + kTakes);
      now += kTakes, taken += kTakes;
    }
    now += kRound;
  }
  EXPECT_GT(taken, 0u);
  EXPECT_LT(taken, now / 60);
}

}  // namespace
}  // namespace spill
