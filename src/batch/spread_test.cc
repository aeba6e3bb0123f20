// Every key has one home, the homes keep their order, and all of them are used alike.
#include "batch/spread.h"

#include <gtest/gtest.h>
#include <string.h>

#include <random>
#include <vector>

namespace batch {
namespace {

Key key_of(uint64_t number) { return {number, 0}; }

TEST(SpreadTest, NumbersAreDividedByTheSpan) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    const uint64_t key_space = 1 + (random() >> (2 + random() % 62));
    const uint64_t buckets = 1 + (random() >> (1 + random() % 63)) % (uint64_t{1} << 40);
    const Spread spread = Spread::by_number(key_space, buckets);
    const uint64_t span = (key_space - 1) / buckets + 1;
    for (const uint64_t number : {uint64_t{0}, random() % key_space, random() % key_space / span * span,
                                  key_space / span * span - (key_space >= span), key_space - 1}) {
      ASSERT_EQ(spread.home(key_of(number)), number / span)
          << number << " of " << key_space << ", span " << span;
      ASSERT_LT(spread.home(key_of(number)), buckets);
    }
  }
}

TEST(SpreadTest, NumbersBelowTheLargestSpace) {
  const Spread spread = Spread::by_number(Spread::kMaxKeySpace, 3);
  const uint64_t span = (Spread::kMaxKeySpace - 1) / 3 + 1;
  EXPECT_EQ(spread.home(key_of(span - 1)), 0u);
  EXPECT_EQ(spread.home(key_of(span)), 1u);
  EXPECT_EQ(spread.home(key_of(Spread::kMaxKeySpace - 1)), 2u);
  EXPECT_TRUE(spread.has(key_of(Spread::kMaxKeySpace - 1)));
  EXPECT_FALSE(spread.has(key_of(Spread::kMaxKeySpace)));
}

TEST(SpreadTest, HashesFillAllHomesAlike) {
  constexpr uint64_t kHomes = 1000, kKeys = 200'000;
  const Spread spread = Spread::by_hash(kHomes);
  std::vector<uint32_t> counts(kHomes);
  for (uint64_t i = 0; i < kKeys; ++i) ++counts[spread.home(key_of(i))];
  for (const uint32_t count : counts) {
    EXPECT_GT(count, 120u);  // 200 minus six standard deviations, roughly
    EXPECT_LT(count, 290u);
  }
}

// So a table that grows can move its records from front to back.
TEST(SpreadTest, TwiceAsManyHomesKeepTheOrder) {
  std::mt19937_64 random(8);
  const Spread once = Spread::by_hash(1013), twice = Spread::by_hash(2026);
  for (int i = 0; i < 10'000; ++i) {
    const Key key = key_of(random());
    ASSERT_EQ(twice.home(key) / 2, once.home(key));
  }
}

TEST(SpreadTest, KeysOfAllLengthsAreWhatTheirBytesAre) {
  for (uint32_t bytes = 4; bytes <= 16; ++bytes) {
    std::byte memory[17];
    for (uint32_t i = 0; i < sizeof memory; ++i) memory[i] = std::byte{static_cast<unsigned char>(0xf0 + i)};
    const Key key = load_key(memory, bytes);
    if (bytes <= 8) {
      uint64_t number = 0;
      memcpy(&number, memory, bytes);
      EXPECT_EQ(key, key_of(number)) << bytes;
    }
    memory[bytes] ^= std::byte{1};  // after the key
    EXPECT_EQ(load_key(memory, bytes), key) << bytes;
    for (uint32_t i = 0; i < bytes; ++i) {
      memory[i] ^= std::byte{1};
      EXPECT_NE(load_key(memory, bytes), key) << bytes << ", byte " << i;
      EXPECT_NE(hash_of(load_key(memory, bytes)), hash_of(key));
      memory[i] ^= std::byte{1};
    }
  }
}

}  // namespace
}  // namespace batch
