// Scans of the index beside changes, growth and shrinking.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mix.h"
#include "kv/index/index.h"
#include "kv/testing/test_effort.h"

namespace kv {
namespace {

constexpr unsigned kAddressBits = 34;

class IndexScanTest : public testing::Test {
 protected:
  IndexScanTest() : index(*Index::open(kAddressBits)), found(Index::kMaxScan) {}
  ~IndexScanTest() override { index->close(); }

  static uint64_t hash_of(uint64_t i) { return base::mix(i); }
  bool insert(uint64_t hash, uint64_t address, const Hook<Location>& hook = {}) {
    std::vector<uint64_t> known;
    for (;;) {
      const auto done = index->insert(hash, address, 1, known, hook);
      if (done != Index::Inserted::kOther) return done == Index::Inserted::kDone;
      Location all[Index::kMaxCandidates];
      const size_t count = index->find_all(hash, all);
      known.clear();
      for (size_t i = 0; i < count; ++i) known.push_back(all[i].address);
    }
  }
  static std::chrono::steady_clock::time_point end_of_test() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(setting("SPILLWAY_TEST_SECONDS", 4));
  }

  Index* index;
  std::vector<Location> found;
};

TEST_F(IndexScanTest, PositionsAreRegionThenTheBitsThatGrowthTakes) {
  EXPECT_EQ(Index::position_of(0), 0u);
  EXPECT_EQ(Index::position_of(kRegionSlots - 1), 0u);
  EXPECT_EQ(Index::position_of(kRegionSlots), uint64_t{1} << 61);
  EXPECT_EQ(Index::position_of(kSlots - 1), uint64_t{7} << 61);
  EXPECT_EQ(Index::position_of(uint64_t{1} << kHomeBits), uint64_t{1} << 60);
  EXPECT_EQ(Index::position_of(uint64_t{6} << kHomeBits), uint64_t{3} << 58);
  EXPECT_EQ(Index::position_of(uint64_t{1} << 63), uint64_t{1} << 12);
  EXPECT_LT(Index::position_of(~uint64_t{0}), Index::kScanEnd);
}

TEST_F(IndexScanTest, AnEmptyIndexHasAStepForEachRegion) {
  int steps = 0;
  for (uint64_t at = 0; at != Index::kScanEnd; ++steps) {
    const ScanStep step = index->scan(at, found);
    EXPECT_EQ(step.begin, at);
    EXPECT_EQ(step.count, 0u);
    at = step.end;
  }
  EXPECT_EQ(steps, 8);
}

TEST_F(IndexScanTest, AStepBringsAllWithItsPositions) {
  constexpr uint64_t kKeys = 200'000;
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(insert(hash_of(i), i));
  std::vector<int> seen(kKeys);
  for (uint64_t at = 0; at != Index::kScanEnd;) {
    const ScanStep step = index->scan(at, found);
    ASSERT_EQ(step.begin, at) << "nothing was merged";
    ASSERT_GT(step.end, at);
    for (size_t i = 0; i < step.count; ++i) {
      EXPECT_EQ(found[i].size, 1u);
      ++seen.at(found[i].address);
      const uint64_t position = Index::position_of(hash_of(found[i].address));
      ASSERT_TRUE(position >= step.begin && position < step.end);
    }
    at = step.end;
  }
  EXPECT_EQ(std::ranges::count(seen, 1), kKeys);
}

TEST_F(IndexScanTest, AMergeBringsBackWhatWasSeenAndTellsSo) {
  constexpr uint64_t kKeys = 200'000, kStay = 1'000;
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(insert(hash_of(i), i));
  std::vector<int> seen(kKeys), new_ones(kKeys);
  int steps = 0, came_back = 0;
  for (uint64_t at = 0; at != Index::kScanEnd; ++steps) {
    const ScanStep step = index->scan(at, found);
    came_back += step.begin < at;
    for (size_t i = 0; i < step.count; ++i) {
      const uint64_t key = found[i].address;
      ++seen[key];
      new_ones[key] += Index::position_of(hash_of(key)) >= at;
    }
    at = step.end;
    if (steps == 4)
      for (uint64_t i = kStay; i < kKeys; ++i) ASSERT_TRUE(index->remove(hash_of(i), i));
  }
  EXPECT_EQ(came_back, 1) << "of the interval that the scan stood in, all but the first tables have gone";
  EXPECT_TRUE(std::ranges::any_of(seen, [](int times) { return times == 2; }));
  for (uint64_t i = 0; i < kStay; ++i) EXPECT_EQ(new_ones[i], 1) << i;
}

TEST_F(IndexScanTest, HooksTellWhatWasThere) {
  int calls = 0;
  Location before;
  const auto hook = [&](const Location& location) {
    ++calls;
    before = location;
  };
  EXPECT_TRUE(insert(11, 5, hook));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(before.found);
  EXPECT_EQ(index->insert(11, 6, 1, {}, hook), Index::Inserted::kOther);
  EXPECT_FALSE(index->replace(11, 7, 8, 2, hook));
  EXPECT_FALSE(index->remove(11, 7, hook));
  EXPECT_EQ(calls, 1) << "nothing was done";
  EXPECT_TRUE(index->replace(11, 5, 8, 2, hook));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(before.found && before.address == 5 && before.size == 1);
  EXPECT_TRUE(index->remove(11, 8, hook));
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(before.found && before.address == 8 && before.size == 2);
}

// While a hook runs, calls that concern its region wait: others see what the hook and the index do as one step.
TEST_F(IndexScanTest, HooksAreCalledWhileTheRegionIsLocked) {
  using namespace std::chrono_literals;
  const uint64_t hash = kRegionSlots + 7;
  ASSERT_TRUE(insert(hash, 5));
  std::atomic<int> done{0};
  std::thread other;
  const auto try_in_another_thread = [&](const auto& what) {
    other = std::thread([&done, what] {
      what();
      ++done;
    });
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(done, 0);
  };
  const auto ends = [&] {
    other.join();
    return done.exchange(0) == 1;
  };
  const uint64_t position = Index::position_of(hash);
  const auto replace = [&] { EXPECT_TRUE(index->replace(hash, 5, 6, 1)); };
  EXPECT_EQ(index->scan(position, found, [&](const ScanStep&) { try_in_another_thread(replace); }).count, 1u);
  EXPECT_TRUE(ends());
  std::vector<Location> seen(Index::kMaxScan);
  const auto scan = [&] { EXPECT_EQ(index->scan(position, seen).count, 1u); };
  const auto try_scan = [&](const Location&) { try_in_another_thread(scan); };
  EXPECT_TRUE(index->replace(hash, 6, 7, 1, try_scan));
  EXPECT_TRUE(ends());
  EXPECT_EQ(seen[0].address, 7u);
  EXPECT_TRUE(insert(hash + 200, 8, [&](const Location&) {
    try_in_another_thread([&] { EXPECT_EQ(index->scan(position, seen).count, 2u); });
  }));
  EXPECT_TRUE(ends());
  EXPECT_TRUE(index->remove(hash + 200, 8, try_scan));
  EXPECT_TRUE(ends());
}

// Keys that stay are seen once by every scan, while threads put others in, replace and remove them, and the index grows and shrinks.
TEST_F(IndexScanTest, ScansBesideThreadsSeeWhatStaysOnce) {
  const auto end = end_of_test();
  constexpr uint64_t kStay = 20'000, kOwn = 100'000, kReplaced = 1 << 23;
  for (uint64_t i = 0; i < kStay; ++i) ASSERT_TRUE(insert(hash_of(i), i));
  std::atomic<bool> over{false};
  std::atomic<uint64_t> lost{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number)
    threads.emplace_back([&, number] {
      const uint64_t first = kStay + number * kOwn;
      while (!over) {
        for (uint64_t i = first; i < first + kOwn; ++i) lost += !insert(hash_of(i), i);
        for (uint64_t i = first; i < first + kOwn; i += 3)
          lost += !index->replace(hash_of(i), i, i + kReplaced, 1);
        for (uint64_t i = first; i < first + kOwn; ++i)
          lost += !index->remove(hash_of(i), (i - first) % 3 == 0 ? i + kReplaced : i);
      }
    });
  int scans = 0;
  while (std::chrono::steady_clock::now() < end || scans <= 10) {
    std::vector<int> seen(kStay);
    for (uint64_t at = 0; at != Index::kScanEnd;) {
      const ScanStep step = index->scan(at, found);
      for (size_t i = 0; i < step.count; ++i) {
        const uint64_t key = found[i].address % kReplaced, position = Index::position_of(hash_of(key));
        lost += position < step.begin || position >= step.end;
        if (key < kStay && position >= at) ++seen[key];
      }
      at = step.end;
    }
    EXPECT_EQ(std::ranges::count(seen, 1), kStay);
    ++scans;
  }
  over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lost, 0u);
  index->verify();
}

// A snapshot of the whole index, as invariant 6 allows: a change hands over what was there if the cursor has not passed it. Writers count up
// two keys that are far apart, one after the other; in a snapshot the first is equal to the second, or one ahead. A third key comes and goes
// between the two steps: a snapshot has it only if the first is ahead.
TEST_F(IndexScanTest, HandedOverEntriesMakeASnapshotOfOneTime) {
  const auto end = end_of_test();
  constexpr uint64_t kPairs = 3'000, kVersions = 1 << 15;
  // Addresses tell key and version.
  const auto address_of = [](uint64_t key, uint64_t version) {
    return key * kVersions + version % kVersions;
  };
  const auto first_of = [](uint64_t pair) { return 3 * pair; };
  for (uint64_t pair = 0; pair < kPairs; ++pair)
    for (uint64_t key : {first_of(pair), first_of(pair) + 1})
      ASSERT_TRUE(insert(hash_of(key), address_of(key, 0)));
  std::atomic<uint64_t> cursor{Index::kScanEnd};
  std::mutex lock;
  std::unordered_map<uint64_t, Location> handed;  // by key: what was there
  const auto hook_of = [&](uint64_t key) {
    return [&, key](const Location& before) {
      if (Index::position_of(hash_of(key)) < cursor.load()) return;
      const std::lock_guard guard(lock);
      handed.emplace(key, before);  // unless it has been already
    };
  };
  std::atomic<bool> over{false};
  std::atomic<uint64_t> lost{0};
  const auto write = [&](uint64_t begin, uint64_t pairs) {
    std::mt19937_64 random(begin);
    std::vector<uint64_t> versions(pairs);
    while (!over) {
      const uint64_t pair = random() % pairs, key = first_of(begin + pair), version = versions[pair]++;
      const auto step = [&](uint64_t of) {
        const auto hook = hook_of(of);
        lost += !index->replace(hash_of(of), address_of(of, version), address_of(of, version + 1), 1, hook);
      };
      step(key);
      lost += !insert(hash_of(key + 2), address_of(key + 2, 0), hook_of(key + 2));
      const auto hook = hook_of(key + 2);
      lost += !index->remove(hash_of(key + 2), address_of(key + 2, 0), hook);
      step(key + 1);
    }
  };
  // Makes the index grow and shrink.
  const auto stir = [&] {
    constexpr uint64_t kBegin = 3 * kPairs, kEnd = kBegin + 60'000;
    while (!over) {
      for (uint64_t i = kBegin; i < kEnd; ++i) lost += !insert(hash_of(i), address_of(i, 0));
      for (uint64_t i = kBegin; i < kEnd; ++i) lost += !index->remove(hash_of(i), address_of(i, 0));
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(write, 0, kPairs / 2);
  threads.emplace_back(write, kPairs / 2, kPairs / 2);
  threads.emplace_back(stir);
  uint64_t snapshots = 0, ahead = 0, by_hand = 0;
  while (std::chrono::steady_clock::now() < end || snapshots <= 10) {
    std::unordered_map<uint64_t, uint64_t> snapshot;  // key to version
    cursor = 0;                                       // now
    for (uint64_t at = 0; at != Index::kScanEnd;) {
      const ScanStep step = index->scan(at, found, [&](const ScanStep& taken) { cursor = taken.end; });
      const std::lock_guard guard(lock);
      for (size_t i = 0; i < step.count; ++i) {
        const uint64_t key = found[i].address / kVersions;
        if (key >= 3 * kPairs || Index::position_of(hash_of(key)) < at || handed.contains(key)) continue;
        lost += !snapshot.emplace(key, found[i].address % kVersions).second;
      }
      at = step.end;
    }
    by_hand += handed.size();
    for (const auto& [key, before] : handed)
      if (before.found) lost += !snapshot.emplace(key, before.address % kVersions).second;
    handed.clear();
    for (uint64_t pair = 0; pair < kPairs; ++pair) {
      const uint64_t key = first_of(pair);
      ASSERT_TRUE(snapshot.contains(key) && snapshot.contains(key + 1)) << pair;
      const uint64_t by = (snapshot[key] - snapshot[key + 1]) % kVersions;
      ASSERT_LE(by, 1u) << pair;
      ASSERT_TRUE(by == 1 || !snapshot.contains(key + 2)) << pair;
      ahead += by;
    }
    ++snapshots;
  }
  over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lost, 0u);
  EXPECT_GT(ahead, 0u);
  EXPECT_GT(by_hand, 0u);
  EXPECT_GT(index->counts().regions_moved, 2 * kRegions);
  index->verify();
}

}  // namespace
}  // namespace kv
