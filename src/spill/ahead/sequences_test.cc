#include "spill/ahead/sequences.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace spill {
namespace {

constexpr uint32_t kMax = 8;

// A program that misses what was not loaded ahead.
class Reader {
 public:
  explicit Reader(uint32_t room) : room_(room) {}
  void read(uint64_t page) {
    if (there.contains(page)) return;
    ++misses;
    there.insert(page);
    const uint32_t count = sequences_.missed(page, room_, kMax);
    largest = std::max(largest, count);
    for (uint32_t i = 0; i < count; ++i) there.insert(page + i);
    if (count > 0) sequences_.begun(page, count);
  }

  std::set<uint64_t> there;
  uint32_t misses = 0;
  uint32_t largest = 0;

 private:
  Sequences sequences_;
  const uint32_t room_;
};

TEST(Sequences, OneIsLoadedAheadFromItsThirdMissOn) {
  Reader reader(1000);
  for (uint64_t page = 100; page < 1100; ++page) reader.read(page);
  EXPECT_EQ(reader.misses, 2 + (1000 - 2 + kMax - 1) / kMax);
  EXPECT_EQ(reader.largest, kMax);
  EXPECT_LE(reader.there.size(), 1000u + kMax);
}

TEST(Sequences, HundredsGoOnAtATimeAndShareTheRoom) {
  constexpr uint32_t kSequences = 200, kPages = 100;
  Reader reader(4 * kSequences);
  for (uint64_t i = 0; i < kPages; ++i)
    for (uint64_t sequence = 0; sequence < kSequences; ++sequence) reader.read(1000 * sequence + i);
  EXPECT_LT(reader.misses, kSequences * kPages / 2);
  EXPECT_GE(reader.largest, 4u);
  Reader alone(0);  // no room but for the page that is missed
  for (uint64_t i = 0; i < kPages; ++i) alone.read(i);
  EXPECT_EQ(alone.misses, kPages);
}

TEST(Sequences, WhatWasNotBegunIsExpectedStill) {
  Sequences sequences;
  for (uint64_t page = 10; page < 12; ++page) EXPECT_EQ(sequences.missed(page, 100, kMax), 0u);
  EXPECT_EQ(sequences.missed(12, 100, kMax), kMax);
  sequences.begun(12, 0);
  EXPECT_EQ(sequences.missed(13, 100, kMax), kMax);
  sequences.begun(13, 3);
  EXPECT_EQ(sequences.missed(16, 100, kMax), kMax);
}

TEST(Sequences, WhatJumpsOrGoesDownIsNone) {
  Reader reader(1000);
  std::mt19937_64 random(1);
  for (uint32_t i = 0; i < 5000; ++i) reader.read(random() >> 20);
  for (uint64_t i = 0; i < 500; ++i) reader.read(10'000 - i);
  EXPECT_EQ(reader.largest, 0u);
}

}  // namespace
}  // namespace spill
