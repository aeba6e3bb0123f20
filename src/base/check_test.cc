#include "base/check.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "base/platform.h"

namespace base {
namespace {

TEST(CheckDeathTest, PassesWhenItHoldsAndEvaluatesOnce) {
  int evaluations = 0;
  CHECK(++evaluations == 1);
  CHECK_EQ(++evaluations, 2);
  CHECK_LT(1, 2);
  CHECK_LE(2, 2);
  CHECK_GT(2, 1);
  CHECK_GE(2, 2);
  CHECK_NE(1, 2);
  EXPECT_EQ(evaluations, 2);
}

TEST(CheckDeathTest, NamesPlaceConditionAndBothValues) {
  uint64_t frames = 7;
  EXPECT_EXIT(CHECK_EQ(frames, 8u), testing::KilledBySignal(SIGABRT),
              "check_test.cc:[0-9]+: frames == 8u does not hold \\(7 and 8, 0x7 and 0x8\\)");
  EXPECT_EXIT(CHECK(frames == 9), testing::KilledBySignal(SIGABRT),
              "check_test.cc:[0-9]+: frames == 9 does not hold");
}

TEST(CheckDeathTest, AbortCannotBeCaughtOrBlocked) {
  EXPECT_EXIT(
      {
        signal(SIGABRT, SIG_IGN);
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, nullptr);
        platform_abort();
      },
      testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace base
