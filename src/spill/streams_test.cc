#include "spill/streams.h"

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
    if (there.contains(page)) return;
    ++misses;
    const Streams::Window window = streams.missed(page, pattern, kMin);
    for (uint32_t i = 0; i < window.count; ++i)
      there.insert(window.first + static_cast<uint64_t>(window.stride * static_cast<int64_t>(i)));
    if (window.count > 0) streams.begun(window.count);
    largest = std::max(largest, window.count);
    there.insert(page);
  }

  Streams streams;
  std::set<uint64_t> there;
  uint32_t misses = 0;
  uint32_t largest = 0;
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
}

}  // namespace
}  // namespace spill
