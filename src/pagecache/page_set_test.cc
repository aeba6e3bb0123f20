#include "pagecache/page_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/check.h"

namespace pagecache {
namespace {

// A single set, outside a cache.
struct TestSet {
  explicit TestSet(cache::SetPolicy policy = cache::SetPolicy::kLfu)
      : layout(policy),
        memory(layout.bytes / sizeof(Line)),
        set(*reinterpret_cast<PageSet*>(memory.data())) {}
  std::vector<uint32_t> of_tag(uint16_t tag) {
    std::vector<uint32_t> found;
    set.any_of_tag(tag, [&](uint32_t way) {
      found.push_back(way);
      return false;
    });
    return found;
  }

  struct alignas(base::kLineBytes) Line {
    std::byte bytes[base::kLineBytes] = {};
  };
  const PageSet::Layout layout;
  std::vector<Line> memory;
  PageSet& set;
};

TEST(PageSetTest, LooksAtFewLines) {
  EXPECT_EQ(PageSet::Layout(cache::SetPolicy::kLfu).ways_offset, 128u);
  EXPECT_EQ(PageSet::Layout(cache::SetPolicy::kS3fifo).bytes, 384u);
  EXPECT_EQ(PageSet::Layout(cache::SetPolicy::kAlfu).bytes, 576u);
  for (const cache::SetPolicy policy : cache::kSetPolicies) {
    const PageSet::Layout layout(policy);
    EXPECT_EQ(layout.ways_offset % base::kLineBytes, 0u);
    EXPECT_EQ(layout.bytes % base::kLineBytes, 0u);
    EXPECT_GE(layout.bytes, layout.ways_offset + kMaxWays * sizeof(Way));
  }
}

TEST(PageSetTest, FindsAllWaysOfATag) {
  TestSet test;
  std::mt19937 random(1);
  uint16_t tags[kMaxWays] = {};
  for (int round = 0; round < 20000; ++round) {
    const uint32_t way = random() % kMaxWays;
    // Adjacent values, where a borrow propagates between lanes.
    const uint16_t values[] = {0, 1, 2, 0x7fff, 0x8000, 0xffff, static_cast<uint16_t>(random())};
    tags[way] = values[random() % std::size(values)];
    test.set.set_tag(way, tags[way]);
    const uint16_t wanted = std::max<uint16_t>(1, values[random() % std::size(values)]);
    const std::vector<uint32_t> found = test.of_tag(wanted);
    for (uint32_t i = 0; i < kMaxWays; ++i) {
      ASSERT_EQ(test.set.tag(i), tags[i]);
      if (tags[i] == wanted) ASSERT_TRUE(std::ranges::find(found, i) != found.end()) << "round " << round;
    }
  }
}

TEST(PageSetTest, TagsOfOthersAreNotLookedAt) {
  TestSet test;
  for (uint32_t way = 0; way < kMaxWays; ++way)
    test.set.set_tag(way, static_cast<uint16_t>(0x1234 + 64 * way));
  for (uint32_t way = 0; way < kMaxWays; ++way)
    EXPECT_EQ(test.of_tag(static_cast<uint16_t>(0x1234 + 64 * way)), std::vector{way});
  EXPECT_EQ(test.of_tag(0x4321), std::vector<uint32_t>());
}

TEST(PageSetTest, ATagIsNeverThatOfAFreeWay) {
  EXPECT_EQ(PageSet::tag_of(0), 1u);
  EXPECT_EQ(PageSet::tag_of(0x0000ffffffffffff), 1u);
  EXPECT_EQ(PageSet::tag_of(0xabcd000000000000), 0xabcdu);
}

TEST(PageSetTest, WaitsUntilTheDeadline) {
  TestSet test;
  test.set.lock().lock();
  EXPECT_FALSE(test.set.wait(test.layout, "a test", sys::monotonic_ns() + 1'000'000, [] { return true; }));
  // The list is empty again.
  test.set.changed(test.layout);
  test.set.lock().lock();
  EXPECT_TRUE(test.set.wait(test.layout, "a test", 0, [] { return false; }));
  EXPECT_TRUE(test.set.lock().try_lock());
}

class PredictionTest : public testing::TestWithParam<cache::SetPolicy> {};

TEST_P(PredictionTest, TellsWhatWouldLeaveAndChangesNothing) {
  TestSet test(GetParam());
  const PageSet::Layout& layout = test.layout;
  std::mt19937 random(1);
  cache::WayMask free = cache::all_ways(kMaxWays);
  uint64_t left_count = 0;
  for (int round = 0; round < 5000; ++round) {
    const uint32_t way = random() % kMaxWays;
    if ((free & cache::way_bit(way)) == 0) {
      test.set.on_hit(layout, way);
    } else {
      free &= ~cache::way_bit(way);
      test.set.set_tag(way, static_cast<uint16_t>(1 + random() % 30));
      test.set.on_insert(layout, way);
    }
    const std::vector<TestSet::Line> before = test.memory;
    const cache::WayMask spared = free | cache::way_bit(random() % kMaxWays);
    const uint32_t count = random() % (kMaxWays + 1);
    const cache::WayMask predicted = test.set.next_victims(layout, spared, count);
    ASSERT_EQ(memcmp(before.data(), test.memory.data(), layout.bytes), 0);
    cache::WayMask picked = 0;
    for (uint32_t i = 0; i < count; ++i)
      if (const uint32_t victim = test.set.pick_victim(layout, spared | picked); victim != cache::kNoWay)
        picked |= cache::way_bit(victim);
    ASSERT_EQ(predicted, picked) << "round " << round;
    for (; picked != 0; picked &= picked - 1) {
      const auto left = static_cast<uint32_t>(std::countr_zero(picked));
      test.set.on_remove(layout, left, cache::Removal::kEvicted);
      test.set.set_tag(left, 0);
      free |= cache::way_bit(left);
      ++left_count;
    }
  }
  EXPECT_GT(left_count, 1000u);
}

INSTANTIATE_TEST_SUITE_P(All, PredictionTest, testing::ValuesIn(cache::kSetPolicies),
                         [](const auto& parameter) { return cache::name_of(parameter.param); });

// --- ways ---

constexpr PageKey kKey{0x0001000000000007}, kOther{0x0001000000000008};

TEST(WayTest, LivesAsItsStatesSay) {
  Way way;
  way.give_frame(77);
  EXPECT_TRUE(way.is_free());
  EXPECT_FALSE(way.try_share(PageKey::kNone));
  EXPECT_FALSE(way.try_exclude(PageKey::kNone));
  way.claim(kKey);
  EXPECT_FALSE(way.is_free());
  EXPECT_TRUE(way.is_loading());
  EXPECT_FALSE(way.try_share(kKey));
  EXPECT_FALSE(way.evict());
  way.loaded();
  EXPECT_TRUE(way.has_readers());
  EXPECT_FALSE(way.is_evictable());
  EXPECT_FALSE(way.evict());
  EXPECT_TRUE(way.try_share(kKey));
  EXPECT_FALSE(way.try_share(kOther));
  way.unshare();
  way.unshare();
  EXPECT_TRUE(way.is_evictable());
  EXPECT_EQ(way.key(), kKey);
  EXPECT_EQ(way.frame(), 77u);
  EXPECT_TRUE(way.evict());
  EXPECT_TRUE(way.is_free());
  EXPECT_EQ(way.key(), PageKey::kNone);
  EXPECT_EQ(way.frame(), 77u);
}

TEST(WayTest, WhoExcludesIsAlone) {
  Way way;
  way.claim(kKey);
  way.loaded_for_write();
  EXPECT_FALSE(way.try_share(kKey));
  EXPECT_FALSE(way.try_exclude(kKey));
  EXPECT_FALSE(way.evict());
  way.written();
  EXPECT_TRUE(way.is_dirty());
  EXPECT_TRUE(way.try_share(kKey));
  EXPECT_FALSE(way.try_exclude(kOther));
  EXPECT_TRUE(way.try_exclude(kKey));
  EXPECT_TRUE(way.has_readers());
  EXPECT_FALSE(way.try_share(kKey));
  way.unshare();
  EXPECT_FALSE(way.has_readers());
  way.unexclude();
  EXPECT_TRUE(way.is_dirty());
}

TEST(WayTest, WhatIsDirtyAges) {
  Way way;
  way.claim(kKey);
  way.loaded_for_write();
  EXPECT_FALSE(way.age()) << "it is clean";
  EXPECT_TRUE(way.written());
  EXPECT_FALSE(way.age());
  EXPECT_TRUE(way.age());
  EXPECT_TRUE(way.is_cleanable());
  // Writing to the page does not reset its age,
  EXPECT_TRUE(way.try_exclude(kKey));
  EXPECT_FALSE(way.written());
  EXPECT_TRUE(way.age());
  // but writing it back does, even if that fails.
  EXPECT_TRUE(way.begin_clean());
  way.unshare();
  EXPECT_TRUE(way.clean_failed());
  EXPECT_FALSE(way.age());
  EXPECT_TRUE(way.age());
  EXPECT_TRUE(way.begin_clean());
  way.unshare();
  way.cleaned();
  EXPECT_TRUE(way.is_evictable());
  EXPECT_TRUE(way.evict());
}

TEST(WayTest, WhatMovesIsYoung) {
  Way from, to;
  from.give_frame(7);
  from.claim(kKey);
  from.loaded_for_write();
  EXPECT_TRUE(from.written());
  EXPECT_FALSE(from.age());
  EXPECT_TRUE(from.try_exclude(kKey));
  from.move_to(to);
  EXPECT_TRUE(to.is_cleanable());
  EXPECT_FALSE(to.age());
  EXPECT_TRUE(to.age());
  EXPECT_FALSE(from.age());
}

TEST(WayTest, DirtyPagesStayUntilTheyAreClean) {
  Way way;
  way.claim(kKey);
  way.loaded_for_write();
  EXPECT_FALSE(way.begin_clean());
  EXPECT_TRUE(way.written());
  EXPECT_FALSE(way.evict());
  EXPECT_TRUE(way.is_cleanable());
  EXPECT_TRUE(way.try_exclude(kKey));
  EXPECT_FALSE(way.begin_clean());
  way.unexclude();
  EXPECT_TRUE(way.begin_clean());
  EXPECT_FALSE(way.is_dirty());
  EXPECT_FALSE(way.begin_clean());
  way.unshare();
  EXPECT_FALSE(way.evict());
  EXPECT_TRUE(way.clean_failed());
  EXPECT_TRUE(way.is_cleanable());
  EXPECT_TRUE(way.begin_clean());
  way.unshare();
  // The page is written again meanwhile, so the Io does not make it clean.
  EXPECT_TRUE(way.try_exclude(kKey));
  EXPECT_TRUE(way.written());
  EXPECT_FALSE(way.begin_clean());
  way.cleaned();
  EXPECT_FALSE(way.evict());
  // If an Io fails, the page is not counted as newly dirty if it was written again meanwhile.
  EXPECT_TRUE(way.begin_clean());
  way.unshare();
  EXPECT_TRUE(way.try_exclude(kKey));
  EXPECT_TRUE(way.written());
  EXPECT_FALSE(way.clean_failed());
  EXPECT_TRUE(way.try_exclude(kKey));
  EXPECT_FALSE(way.written());
  EXPECT_TRUE(way.begin_clean());
  way.unshare();
  way.cleaned();
  EXPECT_TRUE(way.evict());
}

// At any moment the page is dirty or being cleaned: a sync must not miss a page whose write has just failed.
TEST(WayTest, APageThatCannotBeCleanedIsUnsavedAllTheTime) {
  Way way;
  way.claim(kKey);
  way.loaded_for_write();
  EXPECT_TRUE(way.written());
  std::atomic<bool> ends{false};
  std::thread cleaner([&] {
    for (int i = 0; i < 300'000; ++i) {
      CHECK(way.begin_clean());
      way.unshare();
      CHECK(way.clean_failed());
    }
    ends = true;
  });
  uint64_t saved_count = 0;
  while (!ends) saved_count += !way.is_unsaved();
  cleaner.join();
  EXPECT_EQ(saved_count, 0u);
}

// Such as a page that everybody reads, and of which each of a hundred thousand tasks has a view.
TEST(WayTest, HasRoomForManyReaders) {
  constexpr int kViews = 100'000;
  Way way;
  way.claim(kKey);
  way.loaded();
  for (int i = 1; i < kViews; ++i) ASSERT_TRUE(way.try_share(kKey)) << i;
  EXPECT_FALSE(way.is_exclusive());
  for (int i = 0; i < kViews; ++i) way.unshare();
  EXPECT_FALSE(way.has_readers());
  EXPECT_FALSE(way.is_held());
}

TEST(WayTest, IsFreeWithAFrameOnly) {
  Way way;
  EXPECT_FALSE(way.is_free());
  EXPECT_FALSE(way.has_frame());
  way.give_frame(77);
  EXPECT_TRUE(way.is_free());
  EXPECT_EQ(way.take_frame(), 77u);
  EXPECT_FALSE(way.is_free());
  EXPECT_FALSE(way.has_frame());
}

TEST(WayTest, APageStaysAsItIsInAnotherFrame) {
  Way way;
  way.give_frame(77);
  way.replace_frame(5);
  EXPECT_EQ(way.frame(), 5u);
  EXPECT_TRUE(way.is_free());
  way.claim(kKey);
  way.loaded_for_write();
  way.written();
  ASSERT_TRUE(way.try_exclude(kKey));
  way.replace_frame(78);
  way.unexclude();
  EXPECT_EQ(way.frame(), 78u);
  EXPECT_EQ(way.key(), kKey);
  EXPECT_TRUE(way.is_cleanable());
}

TEST(WayTest, APageMovesAsItIs) {
  Way from, to;
  from.give_frame(77);
  from.claim(kKey);
  from.loaded_for_write();
  from.written();
  ASSERT_TRUE(from.try_exclude(kKey));
  from.move_to(to);
  EXPECT_FALSE(from.has_frame());
  EXPECT_FALSE(from.try_share(kKey));
  EXPECT_EQ(from.key(), PageKey::kNone);
  EXPECT_EQ(to.key(), kKey);
  EXPECT_EQ(to.frame(), 77u);
  EXPECT_TRUE(to.is_cleanable());
  ASSERT_TRUE(to.begin_clean());
  EXPECT_TRUE(to.is_held());
  to.unshare();
  EXPECT_TRUE(to.is_held());
  to.cleaned();
  EXPECT_FALSE(to.is_held());
  // And back, clean.
  ASSERT_TRUE(to.try_exclude(kKey));
  to.move_to(from);
  EXPECT_TRUE(from.is_evictable());
  EXPECT_EQ(from.frame(), 77u);
}

TEST(WayTest, AFailedLoadLeavesItFree) {
  Way way;
  way.give_frame(77);
  way.claim(kKey);
  way.load_failed();
  EXPECT_TRUE(way.is_free());
  EXPECT_EQ(way.key(), PageKey::kNone);
}

}  // namespace
}  // namespace pagecache
