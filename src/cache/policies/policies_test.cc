// Samples, and the policies chosen by them, compared with policies that were asked for.
#include "cache/policies/policies.h"

#include <gtest/gtest.h>

#include "cache/testing/test_frames.h"

namespace cache {
namespace {

constexpr PolicyChoice::Parameters kQuick = {.least_frames = 1024, .least_reads = 2048, .warm_up = 0};

// Reports as if clock's sample had to read least.
void make_follow_clock(Frames& frames) {
  for (uint32_t i = 0; i < 40 && frames.choice.chosen() != PolicyKind::kClock; ++i)
    frames.choice.report({.sampled = {300, 300, 300, 300, 100}, .reads = 6100, .io = {4096, 4096}});
  for (uint64_t page = 0; page < 1024; ++page) frames.policy->note_read(PageId{page});
  ASSERT_EQ(frames.policy->follows(), PolicyKind::kClock);
}

// Whether pages leave one by one, or in batches, as they do in partitions.
TEST(ChosenPolicy, IsTheOneThatReadsLeast) {
  constexpr uint32_t kFrames = 2048;
  // Some policies are equally good.
  const std::tuple<PolicyKind, std::set<PolicyKind>, Trace> traces[] = {
      {PolicyKind::kRandom, {PolicyKind::kRandom, PolicyKind::kNrlfu}, looped(2360, 100'000)},
      {PolicyKind::kS3fifo,
       {PolicyKind::kS3fifo, PolicyKind::kTwoQueues, PolicyKind::kNrlfu},
       skewed(20'000, 120'000)},
      {PolicyKind::kNrlfu, {PolicyKind::kNrlfu}, looped(1600, 10'000)}};
  for (const uint32_t batch : {1u, 64u}) {
    for (const auto& [best, near, trace] : traces) {
      Frames frames(std::nullopt, kFrames, kQuick);
      frames.batch = batch;
      run(frames, trace);
      EXPECT_TRUE(near.contains(frames.policy->follows())) << base::name_of(frames.policy->follows());
      EXPECT_EQ(frames.choice.chosen(), frames.policy->follows());
      // From now on it does as well as if it had been asked for, apart from the samples, which are up to a fourth of the pages here.
      Frames asked(best, kFrames);
      asked.batch = batch;
      run(asked, trace);
      const auto misses = static_cast<double>(run(frames, trace)),
                 fewest = static_cast<double>(run(asked, trace));
      printf("%s, batches of %u: %s, %.0f misses, asked for %.0f\n", base::name_of(best), batch,
             base::name_of(frames.policy->follows()), misses, fewest);
      EXPECT_LE(misses, 1.3 * fewest);
    }
  }
}

// Neighbours are in the same sample: pages that come and leave in runs still do so.
TEST(ChosenPolicy, SamplesDoNotBreakRuns) {
  constexpr uint64_t kRun = 16, kPages = 2400;
  // So that no other policy is chosen meanwhile.
  constexpr PolicyChoice::Parameters kSlow = {.least_frames = 1024, .least_reads = 1 << 20, .warm_up = 0};
  const auto operations = [&](Asked asked) {
    Frames frames(asked, 2048, kSlow);
    uint64_t count = 0, last = 0;
    for (const uint64_t page : looped(kPages, 8 * kPages)) {
      if (frames.has(page)) continue;
      const bool begins = page != last + 1 || page % kRun == 0;
      frames.load(page, true, begins);
      count += begins;
      last = page;
    }
    return count;
  };
  const uint64_t asked = operations(PolicyKind::kNrlfu), chosen = operations(std::nullopt);
  printf("%lu operations, %lu with samples\n", static_cast<unsigned long>(asked),
         static_cast<unsigned long>(chosen));
  EXPECT_LE(2 * chosen, 3 * asked);
}

// Neighbours leave with a victim only if they are in the same sample, and only as far as it has more than its share.
TEST(ChosenPolicy, NeighboursLeaveSamplesTheirShare) {
  constexpr uint32_t kPages = 2048;  // each sample has exactly its share of so many
  Frames frames(std::nullopt, kPages + 512, kQuick);
  for (uint64_t page = 0; page < kPages; ++page) frames.load(page, true);
  make_follow_clock(frames);  // whose neighbours stay
  const auto going = [&] {
    uint32_t count = 0;
    for (uint64_t page = 0; page < kPages; ++page) {
      if (!frames.has(page) || !frames.has(page ^ 1)) continue;
      count += frames.policy->goes_with(FrameId{frames.frame_of(page)}, FrameId{frames.frame_of(page ^ 1)});
    }
    return count;
  };
  EXPECT_EQ(going(), 0u);
  // Neighbours of pages in samples that have too much now.
  for (uint64_t page = kPages; page < kPages + 512; ++page) frames.load(page, true);
  const uint32_t may_go = going();
  EXPECT_GT(may_go, 0u);
  EXPECT_LE(may_go, 2 * kPages * PolicyChoice::kLargeShare / PolicyChoice::kParts);
}

// The program does two things in turn, and changes at various points of a trial of the policy that suits one of them.
TEST(ChosenPolicy, FollowsTheProgram) {
  for (const uint32_t length : {60'000u, 100'000u, 105'000u, 110'000u, 115'000u, 120'000u}) {
    Frames frames(std::nullopt, 1024, kQuick);
    run(frames, looped(1180, length));
    const auto suits_loops = [&] {
      return frames.policy->follows() == PolicyKind::kRandom ||
             frames.policy->follows() == PolicyKind::kNrlfu;
    };
    EXPECT_TRUE(suits_loops()) << length;
    run(frames, scanned(700, 200'000));
    EXPECT_TRUE(frames.policy->follows() == PolicyKind::kTwoQueues ||
                frames.policy->follows() == PolicyKind::kS3fifo ||
                frames.policy->follows() == PolicyKind::kNrlfu)
        << length;
    run(frames, looped(1180, 200'000));
    EXPECT_TRUE(suits_loops()) << length;
  }
}

// The program reads in runs: under random half as many pages, but each by an operation of its own.
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

// Samples become smaller and larger: every page still belongs to some policy, and leaves.
TEST(ChosenPolicy, PagesStayHeldWhenSharesChange) {
  Frames frames(std::nullopt, 2048, kQuick);
  std::mt19937_64 random(6);
  std::set<uint32_t> shares;
  for (int i = 0; i < 400'000; ++i) {
    // The work changes from time to time, so that the choice is in doubt.
    frames.access(i / 60'000 % 2 == 0 ? random() % 3200 : static_cast<uint64_t>(i) % 2360);
    if (!shares.insert(frames.choice.share()).second && i % 1000 != 0) continue;
    ASSERT_EQ(frames.policy->held_count(), frames.resident().size());
    for (const auto& [page, frame] : frames.resident()) ASSERT_TRUE(frames.policy->holds(FrameId{frame}));
  }
  EXPECT_EQ(shares.size(), 2u);
  while (!frames.resident().empty()) frames.evict();
  EXPECT_EQ(frames.policy->held_count(), 0u);
}

// Clock has no page to cool: that is no reason to cool pages of samples more often.
TEST(ChosenPolicy, SamplesAreCooledAsOftenAsTheirPagesLeave) {
  Frames frames(std::nullopt, 1024, kQuick);
  for (uint64_t page = 0; page < 1024; ++page) frames.load(page, true);
  make_follow_clock(frames);
  constexpr uint32_t kRounds = 10, kTurnsOfRound = PolicyChoice::kParts / PolicyChoice::kLargeShare;
  uint32_t cooled = 0, turns = kRounds * kTurnsOfRound;
  while (frames.policy->name_to_cool(turns) != base::kNoFrame) ++cooled;
  EXPECT_EQ(turns, 0u);
  EXPECT_GE(cooled, kRounds);
  EXPECT_LE(cooled, kRounds * PolicyChoice::kCandidateCount);
}

// A page that is taken twice counts once, and one that stays after all counts as before.
TEST(PolicyCounts, PagesOnTheirWayOutDoNotStay) {
  Budget budget;
  auto created = Policy::create(PolicyKind::kClock, 100, 100, budget);
  ASSERT_TRUE(created.has_value());
  Policy& policy = **created;
  for (uint32_t i = 0; i < 100; ++i) policy.loaded(FrameId{i}, PageId{i}, true);
  for (const uint32_t i : {3u, 70u, 70u, 99u}) policy.taken(FrameId{i});
  EXPECT_EQ(policy.staying_count(), 97u);
  policy.stays(FrameId{70});
  policy.stays(FrameId{71});
  EXPECT_EQ(policy.staying_count(), 98u);
  policy.left(FrameId{3}, PageId{3}, Removal::kEvicted);
  EXPECT_EQ(policy.held_count(), 99u);
  EXPECT_EQ(policy.staying_count(), 98u);
  policy.loaded(FrameId{3}, PageId{3}, true);
  EXPECT_EQ(policy.staying_count(), 99u);
  policy.destroy();
}

TEST(ChosenPolicy, SmallPartitionsHaveNoSamples) {
  Frames small(std::nullopt, kQuick.least_frames - 1, kQuick),
      large(std::nullopt, kQuick.least_frames, kQuick);
  Frames alone(PolicyKind::kNrlfu, kQuick.least_frames - 1);
  EXPECT_EQ(small.budget.used_bytes(), alone.budget.used_bytes());
  EXPECT_GT(large.budget.used_bytes(), alone.budget.used_bytes() + 12 * kQuick.least_frames);
}

}  // namespace
}  // namespace cache
