#include "pagecache/partition.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "sys/memory.h"

namespace pagecache {
namespace {

constexpr unsigned kPageShift = 12;

uint64_t hash_of(PageKey key) { return base::mix(static_cast<uint64_t>(key)); }

// A partition that starts with one set of 16 frames, and may have 16 sets.
class PartitionTest : public testing::TestWithParam<cache::SetPolicy> {
 protected:
  void SetUp() override {
    const uint64_t set_bytes = partition.layout().bytes + (uint64_t{kMaxWays} << kPageShift);
    frame_bytes = *partition.frame_space_bytes(16 * set_bytes);
    frame_memory = *map_large_pages(frame_bytes);
    ASSERT_TRUE(partition.open(set_bytes, 16 * set_bytes, {.memory = frame_memory}));
  }
  void TearDown() override { sys::unmap(frame_memory, frame_bytes); }

  // Loads a page, which then nobody holds, with its key as content.
  Way& load(PageKey key, bool is_dirty = false) {
    const Partition::Home home = partition.lock_home(key);
    uint32_t index = 0;
    uint64_t evictions = 0;
    EXPECT_EQ(partition.claim(home, index, evictions), Partition::Claim::kClaimed);
    EXPECT_EQ(evictions, 0u);
    home.set.lock().unlock();
    Way& way = partition.way(home.set, index);
    memcpy(partition.frame(way), &key, sizeof key);
    way.loaded_for_write();
    if (is_dirty)
      way.written();
    else
      way.unexclude();
    return way;
  }
  // nullptr: the page is not in the cache.
  Way* find(PageKey key) {
    const Partition::Home home = partition.home_of(key);
    const uint32_t index = partition.find(home);
    return index == cache::kNoWay ? nullptr : &partition.way(home.set, index);
  }
  void expect_there(PageKey key, bool is_dirty) {
    Way* const way = find(key);
    ASSERT_NE(way, nullptr);
    EXPECT_EQ(way->is_dirty(), is_dirty);
    EXPECT_FALSE(way->is_held());
    EXPECT_EQ(memcmp(partition.frame(*way), &key, sizeof key), 0);
  }
  PageKey key_of_set(uint32_t set, uint32_t count, uint64_t nth = 0) {
    for (uint64_t key = 1;; ++key)
      if ((hash_of(PageKey{key}) & (count - 1)) == set && nth-- == 0) return PageKey{key};
  }
  // Takes frames away until merge() is possible. Pages stay if there are no more than frames.
  void shrink_last() {
    for (const uint32_t index : {partition.last(), partition.parent_of(partition.last())}) {
      PageSet& set = partition.set_at(index);
      uint32_t way = 0;
      uint64_t evictions = 0;
      while (partition.frames_of(set) > kMaxWays / 2)
        ASSERT_EQ(partition.take_frame(set, way, evictions), Partition::Claim::kClaimed);
      EXPECT_EQ(evictions, 0u);
    }
  }
  uint32_t frames_of_all() {
    uint32_t frames = 0;
    std::set<uint32_t> own;
    for (uint32_t i = 0; i < 16; ++i)
      for (uint32_t w = 0; w < kMaxWays; ++w)
        if (const Way& way = partition.way(partition.set_at(i), w); way.has_frame()) {
          ++frames;
          EXPECT_TRUE(own.insert(way.frame()).second);
        }
    return frames;
  }

  Partition partition{GetParam(), kPageShift};
  uint64_t frame_bytes = 0;
  std::byte* frame_memory = nullptr;
};

TEST_P(PartitionTest, ASplitChangesTheHomeOfOneSetsPages) {
  for (uint32_t count = 1; count < 16; ++count) {
    ASSERT_EQ(partition.set_count(), count);
    std::map<uint64_t, PageSet*> before;
    for (uint64_t key = 1; key < 500; ++key) before[key] = &partition.home_of(PageKey{key}).set;
    ASSERT_EQ(partition.split().set, nullptr);
    uint32_t moved = 0;
    for (const auto& [key, home] : before) {
      PageSet* const now = &partition.home_of(PageKey{key}).set;
      if (now == home) continue;
      ++moved;
      EXPECT_EQ(home, &partition.set_at(partition.parent_of(count)));
      EXPECT_EQ(now, &partition.set_at(count));
      EXPECT_EQ(hash_of(PageKey{key}) & (std::bit_ceil(count + 1) - 1), count);
    }
    EXPECT_GT(moved, 500 / std::bit_ceil(count + 1) / 2);
    EXPECT_GE(partition.frames_of(partition.set_at(count)), kMinWays);
    EXPECT_EQ(frames_of_all(), partition.frame_count());
  }
}

TEST_P(PartitionTest, PagesMoveWithTheirFrames) {
  for (uint64_t key = 1; key <= 16; ++key) load(PageKey{key}, key % 3 == 0);
  const auto expect_all = [&] {
    for (uint64_t key = 1; key <= 16; ++key) expect_there(PageKey{key}, key % 3 == 0);
    EXPECT_EQ(frames_of_all(), partition.frame_count());
  };
  for (int i = 0; i < 15; ++i) {
    ASSERT_EQ(partition.split().set, nullptr);
    expect_all();
  }
  EXPECT_EQ(partition.set_count(), 16u);
  while (partition.set_count() > 2) {
    shrink_last();
    ASSERT_EQ(partition.merge().set, nullptr);
    EXPECT_EQ(partition.frames_of(partition.set_at(partition.set_count())), 0u);
    expect_all();
  }
}

TEST_P(PartitionTest, SetsKeepTheirPolicy) {
  for (uint64_t key = 1; key <= 16; ++key) load(PageKey{key});
  ASSERT_EQ(partition.split().set, nullptr);
  // Each page of both sets leaves once.
  for (uint32_t i = 0; i < 2; ++i) {
    PageSet& set = partition.set_at(i);
    const uint32_t frames = partition.frames_of(set);
    uint32_t way = 0, taken = 0;
    uint64_t evictions = 0;
    while (partition.take_frame(set, way, evictions) == Partition::Claim::kClaimed) ++taken;
    EXPECT_EQ(taken, frames);
  }
  EXPECT_EQ(partition.frame_count(), 0u);
  for (uint64_t key = 1; key <= 16; ++key) EXPECT_EQ(find(PageKey{key}), nullptr);
}

// Pages of one set that were not used again leave in the order in which they came.
TEST_P(PartitionTest, DirtyPagesAreFlushedThatWouldLeaveSoon) {
  PageSet& set = partition.set_at(0);
  const auto load_16 = [&](std::set<uint64_t> dirty) {
    uint32_t index = 0;
    uint64_t evictions = 0;
    for (uint64_t key = 1; key <= 16; ++key) {
      Way* const way = find(PageKey{key});
      if (way == nullptr) continue;
      if (way->begin_clean()) {
        way->unshare();
        way->cleaned();
      }
    }
    while (partition.take_frame(set, index, evictions) == Partition::Claim::kClaimed) {
    }
    partition.give_frames(set, kMaxWays);
    for (uint64_t key = 1; key <= 16; ++key) load(PageKey{key}, dirty.contains(key));
  };
  const auto keys_of = [&](cache::WayMask ways) {
    std::set<uint64_t> keys;
    for (uint32_t w = 0; w < kMaxWays; ++w)
      if ((ways & cache::way_bit(w)) != 0) keys.insert(static_cast<uint64_t>(partition.way(set, w).key()));
    return keys;
  };
  using Keys = std::set<uint64_t>;
  load_16({});
  EXPECT_FALSE(partition.is_to_flush(set));
  EXPECT_EQ(partition.dirty_victims(set, 1), 0u);
  load_16({5, 6, 8, 9, 16});
  EXPECT_FALSE(partition.is_to_flush(set));
  EXPECT_EQ(keys_of(partition.dirty_victims(set)), (Keys{5, 6, 8}));
  EXPECT_EQ(keys_of(partition.dirty_victims(set, 1)), Keys{5});
  EXPECT_EQ(keys_of(partition.dirty_victims(set, 4)), (Keys{5, 6, 8, 9}));
  load_16({4, 9, 10, 11, 12});
  EXPECT_TRUE(partition.is_to_flush(set));
  EXPECT_EQ(keys_of(partition.dirty_victims(set)), Keys{4});
  // A page that is being cleaned leaves in its turn; a held one does not.
  load_16({4, 8, 9});
  Way& cleaned = *find(PageKey{8});
  ASSERT_TRUE(cleaned.begin_clean());
  EXPECT_EQ(keys_of(partition.dirty_victims(set)), Keys{4});
  cleaned.unshare();
  cleaned.cleaned();
  ASSERT_TRUE(find(PageKey{2})->try_share(PageKey{2}));
  EXPECT_EQ(keys_of(partition.dirty_victims(set)), (Keys{4, 9}));
  find(PageKey{2})->unshare();
  // Free frames are used first.
  load_16({1, 2, 3, 9});
  for (uint32_t w = 4; w < 12; ++w) {
    Way& way = partition.way(set, w);
    if (!way.evict()) continue;
    partition.forget(set, w);
  }
  EXPECT_FALSE(partition.is_to_flush(set));
  EXPECT_EQ(keys_of(partition.dirty_victims(set)), Keys{1});
}

TEST_P(PartitionTest, FramesAtTheEndAreReplaced) {
  std::vector<PageKey> keys;
  for (uint64_t key = 1; key <= 16; ++key) keys.push_back(PageKey{key});
  for (const PageKey key : keys) load(key, static_cast<uint64_t>(key) % 3 == 0);
  // A page in one of the frames that stay leaves, and a page in another frame is held.
  PageSet& set = partition.set_at(0);
  for (uint32_t w = 0; w < kMaxWays; ++w) {
    Way& way = partition.way(set, w);
    if (way.is_dirty()) continue;
    static_cast<void>(way.evict());
    partition.forget(set, w);
  }
  std::erase_if(keys, [](PageKey key) { return static_cast<uint64_t>(key) % 3 != 0; });
  ASSERT_EQ(keys.size(), 5u);
  uint32_t unused = 0;
  uint64_t evictions = 0;
  for (uint32_t taken = 0; taken < 10; ++taken)
    ASSERT_EQ(partition.take_frame(set, unused, evictions), Partition::Claim::kClaimed);
  Way& held = *find(keys.back());
  const uint32_t frame = held.frame();
  ASSERT_GT(frame, 6u);
  ASSERT_TRUE(held.try_share(keys.back()));
  partition.compact();
  partition.end_resize();
  EXPECT_EQ(held.frame(), frame);
  held.unshare();
  for (uint32_t w = 0; w < kMaxWays; ++w) {
    const Way& way = partition.way(set, w);
    if (&way != &held) EXPECT_LE(way.frame(), 6u);
  }
  for (const PageKey key : keys) expect_there(key, true);
  EXPECT_EQ(frames_of_all(), 6u);
}

TEST_P(PartitionTest, APageThatIsHeldDoesNotMove) {
  const PageKey first = key_of_set(1, 2, 0), held = key_of_set(1, 2, 1), stays = key_of_set(0, 2);
  load(first, true);
  load(stays);
  Way& way = load(held, true);
  const auto expect_stays = [&] {
    const Partition::Obstacle obstacle = partition.split();
    EXPECT_EQ(obstacle.way, &way);
    EXPECT_EQ(obstacle.set, &partition.set_at(0));
    EXPECT_EQ(partition.set_count(), 1u);
    EXPECT_TRUE(way.is_held());
    EXPECT_EQ(way.key(), held);
    expect_there(first, true);
    EXPECT_TRUE(partition.set_at(0).lock().try_lock());
    partition.set_at(0).lock().unlock();
    EXPECT_TRUE(partition.set_at(1).lock().try_lock());
    partition.set_at(1).lock().unlock();
  };
  ASSERT_TRUE(way.try_share(held));
  expect_stays();
  way.unshare();
  ASSERT_TRUE(way.try_exclude(held));
  expect_stays();
  way.unexclude();
  ASSERT_TRUE(way.begin_clean());
  expect_stays();
  way.unshare();
  expect_stays();
  way.clean_failed();
  ASSERT_TRUE(find(stays)->try_share(stays));  // this page may be held, since it does not move
  EXPECT_EQ(partition.split().set, nullptr);
  expect_there(first, true);
  expect_there(held, true);
  find(stays)->unshare();
  expect_there(stays, false);
  // The same on the way back.
  Way& moved = *find(held);
  ASSERT_TRUE(moved.try_share(held));
  shrink_last();
  EXPECT_EQ(partition.merge().way, &moved);
  EXPECT_EQ(partition.set_count(), 2u);
  moved.unshare();
  EXPECT_EQ(partition.merge().set, nullptr);
  expect_there(held, true);
  expect_there(first, true);
}

TEST_P(PartitionTest, APageThatIsLoadingDoesNotMove) {
  const PageKey key = key_of_set(1, 2);
  uint32_t index = 0;
  uint64_t evictions = 0;
  {
    const Partition::Home home = partition.lock_home(key);
    ASSERT_EQ(partition.claim(home, index, evictions), Partition::Claim::kClaimed);
    home.set.lock().unlock();
  }
  Way& way = partition.way(partition.set_at(0), index);
  EXPECT_EQ(partition.split().way, &way);
  way.loaded();
  way.unshare();
  EXPECT_EQ(partition.split().set, nullptr);
  EXPECT_NE(find(key), &way);
}

// A call waits for a set's lock while the set is split.
TEST_P(PartitionTest, TheHomeIsLookedAtAgainUnderTheLock) {
  const PageKey key = key_of_set(1, 2);
  load(key);
  PageSet &from = partition.set_at(0), &to = partition.set_at(1);
  to.lock().lock();
  std::thread splits([&] { EXPECT_EQ(partition.split().set, nullptr); });
  while (from.lock().try_lock()) {
    from.lock().unlock();
    std::this_thread::yield();
  }
  PageSet* home = nullptr;
  std::thread looks([&] {
    const Partition::Home locked = partition.lock_home(key);
    EXPECT_NE(partition.find(locked), cache::kNoWay);
    home = &locked.set;
    locked.set.lock().unlock();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  to.lock().unlock();
  splits.join();
  looks.join();
  EXPECT_EQ(home, &to);
}

TEST_P(PartitionTest, AWalkSeesPagesThatMove) {
  // With 4 sets, no more pages in each than it may have when it is merged.
  std::vector<PageKey> keys;
  for (uint32_t set = 0; set < 4; ++set)
    for (uint64_t nth = 0; nth < 6; ++nth) keys.push_back(key_of_set(set, 4, nth));
  while (partition.set_count() < 4) ASSERT_EQ(partition.split().set, nullptr);
  for (const PageKey key : keys) load(key);
  std::mt19937 random(1);
  uint32_t moves = 0;
  for (int round = 0; round < 300; ++round) {
    std::set<PageKey> seen;
    partition.for_all_sets([&](PageSet& set) {
      EXPECT_FALSE(set.lock().try_lock());
      for (uint32_t w = 0; w < kMaxWays; ++w) seen.insert(partition.way(set, w).key());
      for (uint32_t steps = random() % 8; steps > 0; --steps) {
        const uint32_t count = partition.set_count();
        const bool is_split = round % 3 == 0 ? random() % 2 == 0 : round % 3 == 1;
        if (is_split ? count == 16 : count == 4) break;
        const uint32_t last = is_split ? count : count - 1;
        // Its lock is taken.
        if (&set == &partition.set_at(last) || &set == &partition.set_at(partition.parent_of(last))) break;
        if (!is_split) shrink_last();
        ASSERT_EQ((is_split ? partition.split() : partition.merge()).set, nullptr);
        ++moves;
      }
    });
    for (const PageKey key : keys) {
      ASSERT_TRUE(seen.contains(key)) << "round " << round;
      expect_there(key, false);
    }
  }
  EXPECT_GT(moves, 1000u);
}

// A walk waits for the lock of a set that is merged into one which it has already seen.
TEST_P(PartitionTest, AWalkLooksAgainAtWhatItWaitedFor) {
  const PageKey key = key_of_set(1, 2);
  load(key);
  ASSERT_EQ(partition.split().set, nullptr);
  shrink_last();
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  sys::Mutex& lock = partition.set_at(1).lock();
  lock.lock();
  bool is_seen = false;
  std::thread walks([&] {
    partition.for_all_sets([&](PageSet& set) {
      for (uint32_t w = 0; w < kMaxWays; ++w) is_seen |= partition.way(set, w).key() == key;
    });
  });
  pause();
  std::thread merges([&] { EXPECT_EQ(partition.merge().set, nullptr); });
  pause();
  // The first waiter finds it locked again, and so becomes the second.
  lock.unlock();
  lock.lock();
  pause();
  lock.unlock();
  walks.join();
  merges.join();
  EXPECT_TRUE(is_seen);
  expect_there(key, false);
}

TEST_P(PartitionTest, AWalkOfAllSetsSeesEachOnce) {
  for (uint32_t count = 1; count <= 16; ++count) {
    std::map<PageSet*, int> seen;
    partition.for_all_sets([&](PageSet& set) { ++seen[&set]; });
    EXPECT_EQ(seen.size(), count);
    for (const auto& [set, times] : seen) EXPECT_EQ(times, 1);
    if (count < 16) ASSERT_EQ(partition.split().set, nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PartitionTest, testing::ValuesIn(cache::kSetPolicies),
                         [](const auto& parameter) { return cache::name_of(parameter.param); });

}  // namespace
}  // namespace pagecache
