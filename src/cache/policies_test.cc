// Samples, and what is chosen by them, beside policies that were asked for.
#include "cache/policies.h"

#include <gtest/gtest.h>

#include "cache/test_frames.h"

namespace cache {
namespace {

// An access takes a while, a read a hundred times as long.
uint64_t clock_ns = 1;
constexpr uint64_t kAccessNs = 10, kReadNs = 1000;
constexpr PolicyChoice::Parameters kQuick = {
    .one_in = 16, .least_frames = 1024, .least_reads = 2048, .now_ns = [] { return clock_ns; }};

uint64_t run_by_clock(Frames& frames, const Trace& trace, uint64_t random_read_ns = kReadNs) {
  uint64_t misses = 0;
  for (const uint64_t page : trace) {
    clock_ns += kAccessNs;
    if (frames.access(page)) continue;
    ++misses;
    clock_ns += frames.policy->follows() == PolicyKind::kRandom ? random_read_ns : kReadNs;
  }
  return misses;
}

TEST(ChosenPolicy, IsTheOneThatReadsLeast) {
  constexpr uint32_t kFrames = 1024;
  const std::pair<PolicyKind, Trace> traces[] = {{PolicyKind::kRandom, looped(1180, 80'000)},
                                                 {PolicyKind::kS3fifo, skewed(10'000, 160'000)},
                                                 {PolicyKind::kClock, looped(800, 10'000)}};
  for (const auto& [expected, trace] : traces) {
    Frames frames(std::nullopt, kFrames, kQuick);
    run_by_clock(frames, trace);
    EXPECT_EQ(frames.policy->follows(), expected) << base::name_of(expected);
    EXPECT_EQ(frames.choice.chosen(), expected);
    // From now on as if it had been asked for, but for the samples, which are three of sixteen pages here.
    Frames asked(expected, kFrames);
    run(asked, trace);
    const auto misses = static_cast<double>(run_by_clock(frames, trace)),
               best = static_cast<double>(run(asked, trace));
    printf("%s: %.0f misses, asked for %.0f\n", base::name_of(expected), misses, best);
    EXPECT_LE(misses, 1.15 * best);
  }
}

TEST(ChosenPolicy, FollowsTheProgram) {
  Frames frames(std::nullopt, 1024, kQuick);
  run_by_clock(frames, looped(1180, 100'000));
  EXPECT_NE(frames.policy->follows(), PolicyKind::kClock);
  run_by_clock(frames, scanned(700, 200'000));
  EXPECT_EQ(frames.policy->follows(), PolicyKind::kS3fifo);
}

// Half as many reads that take four times as long: it is tried now and then, and another one stays.
TEST(ChosenPolicy, IsNoneThatIsSlower) {
  Frames frames(std::nullopt, 1024, kQuick);
  const uint64_t changes = base::statistics.chosen_policy_changes.get();
  run_by_clock(frames, looped(1180, 150'000), 4 * kReadNs);
  EXPECT_NE(frames.policy->follows(), PolicyKind::kRandom);
  EXPECT_GE(base::statistics.chosen_policy_changes.get(), changes + 2);
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
