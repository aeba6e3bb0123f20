// Stores that are caches: they take everything, drop what is oldest, and never go back to an older value of a key.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <list>
#include <random>
#include <set>
#include <thread>
#include <unordered_map>

#include "kv/recovery/check.h"
#include "kv/snapshot.h"
#include "kv/testing/test_store.h"

namespace kv {
namespace {

class CacheStoreTest : public StoreTest {
 protected:
  static constexpr uint64_t kBytes = 32 << 20;

  explicit CacheStoreTest(uint64_t bytes = kBytes) : StoreTest(bytes) {}
  void SetUp() override { make({.segment_bytes = 1 << 20, .is_cache = true}); }
  static std::string key_of(uint64_t number) { return "key" + std::to_string(number); }
  static std::string value_of(uint64_t number, size_t bytes = 2000) {
    std::string value = std::to_string(number) + " ";
    value.resize(bytes, 'v');
    return value;
  }
  StoreCounts::Collected collected() { return store->counts().collected; }
  // Waits until the collector has segments for what it keeps, even if it was without a processor for long.
  void wait_for_collector() {
    for (int tries = 0; store->counts().log.free_segments < 4; ++tries) {
      ASSERT_LT(tries, 30'000) << "a millisecond each";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // Puts the first keys of a store, in one segment, and reads them. The first one expires at this time.
  static constexpr uint64_t kReadKeys = 400;
  static std::string read_key(uint64_t number) { return "read" + std::to_string(number); }
  void put_and_read(uint64_t expires_ms = 0) {
    for (uint64_t i = 0; i < kReadKeys; ++i) {
      ASSERT_EQ(put(read_key(i), value_of(i), {.expires_ms = i == 0 ? expires_ms : 0}), Outcome::kDone);
      ASSERT_EQ(get(read_key(i)), value_of(i));
    }
  }
  uint64_t read_count() {
    uint64_t count = 0;
    for (uint64_t i = 0; i < kReadKeys; ++i) count += get(read_key(i)) == value_of(i);
    return count;
  }
  // Puts others until that segment is dropped, so slowly that the collector has room for what it keeps.
  void push_out_first() {
    for (uint64_t i = 0; i % 50 != 0 || collected().dropped_records == 0; ++i) {
      ASSERT_LT(i, 40'000u);
      ASSERT_EQ(put(key_of(i), value_of(i)), Outcome::kDone);
      if (i % 50 == 0) ASSERT_NO_FATAL_FAILURE(wait_for_collector());
    }
  }
};

// Whether there is room for what is kept depends on when the threads run. There usually is.
constexpr int kTries = 5;

TEST_F(CacheStoreTest, TakesEverythingAndDropsTheOldest) {
  constexpr uint64_t kCount = 100'000;  // 200 MB
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(put(key_of(i), value_of(i)), Changed::Outcome::kDone);
  const auto is_there = [&](uint64_t i) { return get(key_of(i)) != "(none)"; };
  uint64_t there = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const std::string value = get(key_of(i));
    there += value != "(none)";
    if (value != "(none)") ASSERT_EQ(value, value_of(i));
  }
  EXPECT_GT(there * 2560, kBytes * 3 / 4) << "of the room most is used";
  for (uint64_t i = kCount - there / 2; i < kCount; ++i) ASSERT_TRUE(is_there(i)) << i;
  for (uint64_t i = 0; i < kCount - 2 * there; ++i) ASSERT_FALSE(is_there(i)) << i;
  EXPECT_EQ(collected().moved_records, 0u);
  EXPECT_GT(collected().dropped_records, kCount / 2);
}

// Large enough that two segments are filled at a time.
class CacheOfTwoStreamsTest : public CacheStoreTest {
 protected:
  CacheOfTwoStreamsTest() : CacheStoreTest(64 << 20) {}
};

TEST_F(CacheOfTwoStreamsTest, KnowsAfterAStartWhatWasDropped) {
  constexpr uint64_t kKeys = 40'000;
  std::vector<bool> was_there(kKeys);
  for (uint64_t round = 0; round < 3; ++round) {
    // Two segments are filled at a time, one of them more slowly: what it holds is dropped with the other one.
    Session other;
    ASSERT_TRUE(other.open(*store));
    for (uint64_t i = 0; i < kKeys; ++i) {
      Session& by = i % 5 == 0 ? other : session;
      ASSERT_TRUE(by.put(key_of(i), bytes_of(value_of(i + round))));
    }
    other.close();
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string value = get(key_of(i));
      was_there[i] = value != "(none)";
      if (was_there[i]) ASSERT_EQ(value, value_of(i + round));
    }
    reopen();
    int64_t there = 0;
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string value = get(key_of(i));
      ASSERT_TRUE(value == "(none)" || (was_there[i] && value == value_of(i + round))) << i << " " << round;
      there += value != "(none)";
    }
    EXPECT_GT(2 * there, std::ranges::count(was_there, true));
  }
}

TEST_F(CacheStoreTest, DropsRemovedKeysAndLargeValuesToo) {
  for (uint64_t i = 0; i < 400; ++i) {
    ASSERT_EQ(put("large" + std::to_string(i), value_of(i, 900'000)), Changed::Outcome::kDone);
    ASSERT_EQ(put(key_of(i), value_of(i)), Changed::Outcome::kDone);
    if (i % 2 == 0) ASSERT_EQ(remove(key_of(i)), Changed::Outcome::kDone);
    if (i >= 3) ASSERT_TRUE(get("large" + std::to_string(i - 3)) == value_of(i - 3, 900'000)) << i;
  }
  for (uint64_t i = 0; i < 400; ++i) {
    const std::string large = get("large" + std::to_string(i)), small = get(key_of(i));
    ASSERT_TRUE(large == "(none)" || large == value_of(i, 900'000)) << i;
    ASSERT_TRUE(small == "(none)" || (i % 2 == 1 && small == value_of(i))) << i;
  }
  EXPECT_EQ(get("large0"), "(none)");
}

TEST_F(CacheStoreTest, WritersAtOnceAreNeverRefused) {
  constexpr uint64_t kThreads = 4, kEach = 20'000, kKeys = 1000;
  std::atomic<uint64_t> latest[kKeys] = {};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      Session own;
      ASSERT_TRUE(own.open(*store));
      for (uint64_t i = 1; i <= kEach; ++i) {
        const uint64_t key = thread + i % (kKeys / kThreads) * kThreads;
        ASSERT_TRUE(own.put(key_of(key), bytes_of(value_of(i))));
        latest[key] = i;
        if (i % 7 == 0) {
          auto found = own.get(key_of(key));
          ASSERT_TRUE(found);
          if (found->found()) ASSERT_EQ(whole_value(own, *found), value_of(i));
        }
      }
      own.close();
    });
  for (std::thread& thread : threads) thread.join();
  uint64_t there = 0;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const std::string value = get(key_of(key));
    ASSERT_TRUE(value == "(none)" || value == value_of(latest[key]));
    there += value != "(none)";
  }
  EXPECT_GT(there, kKeys / kThreads / 2) << "what the last of them has put at last";
}

// Except for a little, where it lies close together: never all of a segment is kept.
TEST_F(CacheStoreTest, WhatIsReadStays) {
  constexpr uint64_t kHot = 1000, kCount = 100'000;
  for (uint64_t i = 0; i < kHot; ++i) put("hot" + key_of(i), value_of(i));
  uint64_t gets = 0, misses = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(put(key_of(i), value_of(i)), Changed::Outcome::kDone);
    if (i % 50 == 0) ASSERT_NO_FATAL_FAILURE(wait_for_collector());
    if (i % 5 != 0) continue;
    const uint64_t hot = i / 5 % kHot;
    const std::string value = get("hot" + key_of(hot));
    ++gets;
    if (value != "(none)") {
      ASSERT_EQ(value, value_of(hot));
    } else {
      ++misses;
      put("hot" + key_of(hot), value_of(hot));
    }
  }
  EXPECT_LT(misses, gets / 50);
  EXPECT_GT(collected().kept_records, kHot);
  EXPECT_LT(collected().kept_records, kCount / 5) << "nothing else is kept";
}

TEST_F(CacheStoreTest, WhatIsPeekedAtIsNotKept) {
  for (uint64_t i = 0; i < 30'000; ++i) {
    ASSERT_EQ(put(key_of(i), value_of(i)), Outcome::kDone);
    const auto found = session.peek(key_of(i));
    ASSERT_TRUE(found && found->found()) << i;
  }
  EXPECT_GT(collected().dropped_records, 0u);
  EXPECT_EQ(collected().kept_records, 0u);
}

// Of the records in that segment, the first one has expired.
TEST_F(CacheStoreTest, WhatIsReadStaysBesideWhatHasExpired) {
  Clock clock;
  clock.stop();
  uint64_t most = 0;
  for (int tries = 0; tries < kTries && most < kReadKeys * 9 / 10; ++tries) {
    close();
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20, .is_cache = true}));
    open({.durability = Durability::kNone, .stream_count = 2, .clock = &clock});
    put_and_read(clock.now_ms() + 10);
    clock.move(10);
    push_out_first();
    if (HasFatalFailure()) break;
    most = std::max(most, read_count());
  }
  EXPECT_GE(most, kReadKeys * 9 / 10);
  EXPECT_LT(most, kReadKeys) << "one has expired";
  close();
}

// What is kept gets another version, and still is part of a snapshot.
TEST_F(CacheStoreTest, ASnapshotHasWhatIsKept) {
  Session reader;
  uint64_t there = 0;
  for (int tries = 0; tries < kTries && there < kReadKeys / 2; ++tries) {
    close();
    make({.segment_bytes = 1 << 20, .is_cache = true});
    ASSERT_TRUE(reader.open(*store));
    put_and_read();
    {
      Snapshot snapshot;
      ASSERT_TRUE(snapshot.open(reader));
      push_out_first();
      std::set<std::string> seen;
      for (Snapshot::Entry entry; *snapshot.next(entry);) EXPECT_TRUE(seen.emplace(entry.key).second);
      there = 0;
      for (uint64_t i = 0; i < kReadKeys; ++i) {
        if (get(read_key(i)) == "(none)") continue;
        ++there;
        EXPECT_TRUE(seen.contains(read_key(i))) << i;
      }
      EXPECT_LE(seen.size(), kReadKeys) << "nothing that came afterwards";
    }
    reader.close();
  }
  EXPECT_GE(there, kReadKeys / 2);
}

// While the floor's own record is still to come, no record from before it gets a version above it.
TEST_F(CacheStoreTest, NothingIsKeptOverAFloorThatIsToCome) {
  put_and_read();
  {
    const Store::FloorToCome coming(*store);
    const auto floor = session.put("floor", {});
    ASSERT_TRUE(floor) << floor.error().message;
    push_out_first();
    store->forget_below(floor->version);
  }
  EXPECT_EQ(read_count(), 0u);
}

// Keys by Zipf's law, compared with an LRU list of as many keys as the store has at the end.
TEST_F(CacheStoreTest, HasAsManyHitsAsTheLeastRecentlyUsed) {
  constexpr uint64_t kKeys = 50'000, kCalls = 400'000;
  std::vector<double> sums(kKeys);
  double sum = 0;
  for (uint64_t i = 0; i < kKeys; ++i) sums[i] = sum += 1 / std::pow(static_cast<double>(i + 1), 0.99);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit(0, sum);
  std::vector<uint64_t> calls(kCalls);
  for (uint64_t& call : calls)
    call = static_cast<uint64_t>(std::ranges::lower_bound(sums, unit(random)) - sums.begin());
  uint64_t hits = 0;
  for (uint64_t i = 0; i < kCalls; ++i) {
    const std::string key = key_of(calls[i]);
    auto found = session.get(key);
    ASSERT_TRUE(found);
    if (i >= kCalls / 2) hits += found->found();
    if (!found->found()) ASSERT_EQ(put(key, value_of(calls[i])), Changed::Outcome::kDone);
  }
  uint64_t there = 0;
  for (uint64_t i = 0; i < kKeys; ++i) there += get(key_of(i)) != "(none)";
  std::list<uint64_t> order;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places;
  uint64_t lru_hits = 0;
  for (uint64_t i = 0; i < kCalls; ++i) {
    if (const auto place = places.find(calls[i]); place != places.end()) {
      order.erase(place->second);
      if (i >= kCalls / 2) ++lru_hits;
    }
    order.push_front(calls[i]);
    places[calls[i]] = order.begin();
    if (order.size() <= there) continue;
    places.erase(order.back());
    order.pop_back();
  }
  RecordProperty("items", static_cast<int>(there));
  RecordProperty("hits_percent", static_cast<int>(hits * 200 / kCalls));
  RecordProperty("lru_hits_percent", static_cast<int>(lru_hits * 200 / kCalls));
  EXPECT_GT(hits, lru_hits);
}

TEST_F(CacheStoreTest, IsACacheForGood) {
  EXPECT_TRUE(store->identity().is_cache);
  reopen();
  EXPECT_TRUE(store->identity().is_cache);
  close();
  const auto checked = check(*device, [](void*, const char*) {}, [](void*, uint64_t, uint64_t) {}, nullptr);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().number, EOPNOTSUPP);
}

}  // namespace
}  // namespace kv
