#include "spill/ahead/walk.h"

#include <gtest/gtest.h>

#include <set>

namespace spill {
namespace {

constexpr uint32_t kMin = 8, kMax = kMin * Walk::kWindowGrowth;

// A loop that reports its place, for which `room` pages can be loaded at a time.
class Walker {
 public:
  explicit Walker(uint32_t most = ~0u, uint32_t least = kMin) : room(most), least_(least) {}
  void be_at(uint64_t page, uint64_t step = 1) {
    late += !there.contains(page);
    there.insert(page);
    if (walk_.at(page, step)) {
      const Walk::Window window = walk_.window(least_);
      const uint32_t count = std::min(window.count, room);
      for (uint32_t i = 0; i < count; ++i) there.insert(window.first + i);
      walk_.begun(count, least_);
      ++windows;
      asked += count;
      largest = std::max(largest, count);
    }
    ahead = std::max(ahead, *there.rbegin() - page);
  }

  uint32_t room;  // for so many pages at a time
  std::set<uint64_t> there;
  uint32_t late = 0;  // pages that nobody had asked for
  uint32_t windows = 0;
  uint64_t asked = 0;  // pages, in all windows
  uint32_t largest = 0;
  uint64_t ahead = 0;  // the most pages that were asked for and lay ahead of it

 private:
  Walk walk_;
  const uint32_t least_;
};

TEST(Walk, WhatComesNextIsAskedForInWindowsThatGrow) {
  Walker walker;
  for (uint64_t page = 100; page < 2100; ++page)
    for (int i = 0; i < 3; ++i) walker.be_at(page);
  EXPECT_EQ(walker.late, 1 + Walk::kMinSteps);
  EXPECT_GE(walker.largest, kMax / 2);
  EXPECT_LE(walker.largest, kMax + Walk::kGroupPages);
  EXPECT_LE(walker.windows, 2 * 2000 / kMax + 5);
  EXPECT_LE(walker.there.size(), 2000 + kMax + Walk::kGroupPages);
}

TEST(Walk, WindowsEndWhereGroupsDo) {
  Walk walk;
  int windows = 0;
  for (uint64_t page = 5; page < 300; ++page)
    if (walk.at(page, 1)) {
      const Walk::Window window = walk.window(kMin);
      EXPECT_EQ((window.first + window.count) % Walk::kGroupPages, 0u) << page;
      walk.begun(window.count, kMin);
      ++windows;
    }
  EXPECT_GT(windows, 1);
}

TEST(Walk, ShortRowsAnywhereAreNone) {
  Walker walker;
  for (uint64_t row = 1; row < 500; ++row)
    for (uint64_t page = 0; page < 2; ++page) walker.be_at(row * 7919 % 500 * 1000 + page);
  EXPECT_EQ(walker.windows, 0u);
}

TEST(Walk, StandingStillIsNone) {
  Walker walker;
  for (uint32_t i = 0; i < 100; ++i) walker.be_at(7);
  EXPECT_EQ(walker.windows, 0u);
}

TEST(Walk, ItGoesOnBehindPagesThatSomebodyElseWalksThrough) {
  Walker walker;
  for (uint64_t page = 1000; page < 2000; ++page)
    if (page < 1200 || page / 16 % 2 == 0) walker.be_at(page);
  EXPECT_EQ(walker.late, 1 + Walk::kMinSteps);
  EXPECT_LE(walker.asked, 1000u + 2 * kMax) << "none of them again";
}

TEST(Walk, StepsMayLeavePagesOut) {
  Walker walker;
  for (uint64_t page = 1000; page < 2000; page += 3) walker.be_at(page, 3);
  EXPECT_EQ(walker.late, 1 + Walk::kMinSteps);
  Walker shorter;
  for (uint64_t page = 1000; page < 2000; page += 3) shorter.be_at(page, 2);
  EXPECT_EQ(shorter.windows, 0u);
}

TEST(Walk, WhatThereWasNoRoomForIsAskedForAgain) {
  Walker walker(5);
  for (uint64_t page = 100; page < 300; ++page) walker.be_at(page);
  EXPECT_EQ(walker.late, 1 + Walk::kMinSteps);
  EXPECT_EQ(walker.largest, 5u);
  Walker none(0);
  for (uint64_t page = 100; page < 300; ++page) none.be_at(page);
  EXPECT_EQ(none.late, 200u);
  none.room = ~0u;
  for (uint64_t page = 300; page < 400; ++page) none.be_at(page);
  EXPECT_EQ(none.late, 201u);
}

// If many threads share few frames, what is loaded too early would displace what is about to be used.
TEST(Walk, WhatIsAheadIsNotMuchMoreThanThereMayBe) {
  for (const uint32_t most : {8u, 20u, 64u, 200u}) {
    Walker walker(most, Walk::least_of(kMin, most));
    for (uint64_t page = 100; page < 2100; ++page) walker.be_at(page);
    EXPECT_EQ(walker.late, 1 + Walk::kMinSteps) << most;
    EXPECT_LE(walker.ahead, most + most / 2) << most;
  }
  EXPECT_EQ(Walk::least_of(kMin, Walk::kWindowGrowth - 1), 0u);
  EXPECT_EQ(Walk::least_of(kMin, 1000), kMin);
}

TEST(Walk, NearIsWhatItsWindowsReach) {
  Walk walk;
  EXPECT_FALSE(walk.is_near(100));
  for (uint64_t page = 1000; page < 1400; ++page)
    if (walk.at(page, 1)) walk.begun(walk.window(kMin).count, kMin);
  EXPECT_TRUE(walk.is_near(1399));
  EXPECT_TRUE(walk.is_near(1399 + kMax));
  EXPECT_TRUE(walk.is_near(1399 - kMax));
  EXPECT_FALSE(walk.is_near(1399 - 2 * kMax));
  EXPECT_FALSE(walk.is_near(1399 + 4 * kMax));
  walk.at(90'000, 1);
  EXPECT_FALSE(walk.is_near(90'000)) << "it may be the only page there";
}

TEST(Walk, SomewhereElseItBeginsAnew) {
  Walker walker;
  for (uint64_t begin : {uint64_t{10'000}, uint64_t{5'000}, uint64_t{90'000}})
    for (uint64_t page = begin; page < begin + 400; ++page) walker.be_at(page);
  EXPECT_EQ(walker.late, 3 * (1 + Walk::kMinSteps));
}

}  // namespace
}  // namespace spill
