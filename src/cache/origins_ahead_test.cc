// Pages with an origin (origins.h) that are loaded ahead of use (load_queue.h).
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cache/testing/test_world.h"

namespace cache {
namespace {

constexpr uint64_t kPages = 256;

char letter(uint64_t page) { return static_cast<char>('a' + page % 26); }

// Each page is filled with one byte, also on a device of this object's own. read() does not use that device.
class DeviceOrigins final : public Origins {
 public:
  DeviceOrigins() {
    for (uint64_t page = 0; page < kPages; ++page) set(page, letter(page));
  }
  void set(uint64_t page, char value) {
    memset(const_cast<unsigned char*>(own.contents(page * kPageBytes)), value, kPageBytes);
  }

  Kind kind_of(PageId page) override { return kinds[index(page)].load(); }
  uint32_t count_together(PageId first, uint32_t most) override {
    return index(first) < end ? static_cast<uint32_t>(std::min<uint64_t>(most, end - index(first))) : 0;
  }
  base::Expected<uint64_t> read(PageId first, const iovec* segments, uint32_t count) override {
    reads += count;
    for (uint32_t i = 0; i < count; ++i)
      memcpy(segments[i].iov_base, own.contents((index(first) + i) * kPageBytes), kPageBytes);
    return count * kPageBytes;
  }
  storage::Device* device() override { return has_device ? &own : nullptr; }
  std::optional<uint64_t> offset_of(PageId first, uint32_t) override {
    if (index(first) == out_of_reach) return std::nullopt;
    return index(first) * kPageBytes;
  }

  static constexpr uint64_t kPageBytes = base::kOsPageBytes;
  TestDevice own{kPages * kPageBytes, 7};
  std::vector<std::atomic<Kind>> kinds = std::vector<std::atomic<Kind>>(kPages);
  uint64_t end = kPages;
  uint64_t out_of_reach = ~uint64_t{0};
  bool has_device = true;
  std::atomic<uint64_t> reads{0};  // pages
};

class OriginsAheadTest : public WorldTest {
 protected:
  void SetUp() override { open_with({.frame_count = 64, .range_pages = kPages}); }
  void open_with(TestParameters parameters) {
    leave();
    for (auto& kind : origins.kinds) kind = Origins::Kind::kConstant;
    parameters.origins = &origins;
    open(parameters);
    queue = world->cache->open_loads().value();
  }
  ~OriginsAheadTest() override {
    leave();
    world->cache->verify();
    b.reset();
    a.reset();
    world.reset();  // before the origins, since it has queues of their device
  }
  void leave() {
    if (queue != nullptr) world->cache->leave_loads(*queue);
    queue = nullptr;
  }
  void poll() {
    while (queue->under_way_count() > 0) world->cache->poll_loads();
  }
  // Returns how many of the pages need nothing more.
  uint64_t prefetch(uint64_t first, uint64_t count) {
    const uint64_t done = world->cache->prefetch_run(PageId{first}, count, *queue);
    poll();
    return done;
  }

  DeviceOrigins origins;
  LoadQueue* queue = nullptr;
};

TEST_F(OriginsAheadTest, ARunComesByOneReadAndIsThere) {
  EXPECT_EQ(prefetch(0, 40), 40u);
  EXPECT_EQ(origins.own.reads, 1u);
  for (uint64_t page = 0; page < 40; ++page) EXPECT_EQ(value(page), letter(page)) << page;
  EXPECT_EQ(origins.own.reads, 1u);
  EXPECT_EQ(origins.reads, 0u);
  evict();
  EXPECT_EQ(world->device->reads + world->device->writes, 0u);
  EXPECT_EQ(value(7), letter(7));
  EXPECT_EQ(origins.reads, 1u);
}

TEST_F(OriginsAheadTest, ScatteredPagesAreUnderWayTogether) {
  const PageId pages[] = {PageId{3}, PageId{90}, PageId{17}, PageId{200}};
  EXPECT_EQ(world->cache->prefetch(pages, *queue), 4u);
  EXPECT_EQ(queue->under_way_count(), 4u);
  poll();
  EXPECT_EQ(origins.own.reads, 4u);
  for (const PageId page : pages) EXPECT_EQ(value(index(page)), letter(index(page)));
  EXPECT_EQ(origins.reads, 0u);
}

TEST_F(OriginsAheadTest, WhatWasChangedComesFromStorage) {
  write(5, 'X');
  evict();
  EXPECT_EQ(prefetch(0, 10), 10u);
  for (uint64_t page = 0; page < 10; ++page) EXPECT_EQ(value(page), page == 5 ? 'X' : letter(page)) << page;
  EXPECT_EQ(world->device->reads, 1u);
  EXPECT_EQ(origins.reads, 1u);  // when it was stored to
}

TEST_F(OriginsAheadTest, ARunGoesOnBehindWhatComesFromNowhere) {
  for (uint64_t page = 0; page < 20; ++page) origins.kinds[page] = Origins::Kind::kZeros;
  EXPECT_EQ(prefetch(0, 24), 24u);
  EXPECT_EQ(world->cache->resident_count(), 4u);
  for (uint64_t page = 18; page < 24; ++page) EXPECT_EQ(value(page), page < 20 ? 0 : letter(page)) << page;
}

TEST_F(OriginsAheadTest, WhatMayChangeIsKept) {
  origins.kinds[5] = Origins::Kind::kChanging;
  EXPECT_EQ(prefetch(5, 1), 1u);
  origins.set(5, 'N');
  EXPECT_EQ(value(5), letter(5));
  evict();
  EXPECT_EQ(value(5), letter(5));
}

TEST_F(OriginsAheadTest, NothingComesThatIsGoneOrIsNotToComeByItself) {
  origins.kinds[3] = Origins::Kind::kGone;
  origins.kinds[4] = Origins::Kind::kZeros;
  origins.end = 10;
  origins.out_of_reach = 6;
  for (const uint64_t page : {3, 4, 6, 10, 11}) prefetch(page, 1);
  EXPECT_EQ(origins.own.reads, 0u);
  EXPECT_EQ(world->cache->resident_count(), 0u);
  // A run ends before a page that is not to be loaded.
  prefetch(8, 8);
  EXPECT_EQ(world->cache->resident_count(), 2u);
  EXPECT_EQ(value(10), letter(10));
}

TEST_F(OriginsAheadTest, OneWhoseReadFailsIsReadAgain) {
  origins.own.bad_offset_bytes = 5 * page_bytes;
  prefetch(5, 1);
  EXPECT_EQ(world->cache->resident_count(), 0u);
  world->cache->verify();
  EXPECT_EQ(value(5), letter(5));
  EXPECT_EQ(origins.reads, 1u);
}

TEST_F(OriginsAheadTest, OfAShortReadWholePagesCount) {
  origins.own.short_reads_per_million = 1'000'000;
  for (uint64_t first = 0; first < 256; first += 16) {
    prefetch(first, 16);
    world->cache->verify();
    for (uint64_t page = first; page < first + 16; ++page) ASSERT_EQ(value(page), letter(page)) << page;
    evict();
  }
  EXPECT_GT(origins.own.failed_operations, 0u);
}

TEST_F(OriginsAheadTest, TasksWaitForNoRead) {
  uint32_t ended = 0;
  Stream stream;
  for (const uint64_t page : {9, 20, 31}) {
    auto begun = world->cache->begin_load(
        PageId{page}, *a->workspace, stream, *queue, [](void* count) { ++*static_cast<uint32_t*>(count); },
        &ended);
    ASSERT_TRUE(begun.has_value());
    EXPECT_EQ(*begun, Partition::Begun::kUnderWay);
  }
  EXPECT_EQ(queue->under_way_count(), 3u);
  while (ended < 3) world->cache->poll_loads();
  for (const uint64_t page : {9, 20, 31}) EXPECT_EQ(value(page), letter(page));
  EXPECT_EQ(origins.reads, 0u);
  EXPECT_EQ(origins.own.reads, 3u);
}

// The origins get their device after the queue was opened.
TEST_F(OriginsAheadTest, AQueueKnowsTheDeviceThatItWasOpenedWith) {
  origins.has_device = false;
  open_with({.frame_count = 64, .range_pages = kPages});
  EXPECT_TRUE(world->cache->knows_origins(*queue));
  origins.has_device = true;
  EXPECT_FALSE(world->cache->knows_origins(*queue));
  prefetch(0, 8);
  EXPECT_EQ(world->cache->resident_count(), 0u);
  world->cache->leave_loads(*queue);
  queue = world->cache->open_loads().value();
  EXPECT_TRUE(world->cache->knows_origins(*queue));
  prefetch(0, 8);
  EXPECT_EQ(world->cache->resident_count(), 8u);
  EXPECT_EQ(value(3), letter(3));
}

// Whoever gives pages up waits for the loads under way, and no such page appears afterwards.
TEST_F(OriginsAheadTest, PagesThatAreGivenUpWhileTheyAreUnderWay) {
  world->cache->prefetch_run(PageId{0}, 16, *queue);
  for (uint64_t page = 0; page < 16; ++page) origins.kinds[page] = Origins::Kind::kGone;
  while (!world->cache->forget(PageId{0}, 16, *b->workspace).nothing()) {
  }
  EXPECT_EQ(queue->under_way_count(), 0u);
  EXPECT_EQ(world->cache->resident_count(), 0u);
  EXPECT_EQ(value(3), '!');
  EXPECT_EQ(a->error.number, ESTALE);
}

// Threads load ahead, read and store, pages are given up and come back, and reads fail: nobody sees wrong content.
TEST_F(OriginsAheadTest, StressWithFailingReads) {
  open_with({.frame_count = 48, .range_pages = kPages});
  origins.own.read_errors_per_million = 100'000;
  origins.own.short_reads_per_million = 100'000;
  constexpr uint64_t kStored = 64,
                     kGivenUp = 16;  // pages below are stored to, those from the end are given up
  std::atomic<bool> stop{false};
  std::thread ahead([&] {
    LoadQueue* const own = world->cache->open_loads().value();
    Random random(3);
    while (!stop) {
      world->cache->prefetch_run(PageId{random.below(kPages - 16)}, 1 + random.below(16), *own);
      const PageId pages[] = {PageId{random.below(kPages)}, PageId{random.below(kPages)}};
      world->cache->prefetch(pages, *own);
      if (random.one_in(4)) world->cache->poll_loads();
    }
    while (own->under_way_count() > 0) world->cache->poll_loads();
    world->cache->leave_loads(*own);
  });
  std::thread giver([&] {
    TestThread other(*world, 2);
    while (!stop) {
      for (uint64_t page = kPages - kGivenUp; page < kPages; ++page)
        origins.kinds[page] = Origins::Kind::kGone;
      while (!world->cache->forget(PageId{kPages - kGivenUp}, kGivenUp, *other.workspace).nothing())
        std::this_thread::yield();
      for (uint64_t page = kPages - kGivenUp; page < kPages; ++page)
        origins.kinds[page] = Origins::Kind::kConstant;
      std::this_thread::yield();
    }
  });
  char stored[kStored];
  for (uint64_t page = 0; page < kStored; ++page) stored[page] = letter(page);
  Random random(4);
  for (uint32_t step = 0; step < 6000 && !HasFailure(); ++step) {
    const uint64_t page = random.below(kPages - kGivenUp);
    if (page < kStored && random.one_in(3)) {
      stored[page] = static_cast<char>('A' + random.below(26));
      write(page, stored[page]);
    }
    EXPECT_EQ(value(page), page < kStored ? stored[page] : letter(page)) << page;
    if (random.one_in(32)) world->cache->evict(*a->workspace);
  }
  stop = true;
  ahead.join();
  giver.join();
}

}  // namespace
}  // namespace cache
