#include "kv/index/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mix.h"
#include "kv/testing/test_effort.h"
#include "sys/mappings.h"

namespace kv {
namespace {

class IndexTest : public testing::Test {
 protected:
  IndexTest() : index(*Index::open(24)) {}
  ~IndexTest() override { index->close(); }

  bool insert(uint64_t hash, uint64_t address) {
    std::vector<uint64_t> known;  // all that are there
    for (;;) {
      const auto done = index->insert(hash, address, address % 256, known);
      if (done != Index::Inserted::kOther) return done == Index::Inserted::kDone;
      known.clear();
      for (const Location& other : all(hash)) known.push_back(other.address);
    }
  }
  std::vector<Location> all(uint64_t hash) const {
    Location found[Index::kMaxCandidates];
    return {found, found + index->find_all(hash, found)};
  }
  bool has(uint64_t hash, uint64_t address) const {
    const auto found = all(hash);
    return std::count_if(found.begin(), found.end(), [&](const Location& location) {
             return location.address == address && location.size == address % 256;
           }) == 1;
  }
  // The hash of key number i.
  static uint64_t hash_of(uint64_t i) { return base::mix(i); }

  Index* index;
};

TEST_F(IndexTest, AnEmptyIndexTakesLessThanTwoMegabytes) {
  EXPECT_LT(index->counts().memory_bytes, 2u << 20);
  EXPECT_EQ(index->counts().entries, 0u);
  EXPECT_FALSE(index->find(1).found);
}

TEST_F(IndexTest, FindsWhatHasBeenInserted) {
  EXPECT_EQ(index->insert(11, 5, 9, {}), Index::Inserted::kDone);
  const Location found = index->find(11);
  EXPECT_TRUE(found.found);
  EXPECT_EQ(found.address, 5u);
  EXPECT_EQ(found.size, 9u);
  EXPECT_FALSE(index->find(12).found) << "another home";
  EXPECT_FALSE(index->find(11 | uint64_t{1} << kHomeBits).found) << "another tag";
}

TEST_F(IndexTest, ACandidateThatIsNotKnownStopsAnInsert) {
  ASSERT_EQ(index->insert(11, 5, 9, {}), Index::Inserted::kDone);
  EXPECT_EQ(index->insert(11, 6, 9, {}), Index::Inserted::kOther);
  const uint64_t wrong[] = {7}, right[] = {7, 5};
  EXPECT_EQ(index->insert(11, 6, 9, wrong), Index::Inserted::kOther);
  EXPECT_EQ(all(11).size(), 1u);
  EXPECT_EQ(index->insert(11, 6, 9, right), Index::Inserted::kDone);
  EXPECT_EQ(all(11).size(), 2u);
}

TEST_F(IndexTest, ReplaceAndRemoveAreOfOneAddress) {
  ASSERT_TRUE(insert(11, 5));
  ASSERT_TRUE(insert(11, 6));
  EXPECT_FALSE(index->replace(11, 7, 8, 1));
  EXPECT_TRUE(index->replace(11, 5, 8, 8));
  EXPECT_TRUE(has(11, 8) && has(11, 6));
  EXPECT_FALSE(index->remove(11, 5));
  EXPECT_TRUE(index->remove(11, 6));
  EXPECT_FALSE(index->remove(11, 6));
  EXPECT_EQ(all(11).size(), 1u);
  EXPECT_EQ(index->counts().entries, 1u);
}

TEST_F(IndexTest, HashesThatGrowthCannotPartAreRefusedWhenTheirNeighbourhoodIsFull) {
  for (uint64_t i = 0; i < kNeighbourhood; ++i) ASSERT_TRUE(insert(11, i));
  EXPECT_FALSE(insert(11, 100));
  EXPECT_EQ(index->counts().tables, 1u);
  EXPECT_TRUE(insert(11 + kNeighbourhood, 100));
  index->verify();
}

TEST_F(IndexTest, GrowsAndShrinksAndLosesNothing) {
  constexpr uint64_t kKeys = 400'000;
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(insert(hash_of(i), i)) << i;
  index->verify();
  IndexCounts counts = index->counts();
  EXPECT_EQ(counts.entries, kKeys);
  EXPECT_GE(counts.tables, kKeys / kSlots + 1);
  EXPECT_LE(counts.tables, 2 * kKeys / kSlots);
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(has(hash_of(i), i)) << i;
  uint64_t found = 0;
  for (uint64_t i = kKeys; i < 2 * kKeys; ++i) found += index->find(hash_of(i)).found;
  EXPECT_LT(found, kKeys / 10'000) << "candidates that are none";

  for (uint64_t i = 0; i < kKeys; ++i)
    if (i % 64 != 0) ASSERT_TRUE(index->remove(hash_of(i), i)) << i;
  index->verify();
  counts = index->counts();
  EXPECT_EQ(counts.entries, kKeys / 64);
  EXPECT_LE(counts.tables, 4u);
  for (uint64_t i = 0; i < kKeys; i += 64) ASSERT_TRUE(has(hash_of(i), i)) << i;

  for (uint64_t i = kKeys; i < 2 * kKeys; ++i) ASSERT_TRUE(insert(hash_of(i), i)) << i;
  index->verify();
  for (uint64_t i = 0; i < kKeys; i += 64) ASSERT_TRUE(has(hash_of(i), i)) << i;
  for (uint64_t i = kKeys; i < 2 * kKeys; ++i) ASSERT_TRUE(has(hash_of(i), i)) << i;
}

TEST_F(IndexTest, AMergeThatHasMovedNothingGivesWayToGrowth) {
  std::mt19937_64 random(3);
  uint64_t next = 0;
  const auto fill = [&](uint32_t home, uint32_t homes, uint64_t count, uint64_t bit) {
    for (uint64_t i = 0; i < count; ++i)
      ASSERT_TRUE(insert((random() << 1 | bit) << kHomeBits | (home + random() % homes), next++));
  };
  while (index->counts().tables == 1) fill(1000, 4000, 1, next % 2);
  fill(1000, 3000, 1000, 0);
  fill(kRegionSlots, 4000, 1500, 0);
  fill(5, 1, kNeighbourhood, 0);  // no room is left for this home
  fill(2 * kRegionSlots, 4000, 32, 1);
  index->verify();
  ASSERT_EQ(index->counts().tables, 2u);
  const IndexCounts before = index->counts();
  // The 32 that are left make the tables candidates, and a merge begins.
  const uint64_t hash = (random() << 1 | 1) << kHomeBits | (2 * kRegionSlots + 4090);
  ASSERT_TRUE(insert(hash, next) && index->remove(hash, next++));
  fill(5, 1, 1, 0);
  EXPECT_GT(index->counts().tables, 2u);
  EXPECT_EQ(index->counts().entries, before.entries + 1);
  index->verify();
}

TEST_F(IndexTest, GivesBackTheMemoryOfTablesThatItMerges) {
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    uint64_t size = 0, pages = 0;
    file >> size >> pages;
    return pages * 4096;
  };
  for (uint64_t i = 0; i < 400'000; ++i) ASSERT_TRUE(insert(hash_of(i), i));
  const uint64_t full = resident();
  for (uint64_t i = 0; i < 400'000; ++i) ASSERT_TRUE(index->remove(hash_of(i), i));
  EXPECT_LE(index->counts().tables, 2u);
  EXPECT_LT(resident() + 8 * kTableBytes, full);
}

TEST_F(IndexTest, WhatIsReservedFitsWithoutGrowth) {
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(insert(hash_of(i), i));
  ASSERT_TRUE(index->prepare());
  ASSERT_TRUE(index->reserve(300'000));
  index->verify();
  const IndexCounts reserved = index->counts();
  EXPECT_EQ(reserved.tables, 16u);
  for (uint64_t i = 1000; i < 300'000; ++i) ASSERT_TRUE(insert(hash_of(i), i));
  EXPECT_EQ(index->counts().regions_moved, reserved.regions_moved);
  for (uint64_t i = 0; i < 300'000; ++i) ASSERT_TRUE(has(hash_of(i), i)) << i;
}

// Addresses of 40 bits leave 8 bits of the hash for a tag.
TEST_F(IndexTest, BeginsWithTheMoreTablesTheShorterTagsAre) {
  for (const auto& [address_bits, tables] :
       {std::pair(18u, 1u), {31u, 1u}, {32u, 4u}, {34u, 64u}, {40u, 4096u}}) {
    index->close();
    index = *Index::open(address_bits);
    index->begin_wide();
    EXPECT_EQ(index->counts().tables, tables) << address_bits;
  }
  ASSERT_TRUE(insert(hash_of(1), 1));
  ASSERT_TRUE(index->reserve(uint64_t{kSlots} << 12));
  EXPECT_EQ(index->counts().tables, 8192u);
  EXPECT_TRUE(has(hash_of(1), 1));
}

TEST_F(IndexTest, TablesThatItBeganWithAreNotMerged) {
  index->close();
  index = *Index::open(34);
  index->begin_wide();
  for (uint64_t i = 0; i < 2000; ++i) ASSERT_TRUE(insert(hash_of(i), i) && index->remove(hash_of(i), i)) << i;
  EXPECT_EQ(index->counts().tables, 64u);
}

// A process may have 65,530 mappings.
TEST_F(IndexTest, AMappingHasManyChunksOfTables) {
  const auto count_mappings = [] {
    uint64_t count = 0;
    sys::visit_mappings([&](const sys::Mapping&) {
      ++count;
      return true;
    });
    return count;
  };
  const uint64_t before = count_mappings();
  ASSERT_TRUE(index->reserve(uint64_t{1} << 22));
  EXPECT_EQ(index->counts().tables, 256u);  // in 32 chunks
  EXPECT_LT(count_mappings(), before + 12);
}

TEST_F(IndexTest, IsFullBeforeATableGrows) {
  uint64_t i = 0;
  double least = 1;
  for (uint64_t tables = 1; tables <= 32; tables *= 2) {
    while (index->counts().tables < 2 * tables) {
      const IndexCounts before = index->counts();
      ASSERT_TRUE(insert(hash_of(i), i));
      ++i;
      if (before.tables == tables && index->counts().tables > tables)
        least = std::min(least, static_cast<double>(before.entries) / static_cast<double>(tables * kSlots));
    }
  }
  EXPECT_GT(least, 0.93);
}

// All operations at random, beside a map that holds the same.
TEST_F(IndexTest, AgreesWithAMap) {
  std::mt19937_64 random(7);
  std::unordered_map<uint64_t, uint64_t> model;  // address to hash
  uint64_t next = 0;
  for (int phase = 0; phase < 6; ++phase) {
    const bool grows = phase % 2 == 0;
    for (int step = 0; step < 150'000; ++step) {
      const unsigned what = random() % 10;
      if (what < (grows ? 8u : 1u)) {
        // A third of the hashes come from few, so that homes are crowded and entries are moved often.
        const uint64_t hash = random() % 3 == 0 ? hash_of(random() % 1000) : random();
        if (!insert(hash, next)) continue;
        model[next++] = hash;
      } else if (!model.empty()) {
        const auto some = model.begin();
        const auto [address, hash] = *some;
        ASSERT_TRUE(has(hash, address));
        model.erase(some);
        if (what == 9) {
          ASSERT_TRUE(index->replace(hash, address, next, next % 256));
          model[next++] = hash;
        } else {
          ASSERT_TRUE(index->remove(hash, address));
        }
      }
    }
    index->verify();
    ASSERT_EQ(index->counts().entries, model.size());
    for (const auto& [address, hash] : model) ASSERT_TRUE(has(hash, address));
  }
}

TEST_F(IndexTest, ABatchFindsWhatSingleLookupsFind) {
  for (uint64_t i = 0; i < 100'000; i += 2) ASSERT_TRUE(insert(hash_of(i), i));
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 1'003; ++i) hashes.push_back(hash_of(i));
  std::vector<Location> found(hashes.size());
  index->find(hashes, found);
  for (size_t i = 0; i < hashes.size(); ++i) {
    EXPECT_EQ(found[i].found, index->find(hashes[i]).found);
    if (i % 2 == 0) EXPECT_EQ(found[i].address, i);
  }
}

// Keys that stay are found at any time, while other threads make the index grow and shrink; a thread sees at once what it has inserted,
// replaced or removed.
TEST_F(IndexTest, ThreadsFindWhatStays) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(setting("SPILLWAY_TEST_SECONDS", 4));
  constexpr uint64_t kStay = 20'000, kOwn = 120'000;
  constexpr int kWriters = 2, kReaders = 2;
  for (uint64_t i = 0; i < kStay; ++i) ASSERT_TRUE(insert(hash_of(i), i));
  std::atomic<bool> over{false};
  std::atomic<uint64_t> lost{0}, looked{0}, rounds{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kWriters; ++number)
    threads.emplace_back([&, number] {
      const uint64_t first = kStay + number * kOwn;
      while (!over) {
        for (uint64_t i = first; i < first + kOwn && !over; ++i)
          lost += !insert(hash_of(i), i) || !has(hash_of(i), i);
        if (over) break;
        for (uint64_t i = first; i < first + kOwn; i += 3)
          lost += !index->replace(hash_of(i), i, i + (1 << 23), i % 256);
        for (uint64_t i = first; i < first + kOwn; ++i)
          lost += !index->remove(hash_of(i), (i - first) % 3 == 0 ? i + (1 << 23) : i);
        ++rounds;
      }
    });
  for (int number = 0; number < kReaders; ++number)
    threads.emplace_back([&, number] {
      std::mt19937_64 random(number);
      while (!over) {
        const uint64_t i = random() % kStay;
        lost += !has(hash_of(i), i);
        ++looked;
      }
    });
  std::this_thread::sleep_until(end);
  while (lost == 0 && (looked <= 1000 || index->counts().regions_moved <= 2 * kRegions))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lost, 0u);
  index->verify();
  for (uint64_t i = 0; i < kStay; ++i) ASSERT_TRUE(has(hash_of(i), i));
}

// A thread that finds no room grows the index, or finds that another one has, or that there is room by now; even if it was stopped in between for
// long, since there are more threads than CPUs.
TEST_F(IndexTest, NobodyIsRefusedWhileOthersGrowItAndRemove) {
  constexpr uint64_t kThreads = 8, kEach = 40'000;
  const uint64_t rounds = 20 / kEffortParts;
  std::atomic<uint64_t> refused{0};
  std::vector<std::thread> threads;
  for (uint64_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      for (uint64_t round = 0; round < rounds; ++round) {
        const uint64_t begin = number * kEach, end = begin + kEach;
        for (uint64_t i = begin; i < end; ++i) refused += !insert(hash_of(i), i);
        for (uint64_t i = begin; i < end; ++i) index->remove(hash_of(i), i);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(refused, 0u);
}

// If two threads insert the same key, one of them is told about the other's entry.
TEST_F(IndexTest, OfTwoThatInsertAKeyOneIsToldOfTheOther) {
  constexpr uint64_t kKeys = 60'000;
  std::atomic<uint64_t> done{0}, other{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number)
    threads.emplace_back([&, number] {
      for (uint64_t i = 0; i < kKeys; ++i) {
        const auto outcome = index->insert(hash_of(i), 2 * i + number, 1, {});
        (outcome == Index::Inserted::kDone ? done : other) += 1;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done + other, 2 * kKeys);
  EXPECT_LE(done, kKeys);
  EXPECT_GE(done + 10, kKeys) << "but for keys that look alike";
  EXPECT_EQ(index->counts().entries, done);
}

}  // namespace
}  // namespace kv
