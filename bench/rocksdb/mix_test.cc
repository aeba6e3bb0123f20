#include "rocksdb/mix.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>

namespace {

TEST(MixTest, KeysAreInTheOrderOfTheirNumbersAndSharePrefixes) {
  for (uint64_t number : {0, 1, 255, 256, 65'535, 65'536, 1 << 24}) {
    const mix::Key key(number), next(number + 1);
    EXPECT_EQ(key.text().size(), 48U);
    EXPECT_LT(key.text(), next.text()) << number;
    EXPECT_EQ(key.text().substr(0, 4) == next.text().substr(0, 4), (number + 1) % 256 != 0) << number;
  }
}

TEST(MixTest, AValueTellsItsVersionAndWhetherItIsWhole) {
  const mix::Value value(7, 9);
  std::string text(value.text());
  uint64_t version = 0;
  EXPECT_TRUE(mix::is_whole(7, text, version));
  EXPECT_EQ(version, 9U);
  EXPECT_FALSE(mix::is_whole(8, text, version));
  EXPECT_FALSE(mix::is_whole(7, text.substr(0, text.size() - 1), version));
  EXPECT_FALSE(mix::is_whole(7, "", version));
  for (size_t at = 0; at < text.size(); ++at) {
    text[at] ^= 1;
    EXPECT_FALSE(mix::is_whole(7, text, version)) << at;
    text[at] ^= 1;
  }
}

TEST(MixTest, ValuesHaveTheSizesOfTheirDistribution) {
  uint64_t bytes = 0, least = 0;
  for (uint64_t number = 0; number < 100'000; ++number) {
    const uint64_t size = mix::Value(number, 1).text().size();
    ASSERT_TRUE(16 <= size && size <= 1024) << size;
    bytes += size, least += size == 16;
  }
  // The distribution's mean is 34, and small ones are made larger; 46 % of it are below 17.
  EXPECT_NEAR(static_cast<double>(bytes) / 100'000, 38.5, 1.0);
  EXPECT_NEAR(static_cast<double>(least) / 100'000, 0.460, 0.01);
}

TEST(MixTest, AThreadGetsKeysOfItsOwnAmongThoseThatThereAre) {
  for (uint64_t thread_count : {1, 2, 7}) {
    const mix::Keys keys(10'000, thread_count);
    for (uint64_t thread = 0; thread < thread_count; ++thread) {
      load::Random random(thread);
      for (int i = 0; i < 10'000; ++i) {
        const uint64_t number = keys.next(random, thread);
        ASSERT_LT(number, 10'000U);
        ASSERT_EQ(number % thread_count, thread);
      }
    }
  }
}

TEST(MixTest, SomeRangesAreHotAndSomeKeysInThem) {
  constexpr uint64_t kKeys = 300'000, kAccesses = 200'000;
  const mix::Keys keys(kKeys, 1);
  load::Random random(1);
  std::map<uint64_t, std::map<uint64_t, uint64_t>> ranges;
  for (uint64_t i = 0; i < kAccesses; ++i) {
    const uint64_t number = keys.next(random, 0);
    ++ranges[number / 10'000][number];
  }
  EXPECT_EQ(ranges.size(), 30U);
  // Of all accesses to a range, and of those to each of its keys, the hottest first.
  std::map<uint64_t, std::multiset<uint64_t, std::greater<>>, std::greater<>> by_heat;
  for (const auto& [range, counts] : ranges) {
    uint64_t sum = 0;
    for (const auto& [number, count] : counts) sum += count;
    for (const auto& [number, count] : counts) by_heat[sum].insert(count);
  }
  // Of f(1) .. f(30) the first has 0.791 of the sum, the last 0.0015.
  const auto hottest = static_cast<double>(by_heat.begin()->first);
  EXPECT_NEAR(hottest / kAccesses, 0.791, 0.01);
  EXPECT_NEAR(static_cast<double>(by_heat.rbegin()->first) / kAccesses, 0.0015, 0.0005);
  // A tenth of the keys of a range gets 0.1^0.3467 of its accesses.
  const auto& of_keys = by_heat.begin()->second;
  ASSERT_GT(of_keys.size(), 1'000U);
  const uint64_t of_tenth = std::accumulate(of_keys.begin(), std::next(of_keys.begin(), 1'000), uint64_t{0});
  EXPECT_NEAR(static_cast<double>(of_tenth) / hottest, 0.450, 0.02);
}

TEST(MixTest, OperationsAndLengthsOfScansAreMixedAsSaid) {
  load::Random random(2);
  std::map<mix::Operation, int> counts;
  uint64_t longest = 0, at_most_14 = 0;
  for (int i = 0; i < 100'000; ++i) {
    ++counts[mix::next_operation(random)];
    const uint64_t length = mix::next_scan_length(random);
    ASSERT_GE(length, 1U);
    longest = std::max(longest, length);
    at_most_14 += length <= 14;
  }
  EXPECT_NEAR(counts[mix::Operation::kGet], 83'000, 600);
  EXPECT_NEAR(counts[mix::Operation::kPut], 14'000, 600);
  EXPECT_NEAR(counts[mix::Operation::kScan], 3'000, 300);
  EXPECT_EQ(longest, mix::kPrefixKeys + 1);
  EXPECT_NEAR(static_cast<double>(at_most_14) / 100'000, 0.389, 0.01);
}

}  // namespace
