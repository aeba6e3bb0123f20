// The cache at its limits: parameters, storage that is full or broken, the memory budget.
#include "cache/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <thread>

#include "cache/testing/test_world.h"
#include "sys/test_switches.h"

namespace cache {
namespace {

constexpr uint64_t kOs = base::kOsPageBytes;

class CacheTest : public WorldTest {
 protected:
  // Memory that the OS has given for frames, whatever the budget has counted.
  uint64_t frame_memory_bytes() {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < world->cache->partition_count(); ++i) {
      struct stat status = {};
      fstat(world->cache->pool(i).descriptor, &status);
      sum += static_cast<uint64_t>(status.st_blocks) * 512;
    }
    return sum;
  }
};

TEST_F(CacheTest, RefusesParametersThatCannotWork) {
  const auto message = [&](CacheParameters p) {
    p.range_begin = kRangeBegin;
    p.range_bytes = world->range_bytes;
    p.table_entries = world->entries;
    auto created = Cache::create(p, *world->device, world->holders);
    if (!created) EXPECT_EQ(created.error().number, EINVAL);
    return created ? std::string() : std::string(created.error().message);
  };
  EXPECT_NE(message({.page_bytes = 5000, .memory_bytes = 1 << 20}).find("page size 5000"), std::string::npos);
  EXPECT_NE(message({.page_bytes = 2048, .memory_bytes = 1 << 20}).find("page size 2K"), std::string::npos);
  EXPECT_NE(message({.page_bytes = 4 << 20, .memory_bytes = 1 << 30}).find("page size 4M"),
            std::string::npos);
  EXPECT_NE(message({.page_bytes = 64 << 10, .memory_bytes = 400 << 10}).find("--memory"), std::string::npos);
  // The budget that the message asks for is enough.
  for (const size_t kib : {4, 64, 1024, 2048}) {
    const size_t bytes = kib << 10;
    const std::string refused = message({.page_bytes = bytes, .memory_bytes = 2 * bytes});
    const size_t at = refused.find("at least ") + 9;
    const auto told = base::parse_size(refused.substr(at, refused.find(' ', at) - at));
    ASSERT_TRUE(told.has_value()) << refused;
    EXPECT_EQ(message({.page_bytes = bytes, .memory_bytes = *told}), "") << refused;
    EXPECT_NE(message({.page_bytes = bytes, .memory_bytes = *told - 1024}), "") << refused;
  }
}

#if !__has_feature(thread_sanitizer)  // it leaves no room for the regions of so large a range
// There is no room for the page directory; what is mapped before it takes four terabytes of addresses each time.
TEST_F(CacheTest, WhatCannotBeOpenedLeavesNothingMapped) {
  CacheParameters p = {.range_begin = kRangeBegin,
                       .range_bytes = uint64_t{1} << 61,
                       .table_entries = world->entries,
                       .memory_bytes = 1 << 20};
  for (int i = 0; i < 64; ++i) {
    auto created = Cache::create(p, *world->device, world->holders);
    ASSERT_FALSE(created);
    ASSERT_NE(std::string(created.error().message).find("the page directory"), std::string::npos)
        << i << ": " << created.error().message;
  }
}
#endif

TEST_F(CacheTest, FullStorageIsReportedLosesNothingAndEndsWhenRoomIsMade) {
  open({.frame_count = 8, .range_pages = 64, .storage_pages = 16});
  uint64_t written = 0;
  while (written < 64 && a->write(world->address(written, 9), "x", 1)) ++written;
  EXPECT_EQ(written, 8 + 16u);
  EXPECT_EQ(a->error.number, ENOSPC);
  EXPECT_NE(std::string(a->error.message).find("storage is full"), std::string::npos) << a->error.message;
  world->cache->verify();
  for (uint64_t page = 0; page < written; ++page) {
    char byte = 0;
    if (a->read(world->address(page, 9), &byte, 1)) EXPECT_EQ(byte, 'x') << page;
  }
  a->release_all();
  world->cache->discard(PageId{3}, 4, *a->workspace);
  for (uint64_t page = 0; page < written; ++page) {
    char byte = 0;
    ASSERT_TRUE(a->read(world->address(page, 9), &byte, 1)) << a->error.message;
    EXPECT_EQ(byte, page >= 3 && page < 7 ? 0 : 'x') << page;
  }
}

// As long as one page in memory can leave without a write, full storage is no reason to give up.
TEST_F(CacheTest, FullStorageIsNoErrorWhileAnythingElseCanLeave) {
  open({.frame_count = 256, .range_pages = 1024, .storage_pages = 64});
  for (uint64_t page = 0; page < 64; ++page) write(page, 'x');
  evict();
  // All but a few frames hold pages for which storage has no place.
  for (uint64_t page = 100; page < 100 + 250; ++page) write(page, 'y');
  for (uint64_t page = 0; page < 64; ++page) ASSERT_EQ(value(page), 'x') << page << ": " << a->error.message;
  for (uint64_t page = 100; page < 100 + 250; ++page) ASSERT_EQ(value(page), 'y') << page;
}

// Evictions have kept failing while one page was held; now that page can leave.
TEST_F(CacheTest, StorageThatFailedForLongIsNoErrorWhileAnythingElseCanLeave) {
  // The number decides where the clock's hand ends up, so that the page is not always among the first that it reaches.
  for (const int failures : {100, 103, 106}) {
    open({.frame_count = 64, .range_pages = 128});
    for (uint64_t page = 0; page < 64; ++page) write(page, 'x');
    evict();
    ASSERT_NE(b->translate(world->address(5)), nullptr);
    for (uint64_t page = 0; page < 64; ++page)
      if (page != 5) write(page, 'y');
    a->release_all();
    world->device->write_errors_per_million = 1'000'000;
    for (int i = 0; i < failures; ++i) ASSERT_EQ(world->cache->evict(*a->workspace), 0u);
    b->release_all();
    EXPECT_NE(a->translate(world->address(100)), nullptr) << a->error.message;
    a->release_all();
    world->device->write_errors_per_million = 0;
    for (uint64_t page = 0; page < 64; ++page) EXPECT_EQ(value(page), page == 5 ? 'x' : 'y') << page;
  }
}

TEST_F(CacheTest, BrokenStorageIsReportedAndLosesNothing) {
  for (bool is_short : {false, true}) {
    open({.frame_count = 16});
    auto& chance =
        is_short ? world->device->short_writes_per_million : world->device->write_errors_per_million;
    for (uint64_t page = 0; page < 32; ++page) write(page, static_cast<char>(page + 1));
    chance = 1'000'000;
    uint64_t next = 32;
    const std::string bytes(kOs, 'z');
    while (next < 64 && a->write(world->address(next), bytes.data(), kOs)) ++next;
    EXPECT_LT(next, 64u);
    EXPECT_EQ(a->error.number, is_short ? ENOSPC : EIO) << a->error.message;
    EXPECT_NE(std::string(a->error.message).find("test device"), std::string::npos) << a->error.message;
    chance = 0;
    for (uint64_t page = 0; page < 32; ++page) EXPECT_EQ(value(page), static_cast<char>(page + 1)) << page;
    for (uint64_t page = 32; page < next; ++page) EXPECT_EQ(value(page), 'z') << page;
  }
}

TEST_F(CacheTest, EveryFramePinnedIsWaitedFor) {
  for (uint64_t page = 0; page < 8; ++page) ASSERT_TRUE(world->cache->pin(PageId{page}, *a->workspace));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    world->cache->unpin(PageId{3});
  });
  EXPECT_EQ(value(20), 0) << a->error.message;
  other.join();
  for (uint64_t page = 0; page < 8; ++page)
    if (page != 3) world->cache->unpin(PageId{page});
}

TEST_F(CacheTest, AFewHeldFramesDoNotSlowEviction) {
  for (uint64_t page = 0; page < 6; ++page) {
    write(page, 'x', page < 4 ? a.get() : b.get());
    (page < 4 ? a.get() : b.get())->translate(world->address(page), page % 4);
  }
  TestThread c(*world, 2);
  const uint64_t before = sys::voluntary_switches();
  for (uint64_t i = 0; i < 400; ++i) ASSERT_NE(c.translate(world->address(10 + i % 50)), nullptr);
  EXPECT_LT(sys::voluntary_switches() - before, 100u) << "sleeps of 400 misses beside 6 of 8 frames held";
}

// One page in each MiB: every second page needs an OS page of the table too.
TEST_F(CacheTest, SparsePagesStayWithinTheBudget) {
  for (uint32_t partitions : {1u, 4u}) {
    open({.range_pages = 64 << 10,
          .storage_pages = 1024,
          .partition_count = partitions,
          .memory_bytes = 1 << 20});
    const Budget& budget = world->cache->budget();
    for (int round = 0; round < 3; ++round) {
      for (uint64_t page = 0; page < 64 << 10; page += 256) {
        ASSERT_TRUE(a->write(world->address(page, page % kOs), "x", 1)) << a->error.message;
        ASSERT_LE(budget.used_bytes(), budget.limit_bytes() + 4 * kOs) << page;
        ASSERT_LE(frame_memory_bytes(), budget.used_bytes()) << page;
      }
      world->cache->verify();
    }
    for (uint64_t page = 0; page < 64 << 10; page += 256) {
      char byte = 0;
      ASSERT_TRUE(a->read(world->address(page, page % kOs), &byte, 1)) << a->error.message;
      ASSERT_EQ(byte, 'x');
    }
  }
}

// Pages that are read ahead count, too, before they take memory.
TEST_F(CacheTest, ReadAheadStaysWithinTheBudget) {
  open({.page_bytes = 64 << 10, .range_pages = 256, .read_ahead_pages = 15, .memory_bytes = 4 << 20});
  const Budget& budget = world->cache->budget();
  uint64_t most = 0;
  world->device->after_transfer = [&](const Io&) { most = std::max(most, frame_memory_bytes()); };
  for (uint64_t page = 0; page < 256; ++page) write(page, static_cast<char>(page));
  for (int round = 0; round < 3; ++round) {
    evict();
    for (uint64_t page = 0; page < 256; ++page) ASSERT_EQ(value(page), static_cast<char>(page));
  }
  world->device->after_transfer = nullptr;
  EXPECT_LE(most, budget.limit_bytes());
}

// The pages of one partition may use up the budget with their tables; another one must still get frames.
TEST_F(CacheTest, OnePartitionDoesNotStarveAnother) {
  open({.range_pages = 512 * 512, .storage_pages = 2048, .partition_count = 2, .memory_bytes = 1 << 20});
  // Regions by partition, which is known by the pool that contains a page's frame.
  const auto of_first = [&](uint64_t region) {
    const char* frame = a->translate(world->address(region * 512));
    const Cache::Pool pool = world->cache->pool(0);
    return frame >= pool.begin && frame < pool.begin + pool.bytes;
  };
  std::vector<uint64_t> first;
  std::vector<uint64_t> second;
  for (uint64_t region = 0; region < 512; ++region) (of_first(region) ? first : second).push_back(region);
  ASSERT_GT(first.size(), 150u);
  ASSERT_GT(second.size(), 150u);
  a->release_all();
  world->cache->discard(PageId{0}, 512 * 512, *a->workspace);
  // Fill one of them alone, then use the other.
  for (uint64_t region : first) ASSERT_TRUE(a->write(world->address(region * 512), "x", 1));
  const uint64_t before = sys::voluntary_switches();
  for (uint64_t region : second) {
    ASSERT_TRUE(a->write(world->address(region * 512), "y", 1)) << a->error.message;
    ASSERT_LE(world->cache->budget().used_bytes(),
              world->cache->budget().limit_bytes() + (Table::kEmptyRegionLimit + 8) * kOs);
  }
  EXPECT_LT(sys::voluntary_switches() - before, 1000u) << "sleeps of " << second.size() << " misses";
  uint64_t resident = 0;
  for (uint64_t region : second) resident += world->resident(region * 512);
  EXPECT_GE(resident, world->cache->pool(1).bytes / kOs / 3) << "the idle partition kept the memory";
  for (uint64_t region : first) {
    char byte = 0;
    ASSERT_TRUE(a->read(world->address(region * 512), &byte, 1));
    ASSERT_EQ(byte, 'x');
  }
}

// Whatever else takes up the budget, a few large pages remain for code that needs several at once.
TEST_F(CacheTest, AFewFramesRemainWhateverElseTakesTheBudget) {
  open({.page_bytes = 64 << 10, .range_pages = 256, .storage_pages = 256, .memory_bytes = 1 << 20});
  ASSERT_EQ(world->cache->frame_count(), 15u);
  world->cache->charge(1 << 20);
  for (uint64_t page = 0; page < 14; ++page)
    ASSERT_TRUE(world->cache->pin(PageId{page}, *a->workspace)) << page;
  for (uint64_t page = 20; page < 40; ++page) write(page, 'x');
  for (uint64_t page = 0; page < 14; ++page) world->cache->unpin(PageId{page});
  for (uint64_t page = 20; page < 40; ++page) EXPECT_EQ(value(page), 'x') << page;
}

TEST_F(CacheTest, FramesWithinTheBudgetAreFewerWithAllElseThatIsCharged) {
  open({.range_pages = 1024, .memory_bytes = 4 << 20});
  Cache& cache = *world->cache;
  const uint32_t all = cache.frame_count(), before = cache.frames_within_budget();
  EXPECT_LE(before, all);
  EXPECT_GE(before, all - 16);
  for (uint64_t page = 0; page < 100; ++page) write(page, 'x');
  cache.charge(1 << 20);
  EXPECT_NEAR(cache.frames_within_budget(), before - (1 << 20) / kOs, 16);
  cache.charge(8 << 20);
  EXPECT_EQ(cache.frames_within_budget(), (all + 1) / 2);
  cache.uncharge(9 << 20);
  EXPECT_GE(cache.frames_within_budget(), all - 16);
}

// Background work ends when there is no reason for it any more.
TEST_F(CacheTest, BackgroundWorkStopsOnceTheBudgetIsKept) {
  open({.range_pages = 64 << 10, .storage_pages = 1024, .memory_bytes = 1 << 20});
  for (uint64_t page = 0; page < 64 << 10; page += 256) ASSERT_TRUE(a->write(world->address(page), "x", 1));
  a->release_all();
  uint32_t steps = 0;
  while (world->cache->wants_background() && steps < 1000) {
    world->cache->background_step(*a->workspace);
    ++steps;
  }
  EXPECT_LT(steps, 1000u);
  EXPECT_LE(world->cache->budget().used_bytes(), world->cache->budget().limit_bytes());
  EXPECT_GT(world->cache->resident_count(), 50u) << "the background emptied the cache";
}

TEST_F(CacheTest, TheBackgroundSleepsWhenNothingCanLeave) {
  open({.frame_count = 1024, .range_pages = 2048});
  for (uint64_t page = 0; page < 1024; ++page) ASSERT_TRUE(world->cache->pin(PageId{page}, *a->workspace));
  EXPECT_TRUE(world->cache->wants_background());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(world->cache->background_step(*a->workspace), 0u);
  world->cache->wait_for_background(20'000'000);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(10));
  for (uint64_t page = 0; page < 1024; ++page) world->cache->unpin(PageId{page});
}

TEST_F(CacheTest, BackgroundWorkKeepsFramesFreeForMisses) {
  open({.frame_count = 2048, .range_pages = 4096});
  for (uint64_t page = 0; page < 2048; ++page) write(page, 'x');
  a->release_all();
  EXPECT_TRUE(world->cache->wants_background());
  while (world->cache->wants_background()) ASSERT_GT(world->cache->background_step(*a->workspace), 0u);
  EXPECT_GE(world->cache->resident_count(), 1024u);
  EXPECT_LT(world->cache->resident_count(), 2048u);
}

}  // namespace
}  // namespace cache
