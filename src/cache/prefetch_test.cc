// Pages that are loaded ahead of use (Cache::prefetch), and how long they stay if they are not used.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/statistics.h"
#include "cache/testing/test_world.h"

namespace cache {
namespace {

class PrefetchTest : public WorldTest {
 protected:
  void SetUp() override { open_with({.frame_count = 64, .range_pages = 256}); }
  void open_with(TestParameters parameters) {
    leave();
    open(parameters);
    auto opened = world->cache->open_loads();
    ASSERT_TRUE(opened.has_value());
    queue = *opened;
  }
  ~PrefetchTest() override { leave(); }
  void leave() {
    if (queue != nullptr) world->cache->leave_loads(*queue);
    queue = nullptr;
  }

  size_t prefetch(std::vector<uint64_t> wanted) {
    std::vector<PageId> pages;
    for (const uint64_t page : wanted) pages.push_back(PageId{page});
    return world->cache->prefetch(pages, *queue);
  }
  void fill(uint64_t first, uint64_t count) {
    for (uint64_t page = first; page < first + count; ++page) write(page, letter(page));
    evict();
  }
  void poll() {
    while (queue->under_way_count() > 0) world->cache->poll_loads();
  }
  static char letter(uint64_t page) { return static_cast<char>('a' + page % 26); }
  static uint64_t used() { return base::statistics.cache_ahead_used.get(); }
  static uint64_t unused() { return base::statistics.cache_ahead_unused.get(); }

  LoadQueue* queue = nullptr;
};

TEST_F(PrefetchTest, PagesComeTogetherAndAreThereWhenTheyAreUsed) {
  fill(0, 8);
  const uint64_t reads = world->device->reads;
  EXPECT_EQ(prefetch({7, 6, 5, 4, 3, 2, 1, 0}), 8u);
  EXPECT_EQ(queue->under_way_count(), 8u);
  poll();
  EXPECT_EQ(world->device->reads, reads + 8);
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(value(page), letter(page));
  EXPECT_EQ(world->device->reads, reads + 8);
  EXPECT_GT(queue->latency_ns(), 0u);
}

TEST_F(PrefetchTest, ARunComesByOneReadWhereItLiesSideBySide) {
  open_with({.frame_count = 128, .range_pages = 256});
  fill(0, 40);
  const uint64_t reads = world->device->reads;
  EXPECT_EQ(world->cache->prefetch_run(PageId{0}, 40, *queue), 40u);
  poll();
  EXPECT_EQ(world->device->reads, reads + 1);
  for (uint64_t page = 0; page < 40; ++page) EXPECT_EQ(value(page), letter(page));
  EXPECT_EQ(world->device->reads, reads + 1);
}

TEST_F(PrefetchTest, OneReadBringsNoMoreThanItMay) {
  open_with({.frame_count = 256, .range_pages = 256});
  const uint32_t most = BegunLoad::most_pages(world->cache->page_bytes());
  fill(0, 2 * most + 1);
  const uint64_t reads = world->device->reads;
  EXPECT_EQ(world->cache->prefetch_run(PageId{0}, 2 * most + 1, *queue), 2 * most + 1);
  poll();
  EXPECT_EQ(world->device->reads, reads + 3);
  for (uint64_t page = 0; page <= 2 * most; ++page) EXPECT_EQ(value(page), letter(page));
  EXPECT_EQ(world->device->reads, reads + 3);
  EXPECT_EQ(BegunLoad::most_pages(base::kOsPageBytes), Claim::kMaxPages);
  EXPECT_EQ(BegunLoad::most_pages(BegunLoad::kMaxBytes / 4), 4u);
  EXPECT_EQ(BegunLoad::most_pages(2 * BegunLoad::kMaxBytes), 1u);
}

// Different regions may belong to different partitions.
TEST_F(PrefetchTest, OneReadEndsWhereARegionDoes) {
  open_with({.frame_count = 128, .range_pages = 1024});
  fill(500, 24);
  const uint64_t reads = world->device->reads;
  EXPECT_EQ(world->cache->prefetch_run(PageId{500}, 24, *queue), 24u);
  EXPECT_EQ(queue->under_way_count(), 2u);
  poll();
  for (uint64_t page = 500; page < 524; ++page) EXPECT_EQ(value(page), letter(page));
  EXPECT_EQ(world->device->reads, reads + 2);
}

TEST_F(PrefetchTest, PagesThatLieCloseToEachOtherComeByOneRead) {
  open_with({.frame_count = 128, .range_pages = 256});
  fill(0, 30);
  const uint64_t reads = world->device->reads;
  EXPECT_EQ(prefetch({0, 1, 2, 5, 9, 10, 12, 13, 20}), 9u);
  EXPECT_EQ(queue->under_way_count(), 3u);
  poll();
  EXPECT_EQ(world->device->reads, reads + 3);
  // With the pages between them; no others are loaded.
  for (const uint64_t page : {0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 20}) EXPECT_EQ(value(page), letter(page));
  EXPECT_EQ(world->device->reads, reads + 3);
  for (const uint64_t page : {6, 8, 14, 19, 21}) EXPECT_FALSE(world->resident(page)) << page;
}

// A page that is in memory is newer than what is on storage.
TEST_F(PrefetchTest, ARunGoesOnBehindAFewPagesThatAreThere) {
  open_with({.frame_count = 128, .range_pages = 256});
  struct Case {
    std::vector<uint64_t> there;
    uint64_t run_count, pages_read;
  };
  for (const auto& [there, run_count, pages_read] :
       {Case{{3, 7}, 1, 16}, {{3, 4, 7, 8}, 1, 16}, {{3, 4, 5}, 2, 13}, {{15}, 1, 15}}) {
    fill(0, 16);
    for (const uint64_t page : there) write(page, 'Z');
    const uint64_t reads = world->device->reads, taken = world->cache->resident_count();
    const uint64_t bytes = world->device->read_bytes;
    EXPECT_EQ(world->cache->prefetch_run(PageId{0}, 16, *queue), 16u);
    poll();
    EXPECT_EQ(world->device->reads, reads + run_count);
    EXPECT_EQ(world->device->read_bytes, bytes + pages_read * world->cache->page_bytes());
    world->cache->verify();
    for (uint64_t page = 0; page < 16; ++page) {
      const bool was_there = std::find(there.begin(), there.end(), page) != there.end();
      EXPECT_EQ(value(page), was_there ? 'Z' : letter(page)) << page;
    }
    EXPECT_EQ(world->device->reads, reads + run_count);
    EXPECT_EQ(world->cache->resident_count(), taken + 16 - there.size());
  }
}

TEST_F(PrefetchTest, ARunGoesOnBehindAPageThatIsBeingWritten) {
  fill(0, 8);
  write(3, 'Z');
  const uint64_t reads = world->device->reads;
  bool asked = false;
  world->device->before_transfer = [&](const Io& io) {
    if (io.operation != Operation::kWrite || asked) return;
    asked = true;
    EXPECT_EQ(world->cache->prefetch_run(PageId{0}, 8, *queue), 8u);
    poll();
  };
  evict();
  world->device->before_transfer = nullptr;
  EXPECT_TRUE(asked);
  EXPECT_EQ(world->device->reads, reads + 1);
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(value(page), page == 3 ? 'Z' : letter(page)) << page;
}

TEST_F(PrefetchTest, WhatIsThereOrUnderWayOrNowhereIsNotAskedForAgain) {
  fill(0, 2);
  EXPECT_EQ(value(0), letter(0));
  EXPECT_EQ(prefetch({0, 1, 1, 1, 99}), 5u);
  EXPECT_EQ(queue->under_way_count(), 1u);
  poll();
  EXPECT_FALSE(world->resident(99)) << "what reads as zeros needs no load";
  EXPECT_EQ(prefetch({1}), 1u);
  EXPECT_EQ(queue->under_way_count(), 0u);
}

// Page 512 is in another region.
TEST_F(PrefetchTest, ARunPassesOverWhatWasNeverWritten) {
  open_with({.frame_count = 64, .range_pages = 1024});
  for (const uint64_t page : {20, 511, 512}) write(page, letter(page));
  evict();
  EXPECT_EQ(world->cache->prefetch_run(PageId{0}, 1024, *queue), 1024u);
  EXPECT_EQ(queue->under_way_count(), 3u);
  poll();
  EXPECT_EQ(world->cache->resident_count(), 3u);
  for (const uint64_t page : {19, 20, 21, 511, 512})
    EXPECT_EQ(value(page), page == 19 || page == 21 ? 0 : letter(page)) << page;
}

TEST_F(PrefetchTest, WhoeverMissesThePageWaitsForItsLoad) {
  fill(0, 1);
  const uint64_t reads = world->device->reads;
  EXPECT_EQ(prefetch({0}), 1u);
  const char* bytes = b->translate(world->address(0));
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(bytes[0], letter(0));
  EXPECT_EQ(world->device->reads, reads + 1);
}

TEST_F(PrefetchTest, NothingIsEvictedForItAndSomeFramesAreLeft) {
  fill(0, 128);
  // All but a few frames hold pages.
  for (uint64_t page = 0; page < 60; ++page) EXPECT_EQ(value(page), letter(page));
  const uint64_t evictions = base::statistics.cache_evictions.get();
  std::vector<uint64_t> wanted;
  for (uint64_t page = 64; page < 128; ++page) wanted.push_back(page);
  const size_t done = prefetch(wanted);
  EXPECT_GT(done, 0u);
  EXPECT_LT(done, 4u);
  EXPECT_EQ(base::statistics.cache_evictions.get(), evictions);
  poll();
  for (uint64_t page = 0; page < 60; ++page) EXPECT_TRUE(world->resident(page));
}

TEST_F(PrefetchTest, AFullQueueDropsTheRest) {
  open_with({.frame_count = 2 * LoadQueue::kDepth, .range_pages = 2 * LoadQueue::kDepth});
  fill(0, LoadQueue::kDepth + 8);
  std::vector<uint64_t> wanted;
  for (uint64_t page = LoadQueue::kDepth + 8; page > 0; --page) wanted.push_back(page - 1);  // a read each
  const uint64_t dropped = base::statistics.cache_prefetches_dropped.get();
  EXPECT_EQ(prefetch(wanted), LoadQueue::kDepth);
  EXPECT_EQ(base::statistics.cache_prefetches_dropped.get(), dropped + 8);
  poll();
}

TEST_F(PrefetchTest, WhatWasNotUsedYetIsSparedOnceAndThenGoes) {
  fill(0, 64);
  for (uint64_t page = 32; page < 64; ++page) EXPECT_EQ(value(page), letter(page));
  a->release_all();
  // All are cooling now, and a batch has left.
  EXPECT_EQ(world->cache->evict(*a->workspace), 8u);
  prefetch({0, 1, 2, 3});
  poll();
  const uint64_t used_before = used(), unused_before = unused();
  EXPECT_EQ(world->cache->evict(*a->workspace), 8u);
  EXPECT_EQ(world->cache->evict(*a->workspace), 8u);
  for (uint64_t page = 0; page < 4; ++page) EXPECT_TRUE(world->resident(page)) << page;
  evict();
  for (uint64_t page = 0; page < 4; ++page) EXPECT_FALSE(world->resident(page)) << page;
  EXPECT_EQ(used(), used_before);
  EXPECT_EQ(unused(), unused_before + 4);
}

TEST_F(PrefetchTest, WhatWasUsedCounts) {
  fill(0, 4);
  prefetch({0, 1, 2, 3});
  poll();
  const uint64_t used_before = used(), unused_before = unused();
  for (uint64_t page = 0; page < 3; ++page) EXPECT_EQ(value(page), letter(page));
  evict();
  EXPECT_EQ(used(), used_before + 3);
  EXPECT_EQ(unused(), unused_before + 1);
}

TEST_F(PrefetchTest, WhatWasUsedBeforeItIsFreedCounts) {
  fill(0, 4);
  prefetch({0, 1, 2, 3});
  poll();
  const uint64_t used_before = used(), unused_before = unused();
  for (uint64_t page = 0; page < 3; ++page) EXPECT_EQ(value(page), letter(page));
  world->cache->discard(PageId{0}, 4, *a->workspace);
  EXPECT_EQ(used(), used_before + 3);
  EXPECT_EQ(unused(), unused_before + 1);
}

TEST_F(PrefetchTest, AReadThatFailsIsToldToWhoeverUsesThePage) {
  fill(0, 1);
  world->device->bad_offset_bytes = offset_of(static_cast<uint64_t>(letter(0)));
  EXPECT_EQ(prefetch({0}), 1u);
  poll();
  EXPECT_FALSE(world->resident(0));
  EXPECT_EQ(a->translate(world->address(0)), nullptr);
  EXPECT_EQ(a->error.number, EIO);
  world->device->bad_offset_bytes = ~uint64_t{0};
  EXPECT_EQ(value(0), letter(0));
}

TEST_F(PrefetchTest, AQueueThatIsLeftIsTakenOverWithWhatIsUnderWay) {
  fill(0, 1);
  prefetch({0});
  LoadQueue* const left = queue;
  leave();
  auto again = world->cache->open_loads();
  ASSERT_TRUE(again.has_value());
  queue = *again;
  EXPECT_EQ(queue, left);
  poll();
  EXPECT_EQ(value(0), letter(0));
}

TEST_F(PrefetchTest, WhatIsDiscardedWhileItComesReadsAsZeros) {
  fill(0, 1);
  prefetch({0});
  world->cache->discard(PageId{0}, 1, *b->workspace);
  EXPECT_EQ(value(0), 0);
}

// Threads prefetch, use and evict the same pages.
TEST_F(PrefetchTest, ManyThreadsFindTheirBytes) {
  constexpr uint64_t kPages = 200, kRounds = 3000;
  open_with({.frame_count = 64, .range_pages = 256});
  fill(0, kPages);
  std::atomic<uint32_t> wrong{0};
  const auto work = [&](TestThread& thread, LoadQueue& loads, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t page = random() % kPages;
      std::vector<PageId> ahead;
      for (uint64_t i = 1; i < 6; ++i) ahead.push_back(PageId{(page + i * 7) % kPages});
      world->cache->prefetch(ahead, loads);
      const char* bytes = thread.translate(world->address(page));
      if (bytes == nullptr || bytes[round % 4096] != letter(page)) ++wrong;
      if (round % 64 == 0) {
        thread.release_all();
        world->cache->evict(*thread.workspace);
      }
    }
    thread.release_all();
  };
  auto second = world->cache->open_loads();
  ASSERT_TRUE(second.has_value());
  std::thread other([&] { work(*b, **second, 7); });
  work(*a, *queue, 3);
  other.join();
  world->cache->leave_loads(**second);
  while ((*second)->under_way_count() > 0) world->cache->poll_loads();
  poll();
  EXPECT_EQ(wrong, 0u);
}

TEST_F(PrefetchTest, PagesThatAreWrittenBackStayAndLeaveWithoutAWrite) {
  for (uint64_t page = 0; page < 4; ++page) write(page, letter(page));
  a->release_all();
  const uint64_t writes = world->device->writes;
  auto failed = world->cache->write_back(PageId{0}, 4, *a->workspace);
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(*failed, 0u);
  EXPECT_GT(world->device->writes, writes);
  for (uint64_t page = 0; page < 4; ++page) EXPECT_TRUE(world->resident(page));
  const uint64_t written = world->device->writes;
  evict();
  EXPECT_EQ(world->device->writes, written);
  for (uint64_t page = 0; page < 4; ++page) EXPECT_EQ(value(page), letter(page));
}

}  // namespace
}  // namespace cache
