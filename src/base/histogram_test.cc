#include "base/histogram.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

namespace base {
namespace {

using Small = BasicHistogram<4, 34>;
using SharedSmall = SharedHistogram<4, 34>;

// Buckets follow each other without a gap, and none is wider than 1 / 2^kPartBits of its least time.
template <size_t kPartBits, size_t kRangeBits>
void check_buckets() {
  using Buckets = HistogramBuckets<kPartBits, kRangeBits>;
  for (size_t i = 0; i + 1 < Buckets::kCount; ++i) {
    const uint64_t greatest = Buckets::greatest_of(i);
    ASSERT_EQ(Buckets::index_of(greatest), i);
    ASSERT_EQ(Buckets::index_of(greatest + 1), i + 1);
    const uint64_t least = i == 0 ? 0 : Buckets::greatest_of(i - 1) + 1;
    ASSERT_LE(greatest - least, least >> kPartBits);
  }
  EXPECT_EQ(Buckets::index_of(~uint64_t{0}), Buckets::kCount - 1);
  EXPECT_EQ(Buckets::greatest_of(Buckets::kCount - 1), ~uint64_t{0});
}

TEST(Histogram, BucketsAreNarrowAndHaveNoGaps) {
  check_buckets<6, 64>();
  check_buckets<4, 34>();
  check_buckets<0, 3>();
  using Buckets = HistogramBuckets<4, 34>;
  EXPECT_EQ(Buckets::index_of((uint64_t{1} << 34) - 1), Buckets::kCount - 1);
  EXPECT_EQ(Buckets::index_of(uint64_t{1} << 34), Buckets::kCount - 1);
}

TEST(Histogram, QuantilesAreWithinAPartOfWhatTheyAre) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> times;
  Small small;
  Histogram fine;
  for (int i = 0; i < 50'000; ++i) {
    times.push_back(random() >> (30 + random() % 30));
    small.add(times.back());
    fine.add(times.back());
  }
  std::ranges::sort(times);
  double sum = 0;
  for (uint64_t time : times) sum += static_cast<double>(time);
  for (double share : {0.0, 0.001, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<size_t>(std::ceil(share * 50'000));
    const uint64_t exact = times[std::max<size_t>(rank, 1) - 1];
    EXPECT_GE(small.at(share), exact) << share;
    EXPECT_LE(small.at(share), exact + exact / 16) << share;
    EXPECT_GE(fine.at(share), exact) << share;
    EXPECT_LE(fine.at(share), exact + exact / 64) << share;
  }
  EXPECT_EQ(small.count(), 50'000u);
  EXPECT_EQ(small.most(), times.back());
  EXPECT_EQ(small.at(1), times.back());
  EXPECT_NEAR(small.mean(), sum / 50'000, sum / 1e9);
}

TEST(Histogram, WhatIsOutOfRangeIsTheMost) {
  Small times;
  EXPECT_EQ(times.at(0.5), 0u);
  EXPECT_EQ(times.mean(), 0);
  times.add(5);
  times.add(uint64_t{1} << 40);
  EXPECT_EQ(times.at(0.5), 5u);
  EXPECT_EQ(times.at(0.99), uint64_t{1} << 40);
  EXPECT_EQ(times.most(), uint64_t{1} << 40);
}

TEST(Histogram, OneOfTwoIsTheSumOfBoth) {
  Small one, other;
  SharedSmall shared;
  one.add(10);
  other.add(1000);
  shared.add(100'000);
  one.add(other);
  one.add(shared);
  EXPECT_EQ(one.count(), 3u);
  EXPECT_EQ(one.at(0.3), 10u);
  EXPECT_LE(one.at(0.6), 1000u + 1000 / 16);
  EXPECT_EQ(one.at(1), 100'000u);
  EXPECT_EQ(one.most(), 100'000u);
  EXPECT_NEAR(one.mean(), 101'010 / 3.0, 0.01);
}

TEST(Histogram, OthersLookWhileOneAdds) {
  constexpr uint64_t kTimes = 200'000;
  SharedSmall shared;
  std::thread adder([&] {
    for (uint64_t i = 1; i <= kTimes; ++i) shared.add(i);
  });
  for (uint64_t before = 0; before < kTimes;) {
    Small seen;
    seen.add(shared);
    ASSERT_GE(seen.count(), before);
    ASSERT_LE(seen.count(), kTimes);
    before = seen.count();
  }
  adder.join();
  Small all;
  all.add(shared);
  EXPECT_EQ(all.count(), kTimes);
  EXPECT_EQ(all.most(), kTimes);
  EXPECT_NEAR(all.mean(), (kTimes + 1) / 2.0, 0.01);
}

}  // namespace
}  // namespace base
