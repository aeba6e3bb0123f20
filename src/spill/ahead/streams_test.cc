#include "spill/ahead/streams.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace spill {
namespace {

constexpr uint32_t kMin = 8;

// A program that misses what was not loaded ahead.
class Reader {
 public:
  void read(uint64_t page, Pattern pattern = Pattern::kNormal) {
    if (there.contains(page)) {
      if (notices_uses && is_marked(page)) load(streams.used(page, pattern, kMin, most_ahead));
      return;
    }
    ++misses;
    load(streams.missed(page, pattern, kMin));
    there.insert(page);
  }
  bool is_marked(uint64_t page) const {
    for (uint32_t i = 0; i < Streams::kStreams; ++i)
      if (streams.mark(i).has(page)) return true;
    return false;
  }

  Streams streams;
  bool notices_uses = false;
  uint32_t most_ahead = 1000;
  std::set<uint64_t> there;
  uint32_t misses = 0;
  uint32_t largest = 0;

 private:
  void load(Streams::Window window) {
    for (uint32_t i = 0; i < window.count; ++i)
      there.insert(window.first + static_cast<uint64_t>(window.stride * static_cast<int64_t>(i)));
    if (window.count > 0) streams.begun(window.count);
    largest = std::max(largest, window.count);
  }
};

TEST(Streams, ASequenceIsLoadedAheadInWindowsThatGrow) {
  Reader reader;
  for (uint64_t page = 100; page < 1100; ++page) reader.read(page);
  EXPECT_LE(reader.misses, 3 + 3 + 1000 / (kMin * Streams::kWindowGrowth) + 1);
  EXPECT_EQ(reader.largest, kMin * Streams::kWindowGrowth);
}

TEST(Streams, StepsOfMoreThanAPageAndDownwardsAreOneToo) {
  for (const int64_t stride : {3, -1, -7, 1024, -1024}) {
    Reader reader;
    for (int64_t i = 0; i < 500; ++i) reader.read(static_cast<uint64_t>(1'000'000 + i * stride));
    EXPECT_LT(reader.misses, 20u) << stride;
    EXPECT_LE(reader.there.size(), 500u + kMin * Streams::kWindowGrowth) << stride;
  }
}

TEST(Streams, SeveralGoOnAtATime) {
  Reader reader;
  for (uint64_t i = 0; i < 500; ++i)
    for (uint64_t array = 0; array < Streams::kStreams; ++array) reader.read(100'000 * (array + 1) + i);
  EXPECT_LT(reader.misses, 20u * Streams::kStreams);
}

TEST(Streams, SeveralGoOnAtATimeWhenTheCountOfMissesBeginsAnew) {
  Reader reader;
  reader.streams = Streams(~uint32_t{0} - Streams::kStreams);
  for (uint64_t i = 0; i < Streams::kStreams; ++i) reader.read(10'000'000 * (i + 1));  // the last ones before
  reader.misses = 0;
  for (uint64_t i = 0; i < 500; ++i)
    for (uint64_t array = 1; array < Streams::kStreams; ++array) reader.read(100'000 * array + i);
  EXPECT_LT(reader.misses, 20u * Streams::kStreams);
}

TEST(Streams, WhatJumpsIsNone) {
  Reader reader;
  std::mt19937_64 random(1);
  for (uint32_t i = 0; i < 500; ++i) reader.read(random() >> 20);
  EXPECT_EQ(reader.largest, 0u);
}

TEST(Streams, WhatTooManyArraysDoIsNotTakenForAnother) {
  Reader reader;
  for (uint64_t i = 0; i < 100; ++i)
    for (uint64_t array = 0; array < 6; ++array) reader.read(100'000 * (array + 1) + i);
  for (const uint64_t page : reader.there) EXPECT_LT(page % 100'000, 100u + kMin * Streams::kWindowGrowth);
}

TEST(Streams, AWindowThatWasNotBegunIsAskedForAgain) {
  Streams streams;
  streams.missed(1, Pattern::kNormal, kMin);
  streams.missed(2, Pattern::kNormal, kMin);
  EXPECT_EQ(streams.missed(3, Pattern::kNormal, kMin).count, 1 + kMin);
  streams.begun(2);
  const Streams::Window next = streams.missed(5, Pattern::kNormal, kMin);
  EXPECT_EQ(next.first, 5u);
  EXPECT_EQ(next.count, 2 * kMin);
}

TEST(Streams, ThePageThatIsWaitedForInsideAWindowOpensTheNext) {
  Streams streams;
  for (uint64_t page = 1; page < 4; ++page) streams.missed(page, Pattern::kNormal, kMin);
  streams.begun(1 + kMin);
  EXPECT_EQ(streams.missed(4, Pattern::kNormal, kMin).count, 0u);
  const Streams::Window next = streams.missed(9, Pattern::kNormal, kMin);
  EXPECT_EQ(next.first, 3 + 1 + kMin);
  EXPECT_GT(next.count, kMin);
}

TEST(Streams, WhoseUsesAreNoticedMissesNothingMore) {
  for (const int64_t stride : {1, -1, 3, -7}) {
    Reader reader;
    reader.notices_uses = true;
    for (int64_t i = 0; i < 1000; ++i) reader.read(static_cast<uint64_t>(1'000'000 + i * stride));
    EXPECT_EQ(reader.misses, 3u) << stride;
    EXPECT_EQ(reader.largest, kMin * Streams::kWindowGrowth) << stride;
    EXPECT_LE(reader.there.size(), 1000u + 2 * kMin * Streams::kWindowGrowth) << stride;
  }
}

TEST(Streams, OneThatMissesNothingIsNotForgottenForOthers) {
  Reader reader;
  reader.notices_uses = true;
  std::mt19937_64 random(1);
  for (uint64_t page = 100; page < 2100; ++page) {
    reader.read(page);
    if (page % 32 == 0) reader.read(random() >> 20 | uint64_t{1} << 43);
  }
  EXPECT_EQ(reader.misses, 3u + 62) << "the others'";
}

// Threads that share a loop use each other's parts of a window first.
TEST(Streams, AnyPageOfAWindowOpensTheNext) {
  Reader reader;
  reader.notices_uses = true;
  for (uint64_t page = 100; page < 5000; ++page)
    if (page < 200 || page / 20 % 2 == 0) reader.read(page);
  EXPECT_EQ(reader.misses, 3u);
}

TEST(Streams, NoMoreThanThereIsRoomForIsAhead) {
  Reader reader;
  reader.notices_uses = true;
  reader.most_ahead = 20;
  uint32_t most = 0;
  for (uint64_t page = 100; page < 1100; ++page) {
    reader.read(page);
    if (page > 110) most = std::max(most, static_cast<uint32_t>(*reader.there.rbegin() - page));
  }
  EXPECT_GE(most, reader.most_ahead / 2);
  EXPECT_LE(most, kMin * Streams::kWindowGrowth);
  Streams streams;
  for (uint64_t page = 1; page < 4; ++page) streams.missed(page, Pattern::kNormal, kMin);
  streams.begun(1 + kMin);
  EXPECT_EQ(streams.used(4, Pattern::kNormal, kMin, kMin).count, 0u);
  EXPECT_FALSE(streams.mark(0).has(5)) << "it is told once";
}

TEST(Streams, AMissInAWindowIsPartOfIt) {
  Streams streams;
  EXPECT_EQ(streams.missed(1, Pattern::kNormal, kMin).stride, 0);
  EXPECT_EQ(streams.missed(2, Pattern::kNormal, kMin).stride, 0);
  streams.missed(3, Pattern::kNormal, kMin);
  streams.begun(1 + kMin);
  EXPECT_EQ(streams.missed(4, Pattern::kNormal, kMin).stride, 1);
  EXPECT_EQ(streams.missed(4000, Pattern::kNormal, kMin).stride, 0);
}

// Half of the pages are in memory, here and there, as after pages have left in no order.
TEST(Streams, PagesThatAreThereDoNotEndIt) {
  for (const int64_t stride : {1, -1}) {
    Reader reader;
    for (uint64_t i = 0; i < 2000; ++i)
      if ((i * 0x9e3779b97f4a7c15 >> 63) != 0)
        reader.there.insert(1'000'000 + i * static_cast<uint64_t>(stride));
    for (uint64_t i = 0; i < 2000; ++i) reader.read(1'000'000 + i * static_cast<uint64_t>(stride));
    EXPECT_LT(reader.misses, 100u) << stride;
  }
}

TEST(Streams, AdviceIsHeeded) {
  Reader random;
  for (uint64_t page = 0; page < 100; ++page) random.read(page, Pattern::kRandom);
  EXPECT_EQ(random.misses, 100u);
  Reader sequential;
  sequential.read(100, Pattern::kSequential);
  EXPECT_EQ(sequential.largest, kMin * Streams::kWindowGrowth);
  for (uint64_t page = 100; page < 1000; ++page) sequential.read(page, Pattern::kSequential);
  EXPECT_LT(sequential.misses, 20u);
  // Advice for memory that is in use already.
  Reader turned;
  turned.notices_uses = true;
  for (uint64_t page = 100; page < 200; ++page) turned.read(page);
  const uint64_t last = *turned.there.rbegin();
  ASSERT_LT(last, 999u);
  for (uint64_t page = 200; page < 1000; ++page) turned.read(page, Pattern::kRandom);
  EXPECT_EQ(turned.misses, 3 + 999 - last);
}

}  // namespace
}  // namespace spill
