#include "kv/log/pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

namespace kv {
namespace {

constexpr uint64_t kMs = 1'000'000, kSecond = 1'000 * kMs;

// A collector gains this many grains a millisecond, for `ms`, at this level. Returns when it ends.
uint64_t collect(Pace& pace, uint64_t now_ns, uint64_t grains, uint64_t ms, double level = 1) {
  pace.work(level, now_ns);
  for (uint64_t i = 0; i < ms; ++i) pace.gained(grains, level, now_ns += kMs);
  return now_ns;
}

// How many grains have their turns within a second from now, if each writer has `each`.
uint64_t in_a_second(Pace& pace, uint64_t now_ns, uint64_t each = 1) {
  uint64_t grains = 0;
  while (pace.turn(each, now_ns) < now_ns + kSecond / 2) grains += each;
  return 2 * grains;
}

TEST(Pace, WritersAreAsFastAsTheCollector) {
  for (const uint64_t each : {1, 8, 100}) {
    Pace pace;
    pace.open(4096);
    const uint64_t now = collect(pace, kSecond, 20, 500);
    EXPECT_NEAR(static_cast<double>(in_a_second(pace, now, each)), 20'000,
                500 + 2.0 * static_cast<double>(each));
  }
}

TEST(Pace, TurnsFollowEachOtherEvenly) {
  Pace pace;
  pace.open(4096);
  const uint64_t now = collect(pace, kSecond, 20, 500);
  uint64_t before = pace.turn(4, now);
  EXPECT_LE(before, now);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t turn = pace.turn(4, now);
    EXPECT_NEAR(static_cast<double>(turn - before), 200'000, 3'000) << "4 grains of 50 us";
    before = turn;
  }
}

TEST(Pace, ItIsFasterWhereMoreIsFreeAndSlowerWhereLessIs) {
  const struct {
    double level, factor;
  } cases[] = {{0.5, 0.5}, {1.5, 1.5}, {5, 2}, {0, 0.25}, {-3, 0.25}};
  for (const auto& [level, factor] : cases) {
    Pace pace;
    pace.open(4096);
    const uint64_t now = collect(pace, kSecond, 20, 500, level);
    EXPECT_NEAR(static_cast<double>(in_a_second(pace, now)), 20'000 * factor, 1'500) << level;
  }
}

TEST(Pace, OneLevelAmongManyChangesLittle) {
  Pace pace;
  pace.open(4096);
  uint64_t now = collect(pace, kSecond, 20, 500);
  now = collect(pace, now, 20, 1, 2);
  EXPECT_NEAR(static_cast<double>(in_a_second(pace, now)), 22'500, 500);
}

TEST(Pace, WhoBeginsKnowsHowMuchIsFree) {
  Pace pace;
  pace.open(4096);
  uint64_t now = collect(pace, kSecond, 20, 500);
  pace.rest();
  pace.work(0.5, now);
  EXPECT_NEAR(static_cast<double>(in_a_second(pace, now)), 10'000, 500);
  pace.work(2, now += kSecond);
  EXPECT_NEAR(static_cast<double>(in_a_second(pace, now)), 10'000, 500) << "it has begun already";
  Pace first;
  first.open(4096);
  first.work(0.5, kSecond);
  EXPECT_NEAR(static_cast<double>(in_a_second(first, kSecond)), 40e6 / 4096, 400);
}

// How much is gained at a time, and how long nothing is gained in between, makes no difference.
TEST(Pace, GainsThatComeInLumpsAreEvenedOut) {
  Pace pace;
  pace.open(4096);
  uint64_t now = kSecond;
  pace.work(1, now);
  for (int i = 0; i < 100; ++i) {
    for (int piece = 0; piece < 4; ++piece) pace.gained(40, 1, now += kMs);
    now += 4 * kMs;
  }
  EXPECT_NEAR(static_cast<double>(in_a_second(pace, now)), 20'000, 1'500);
}

TEST(Pace, TimeAtRestDoesNotCount) {
  Pace pace;
  pace.open(4096);
  uint64_t now = collect(pace, kSecond, 20, 500);
  pace.rest();
  now = collect(pace, now + 100 * kSecond, 20, 5);
  EXPECT_NEAR(static_cast<double>(in_a_second(pace, now)), 20'000, 500);
  // Without rest() it does.
  now = collect(pace, now + 10 * kSecond, 20, 1);
  EXPECT_LT(in_a_second(pace, now), 3'000u);
}

TEST(Pace, ANewSpeedIsKnownSoon) {
  Pace pace;
  pace.open(4096);
  uint64_t now = collect(pace, kSecond, 20, 1000);
  now = collect(pace, now, 100, 600);
  EXPECT_GT(in_a_second(pace, now), 90'000u);
  now = collect(pace, now, 10, 1200);
  EXPECT_LT(in_a_second(pace, now), 11'500u);
}

TEST(Pace, BeforeAnythingIsKnownWritersWriteEightyMegabytesASecond) {
  for (const uint64_t grain_bytes : {512, 4096}) {
    Pace pace;
    pace.open(grain_bytes);
    EXPECT_NEAR(static_cast<double>(in_a_second(pace, kSecond)), 80e6 / static_cast<double>(grain_bytes),
                400);
    // One moment's gain says nothing.
    pace.work(1, kSecond);
    pace.gained(1, 1, kSecond + kMs);
    EXPECT_GT(pace.turn(1, 2 * kSecond), kSecond);
    EXPECT_NEAR(static_cast<double>(in_a_second(pace, 2 * kSecond)), 80e6 / static_cast<double>(grain_bytes),
                400);
  }
}

TEST(Pace, WhatNobodyUsesIsLost) {
  Pace pace;
  pace.open(4096);
  uint64_t now = collect(pace, kSecond, 20, 500);
  EXPECT_LE(pace.turn(1, now), now);
  now += 100 * kMs;
  // A millisecond's worth may be made up for.
  uint64_t at_once = 0;
  while (pace.turn(1, now) <= now) ++at_once;
  EXPECT_NEAR(static_cast<double>(at_once), 20, 2);
}

TEST(Pace, NobodyWaitsForMoreThanASecond) {
  Pace pace;
  pace.open(4096);
  const uint64_t now = collect(pace, kSecond, 0, 1000);
  for (int i = 0; i < 1000; ++i) EXPECT_LE(pace.turn(1000, now), now + Pace::kMaxAheadNs);
  // Even when a clock begins at 0.
  Pace early;
  early.open(4096);
  EXPECT_EQ(early.turn(1, 0), 0u);
}

TEST(Pace, ThreadsHaveTurnsOfTheirOwn) {
  Pace pace;
  pace.open(4096);
  const uint64_t now = collect(pace, kSecond, 20'000, 500);
  constexpr size_t kThreads = 4, kTurns = 200'000;
  std::vector<std::vector<uint64_t>> turns(kThreads);
  std::vector<std::thread> threads;
  std::barrier begin(kThreads);
  for (auto& own : turns)
    threads.emplace_back([&] {
      own.reserve(kTurns);
      begin.arrive_and_wait();
      for (size_t i = 0; i < kTurns; ++i) own.push_back(pace.turn(1, now));
    });
  for (auto& thread : threads) thread.join();
  std::vector<uint64_t> all;
  for (const auto& own : turns) {
    EXPECT_TRUE(std::ranges::is_sorted(own));
    all.insert(all.end(), own.begin(), own.end());
  }
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "no two have the same";
  EXPECT_NEAR(static_cast<double>(all.back() - all.front()), 50.0 * (kThreads * kTurns - 1), 20e6);
}

}  // namespace
}  // namespace kv
