// With the persistence runtime, a crash leaves nothing that it could not leave without it, whatever a program stores, flushes and fences, in each Way and while ways change
// (machine.h). All short programs, and random long ones.
#include <gtest/gtest.h>

#include "programs.h"

namespace persist_semantics {
namespace {

class SemanticsTest : public testing::TestWithParam<Way> {
 protected:
  void check_all(size_t length, uint32_t lines, uint32_t threads) {
    Machine machine(GetParam(), lines);
    persist_semantics::check_all(machine, length, {.lines = lines, .threads = threads});
  }
  // Ways in which other threads do the work take longer.
  bool is_quick() const { return GetParam() == Way::kInline || GetParam() == Way::kEpoch; }
};
INSTANTIATE_TEST_SUITE_P(Ways, SemanticsTest, testing::ValuesIn(persist::kWays),
                         [](const auto& way) { return persist::name_of(way.param); });

TEST_P(SemanticsTest, AllShortProgramsOfOneThread) {
  check_all((is_quick() ? 6 : 5) + 2 * is_long, 2, 1);
  check_all((is_quick() ? 5 : 4) + 2 * is_long, 3, 1);
}

TEST_P(SemanticsTest, AllShortProgramsOfTwoThreads) { check_all(4 + is_long, 2, 2); }

// On few lines, and on more than the runtime can put off or keep apart; ways change in the middle.
TEST_P(SemanticsTest, RandomProgramsOfTwoThreadsThatTakeTurns) {
  for (uint64_t seed = 1; seed <= (is_long ? 400 : 40); ++seed) {
    std::mt19937_64 random(seed);
    const auto lines = static_cast<uint32_t>(seed % 4 == 0 ? 700 : 1 + random() % 12);
    const size_t length = lines > 100 ? 4000 : 200;
    Machine machine(GetParam(), lines);
    std::vector<Step> steps;
    // With many lines, fences are far from each other, so that there is no room for what is put off.
    for (size_t i = 0; i < length; ++i) {
      Step step = random_step(random, lines, Machine::kThreads);
      if (lines > 100 && step.act == Step::kFence && random() % 8 != 0) step.act = Step::kFlush;
      steps.push_back(step);
      machine.run(step);
    }
    for (uint8_t t = 0; t < Machine::kThreads; ++t) machine.run({Step::kFence, t});
    ASSERT_EQ(why_not(machine.device().take_log(), lines, lines > 100 ? 64 : 1), "")
        << seed << ": " << (length < 1000 ? text_of(steps) : "");
  }
}

TEST_P(SemanticsTest, RandomProgramsOfTwoThreadsAtOnce) {
  for (uint64_t seed = 1; seed <= (is_long ? 200 : 20); ++seed) {
    const auto lines = static_cast<uint32_t>(2 + seed % 5);
    Machine machine(GetParam(), lines);
    run_at_once(machine, seed, lines);
    ASSERT_EQ(why_not(machine.device().take_log(), lines), "") << seed;
  }
}

// A flusher that claims a line after that finds it in no domain.
TEST_P(SemanticsTest, WhatWaitsToBeFlushedIsDurableWhenAnotherThreadRemovesItsDomain) {
  constexpr uint32_t kLines = 300;
  Machine machine(GetParam(), kLines);
  for (int again = 0; again < 100; ++again) {
    for (const Step::Act act : {Step::kStore, Step::kFlush, Step::kStore, Step::kFlush})
      for (uint32_t line = 0; line < kLines; ++line) machine.run({act, 0, line});
    machine.run({Step::kRemove, 1, static_cast<uint32_t>(again)});
    machine.run({Step::kFence, 0});
    ASSERT_EQ(why_not(machine.device().take_log(), kLines, kLines), "") << again;
  }
}

// The log of a runtime that does all that it must is accepted, and one of a runtime that does one thing less is not.
TEST(WhyNot, TellsWhatIsMissing) {
  const Noted store = {Noted::kBoth, RecordKind::kStore, 1, 0, 1};
  const Noted flush = {Noted::kProgram, RecordKind::kFlush, 1},
              fence = {Noted::kProgram, RecordKind::kFence, 1};
  const Noted by_device = {Noted::kDevice, RecordKind::kFlush, 7},
              fence_of_device = {Noted::kDevice, RecordKind::kFence, 7};
  EXPECT_EQ(why_not({store, flush, by_device, fence_of_device, fence}, 1), "");
  EXPECT_EQ(why_not({store, flush, by_device}, 1), "");
  EXPECT_NE(why_not({store, flush, by_device, fence}, 1), "");
  EXPECT_NE(why_not({store, flush, fence_of_device, fence}, 1), "");
  EXPECT_NE(why_not({store, flush, by_device, fence, fence_of_device}, 1), "");
  // Flushed by another thread than the one that fences; flushed before the store that it is to cover.
  EXPECT_NE(why_not({store, flush, {Noted::kDevice, RecordKind::kFlush, 8}, fence_of_device, fence}, 1), "");
  EXPECT_NE(why_not({by_device, store, flush, fence_of_device, fence}, 1), "");
}

}  // namespace
}  // namespace persist_semantics
