#include "base/idle.h"

#include <gtest/gtest.h>

namespace base {
namespace {

uint64_t time_ns = 0;
uint64_t clock_ns() { return time_ns; }

// How many turns of this length find nothing before it should sleep.
uint32_t turns_until_sleep(Idle& idle, uint64_t turn_ns) {
  for (uint32_t turns = 1;; ++turns) {
    time_ns += turn_ns;
    if (idle.should_sleep(clock_ns)) return turns;
  }
}

TEST(IdleTest, LooksOnForAWhile) {
  Idle idle;
  const uint32_t turns = turns_until_sleep(idle, 100);
  EXPECT_GE(turns, Idle::kPace.look_ns / 100);
  EXPECT_LE(turns, Idle::kPace.look_ns / 100 + Idle::kTurnsAlways + Idle::kPace.turns_per_clock);
}

TEST(IdleTest, LooksMoreRarelyWhenItIsInVain) {
  Idle idle;
  constexpr uint32_t kSleeps = 10'000;
  uint32_t looks = 0;
  for (uint32_t sleeps = 0; sleeps < kSleeps; ++sleeps) {
    looks += turns_until_sleep(idle, 100) > Idle::kTurnsAlways;
    idle.end();  // the worker finds what it slept for
  }
  EXPECT_GT(looks, kSleeps / (Idle::kMaxSleepsBetween + 1));
  EXPECT_LT(looks, kSleeps / (Idle::kMaxSleepsBetween + 1) + 10);
}

TEST(IdleTest, LooksAgainWhenLookingHelped) {
  Idle idle;
  for (uint32_t sleeps = 0; sleeps < 1000; ++sleeps) turns_until_sleep(idle, 100);
  // The next time that it looks, it finds something.
  uint32_t turns = 0;
  while (turns <= Idle::kTurnsAlways) turns = idle.should_sleep(clock_ns) ? 0 : turns + 1;
  idle.end();
  // After that, looking is in vain again, and is left out once at first.
  EXPECT_GT(turns_until_sleep(idle, 100), Idle::kTurnsAlways);
  EXPECT_EQ(turns_until_sleep(idle, 100), Idle::kTurnsAlways);
  EXPECT_GT(turns_until_sleep(idle, 100), Idle::kTurnsAlways);
}

TEST(IdleTest, WorkWithoutALookSaysNothingOfIt) {
  Idle idle;
  turns_until_sleep(idle, 100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(idle.should_sleep(clock_ns));
    idle.end();
  }
  EXPECT_EQ(turns_until_sleep(idle, 100), Idle::kTurnsAlways);
}

}  // namespace
}  // namespace base
