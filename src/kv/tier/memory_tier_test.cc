#include "kv/tier/memory_tier.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "base/mix.h"

namespace kv {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// The record that is kept under an address in this life of it.
std::vector<std::byte> record_of(uint64_t address, uint64_t life = 0, size_t bytes = 1000) {
  std::vector<std::byte> record(bytes);
  for (size_t i = 0; i < bytes; ++i)
    record[i] = static_cast<std::byte>(base::mix(address * 31 + life + i / 8) >> i % 8 * 8);
  return record;
}

class MemoryTierTest : public testing::Test {
 protected:
  std::vector<std::byte> read(uint64_t address) {
    std::vector<std::byte> record(MemoryTier::kMaxRecordBytes);
    record.resize(tier.read(address, record));
    return record;
  }
  bool has(uint64_t address) {
    std::byte first[1];
    return tier.read(address, first) != 0;
  }
  void keep(uint64_t address, uint64_t life = 0, size_t bytes = 1000) {
    tier.keep(address, record_of(address, life, bytes));
  }
  // How many of `count` addresses, from the first on, have a record.
  uint64_t count_there(uint64_t first, uint64_t count) {
    uint64_t there = 0;
    for (uint64_t i = first; i < first + count; ++i) there += has(i);
    return there;
  }

  MemoryTier tier;
};

TEST_F(MemoryTierTest, OneThatIsNotOpenKeepsNothing) {
  keep(1);
  EXPECT_FALSE(has(1));
  tier.forget(1);
  tier.set_budget(kMiB);
  ASSERT_TRUE(tier.open(0));
  keep(1);
  EXPECT_FALSE(has(1));
  EXPECT_EQ(tier.counts().budget_bytes, 0u);
  tier.close();
  ASSERT_TRUE(tier.open(MemoryTier::kBlockBytes));  // too little for anything
  keep(1);
  EXPECT_FALSE(has(1));
}

TEST_F(MemoryTierTest, GivesBackWhatWasKept) {
  ASSERT_TRUE(tier.open(4 * kMiB));
  for (uint64_t i = 0; i < 100; ++i) keep(i, 0, 1 + i * 97);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(read(i), record_of(i, 0, 1 + i * 97)) << i;
  EXPECT_TRUE(read(100).empty());
  std::array<std::byte, 10> first;
  EXPECT_EQ(tier.read(50, first), first.size());
  EXPECT_EQ(memcmp(first.data(), record_of(50).data(), first.size()), 0);
  tier.verify();
  const TierCounts counts = tier.counts();
  EXPECT_EQ(counts.record_count, 100u);
  EXPECT_EQ(counts.kept_records, 100u);
  EXPECT_GE(counts.used_bytes, counts.record_bytes);
  EXPECT_LE(counts.used_bytes, counts.budget_bytes);
}

TEST_F(MemoryTierTest, WhatIsLongerThanARecordMayBeIsNotKept) {
  ASSERT_TRUE(tier.open(4 * kMiB));
  keep(1, 0, MemoryTier::kMaxRecordBytes);
  keep(2, 0, MemoryTier::kMaxRecordBytes + 1);
  EXPECT_TRUE(has(1));
  EXPECT_FALSE(has(2));
}

TEST_F(MemoryTierTest, AnAddressHasOneRecord) {
  ASSERT_TRUE(tier.open(4 * kMiB));
  keep(1);
  keep(1);
  EXPECT_EQ(tier.counts().kept_records, 1u);  // the second was the same
  keep(1, 1);
  EXPECT_EQ(read(1), record_of(1, 1));
  keep(1, 2, 500);
  EXPECT_EQ(read(1), record_of(1, 2, 500));
  EXPECT_EQ(tier.counts().record_count, 1u);
  tier.forget(1);
  EXPECT_FALSE(has(1));
  EXPECT_EQ(tier.counts().record_count, 0u);
  EXPECT_EQ(tier.counts().record_bytes, 0u);
  tier.verify();
}

TEST_F(MemoryTierTest, WhatIsUsedStaysWhileOthersPass) {
  ASSERT_TRUE(tier.open(8 * kMiB));
  constexpr uint64_t kUsed = 1500, kPassing = 100'000;
  for (uint64_t i = 0; i < kUsed; ++i) {
    keep(i);
    has(i);
    has(i);
  }
  for (uint64_t i = 0; i < kPassing; ++i) {
    keep(1'000'000 + i);
    if (i % 10 == 0) has(i / 10 % kUsed);
  }
  tier.verify();
  EXPECT_GT(count_there(0, kUsed), kUsed * 95 / 100);
  // Of the passing records, about as many are there as fit into small.
  EXPECT_LT(count_there(1'000'000, kPassing), 8 * kMiB / 1000);
  EXPECT_LE(tier.counts().used_bytes, 8 * kMiB);
}

TEST_F(MemoryTierTest, WhatComesBackGoesToMain) {
  ASSERT_TRUE(tier.open(8 * kMiB));
  constexpr uint64_t kPassing = 12'000;
  // At the end few of them are there, but ghosts remember the others.
  for (uint64_t i = 0; i < kPassing; ++i) keep(i);
  EXPECT_EQ(tier.counts().promoted_records, 0u);
  EXPECT_FALSE(has(0));
  keep(0);
  EXPECT_EQ(tier.counts().promoted_records, 1u);
  for (uint64_t i = 0; i < kPassing; ++i) keep(1'000'000 + i);
  EXPECT_TRUE(has(0));
  tier.verify();
}

TEST_F(MemoryTierTest, ASuccessorIsAsMuchInUse) {
  ASSERT_TRUE(tier.open(8 * kMiB));
  keep(1);
  has(1);
  has(1);
  keep(2);
  tier.replace(1, 2);
  EXPECT_FALSE(has(1));
  keep(3);
  tier.replace(2'000'000, 3);  // that address was never kept
  for (uint64_t i = 0; i < 20'000; ++i) keep(1'000'000 + i);
  EXPECT_TRUE(has(2));
  EXPECT_FALSE(has(3));
  // A successor inherits a place in main even from a record that was not used there.
  keep(4);
  tier.replace(2, 4);
  for (uint64_t i = 0; i < 20'000; ++i) keep(1'100'000 + i);
  EXPECT_TRUE(has(4));
  tier.verify();
}

TEST_F(MemoryTierTest, TheBudgetMayChange) {
  ASSERT_TRUE(tier.open(64 * kMiB));
  const auto fill = [&](uint64_t first) {
    for (uint64_t i = first; i < first + 100'000; ++i) keep(i);
  };
  fill(0);
  EXPECT_EQ(tier.counts().used_bytes, 64 * kMiB);
  for (const uint64_t budget :
       {32 * kMiB, 8 * kMiB, 64 * kMiB, 2 * kMiB, 100 * kMiB, uint64_t{0}, 16 * kMiB}) {
    tier.set_budget(budget);
    // Too little counts as nothing.
    const uint64_t most = budget == 2 * kMiB ? 0 : std::min(budget, 64 * kMiB);
    EXPECT_LE(tier.counts().used_bytes, most);
    tier.verify();
    fill(budget);
    EXPECT_LE(tier.counts().used_bytes, most);
    EXPECT_GE(tier.counts().used_bytes, most / 10 * 9);
    EXPECT_EQ(has(budget + 99'999), most > 0);
    tier.verify();
  }
}

// A shard that has lost all its blocks gets some from others.
TEST_F(MemoryTierTest, NoPartOfItStaysEmpty) {
  ASSERT_TRUE(tier.open(64 * kMiB));
  // So little that a few shards take all of it.
  tier.set_budget(7 * kMiB);
  for (uint64_t i = 0; i < 40; ++i)
    for (uint64_t k = 0; k < 500; ++k) keep(i << 20 | k);
  tier.set_budget(64 * kMiB);
  tier.set_budget(7 * kMiB);
  for (uint64_t i = 0; i < 20'000; ++i) keep(i);
  // The last addresses are there, whichever shards they belong to.
  EXPECT_EQ(count_there(19'500, 500), 500u);
  tier.verify();
}

// Whatever is done, what is found is what was last kept under that address.
TEST_F(MemoryTierTest, IsAsAModelSays) {
  ASSERT_TRUE(tier.open(12 * kMiB));
  std::mt19937_64 random(7);
  std::map<uint64_t, std::vector<std::byte>> model;
  uint64_t found = 0;
  for (uint64_t step = 0; step < 60'000; ++step) {
    // Some addresses come up more often than others.
    const uint64_t address = random() % (1 + random() % 8000);
    const uint64_t drawn = random() % 100;
    if (drawn < 50) {
      const auto record = read(address);
      if (record.empty()) continue;
      ++found;
      ASSERT_EQ(record, model[address]) << address;
    } else if (drawn < 94) {
      const size_t bytes = random() % 20 == 0 ? random() % MemoryTier::kMaxRecordBytes : random() % 4000;
      keep(address, step, 1 + bytes);
      model[address] = record_of(address, step, 1 + bytes);
    } else if (drawn < 97) {
      tier.forget(address);
      ASSERT_FALSE(has(address));
    } else if (drawn < 99) {
      tier.replace(address, random() % 8000);
      ASSERT_FALSE(has(address));
    } else if (random() % 20 == 0) {
      tier.set_budget(random() % (14 * kMiB));
      tier.verify();
    }
  }
  tier.verify();
  EXPECT_GT(found, 5000u);
  EXPECT_GT(tier.counts().promoted_records, 100u);
}

TEST_F(MemoryTierTest, ManyThreads) {
  ASSERT_TRUE(tier.open(24 * kMiB));
  std::atomic<uint64_t> found{0}, wrong{0};
  const auto work = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> record(MemoryTier::kMaxRecordBytes);
    for (int step = 0; step < 40'000; ++step) {
      const uint64_t address = random() % (1 + random() % 20'000), drawn = random() % 100;
      const size_t bytes = 100 + address % 3000;
      if (drawn < 60) {
        const size_t there = tier.read(address, record);
        if (there == 0) continue;
        ++found;
        const auto expected = record_of(address, 0, bytes);
        wrong += there != bytes || memcmp(record.data(), expected.data(), bytes) != 0;
      } else if (drawn < 97) {
        keep(address, 0, bytes);
      } else if (drawn < 98) {
        tier.forget(address);
      } else if (drawn < 99) {
        tier.replace(address, random() % 20'000);
      } else if (random() % 50 == 0) {
        tier.set_budget(random() % (30 * kMiB));
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  tier.verify();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(found, 1000u);
}

}  // namespace
}  // namespace kv
