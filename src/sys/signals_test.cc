#include "sys/signals.h"

#include <gtest/gtest.h>

namespace sys {
namespace {

constexpr uint64_t kOne = signal_bit(SIGUSR1), kOther = signal_bit(SIGUSR2);

TEST(Signals, AMaskIsSetAddedToAndTakenFrom) {
  const uint64_t before = set_signal_mask(kOne);
  EXPECT_EQ(signal_mask(), kOne);
  EXPECT_EQ(block_signals(kOther), kOne);
  EXPECT_EQ(unblock_signals(kOne), kOne | kOther);
  EXPECT_EQ(set_signal_mask(before), kOther);
  EXPECT_EQ(signal_mask(), before);
}

TEST(Signals, WhatOthersSendIsAllThatNeitherInstructionsNorTheCLibraryRaise) {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, 32, 33})
    EXPECT_EQ(kSentSignals & signal_bit(number), 0u) << number;
  for (const int number : {SIGHUP, SIGINT, SIGALRM, SIGCHLD, SIGUSR1, 34, 64})
    EXPECT_NE(kSentSignals & signal_bit(number), 0u) << number;
}

TEST(BlockedSignals, WhatWasBlockedBeforeIsSoAfterwards) {
  const uint64_t before = set_signal_mask(kOne);
  {
    const BlockedSignals blocked(kOne | kOther);
    EXPECT_EQ(signal_mask(), kOne | kOther);
  }
  EXPECT_EQ(set_signal_mask(before), kOne);
}

}  // namespace
}  // namespace sys
