// The budget of a cache is changed while the cache is used.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cache/testing/test_world.h"

namespace cache {
namespace {

constexpr uint64_t kMib = 1 << 20;

class BudgetTest : public WorldTest {
 protected:
  // Does background work until nothing is left to do.
  void settle() {
    for (uint32_t i = 0; i < 10'000 && world->cache->background_step(*a->workspace) > 0; ++i) {
    }
  }
  uint64_t used() const { return world->cache->budget().used_bytes(); }
  std::string refusal(uint64_t bytes, uint64_t held = 0, uint64_t pinned = 0) {
    auto set = world->cache->set_memory(bytes, held, pinned);
    return set ? "" : std::string(set.error().message);
  }
};

TEST_F(BudgetTest, WhatExceedsASmallerOneLeaves) {
  for (const uint32_t partitions : {1u, 4u}) {
    open({.range_pages = 4096, .partition_count = partitions, .memory_bytes = 8 * kMib});
    for (uint64_t page = 0; page < 4096; ++page) write(page, static_cast<char>(page % 100 + 1));
    a->release_all();
    const uint32_t frames = world->cache->frame_count();
    for (const uint64_t mib : {4, 2, 8, 3}) {
      ASSERT_EQ(refusal(mib * kMib), "");
      settle();
      world->cache->verify();
      EXPECT_LE(used(), mib * kMib);
      EXPECT_NEAR(world->cache->frame_count(), frames * static_cast<double>(mib) / 8, 8);
      for (uint64_t page = 0; page < 4096; ++page)
        ASSERT_EQ(value(page), static_cast<char>(page % 100 + 1)) << page;
      settle();
      EXPECT_LE(used(), mib * kMib);
      EXPECT_GE(used(), mib * kMib * 8 / 10);
    }
  }
}

TEST_F(BudgetTest, ALargerOneIsUsed) {
  for (const auto policy : {base::PolicyKind::kClock, base::PolicyKind::kS3fifo}) {
    open({.range_pages = 4096, .policy = policy, .memory_bytes = 4 * kMib, .most_memory_bytes = 24 * kMib});
    for (uint64_t page = 0; page < 4096; ++page) write(page, 'x');
    EXPECT_LE(used(), 4 * kMib);
    ASSERT_EQ(refusal(24 * kMib), "");
    for (uint64_t page = 0; page < 4096; ++page) ASSERT_EQ(value(page), 'x');
    const uint64_t misses = base::statistics.cache_misses.get();
    for (uint64_t page = 0; page < 4096; ++page) ASSERT_EQ(value(page), 'x');
    EXPECT_EQ(base::statistics.cache_misses.get(), misses) << "all is in memory";
    EXPECT_GT(used(), 16 * kMib);
    EXPECT_LE(used(), 24 * kMib);
    ASSERT_EQ(refusal(4 * kMib), "");
    settle();
    EXPECT_LE(used(), 4 * kMib);
    for (uint64_t page = 0; page < 4096; ++page) ASSERT_EQ(value(page), 'x');
    world->cache->verify();
  }
}

TEST_F(BudgetTest, RoomThatIsNotUsedTakesNoMemory) {
  open({.range_pages = 64, .memory_bytes = 4 * kMib});
  const uint64_t without = used();
  open({.range_pages = 64, .memory_bytes = 4 * kMib, .most_memory_bytes = 1024 * kMib});
  EXPECT_LE(used(), without + base::kOsPageBytes);
}

TEST_F(BudgetTest, WhatCannotBeSaysWhatCan) {
  open({.range_pages = 1024, .memory_bytes = 4 * kMib, .most_memory_bytes = 8 * kMib});
  for (uint64_t page = 0; page < 1024; ++page) write(page, 'x');
  const uint32_t frames = world->cache->frame_count();
  EXPECT_NE(refusal(9 * kMib).find("can be raised to 8"), std::string::npos) << refusal(9 * kMib);
  EXPECT_NE(refusal(20'000).find("a budget of 20000 is too small; give at least "), std::string::npos)
      << refusal(20'000);
  EXPECT_NE(refusal(2 * kMib, 400).find("too small"), std::string::npos) << "threads hold more";
  EXPECT_NE(refusal(2 * kMib, 0, 400).find("too small"), std::string::npos) << "more is pinned";
  EXPECT_EQ(world->cache->frame_count(), frames);
  EXPECT_EQ(world->cache->budget().limit_bytes(), 4 * kMib);
  ASSERT_EQ(refusal(world->cache->least_memory_bytes(4)), "");
  settle();
  for (uint64_t page = 0; page < 1024; ++page) ASSERT_EQ(value(page), 'x');
}

// Rounded to the nearest megabyte, the bound would be more than there are addresses for.
TEST_F(BudgetTest, WhatItCanBeRaisedToIsTold) {
  open({.range_pages = 64, .memory_bytes = 4 * kMib, .most_memory_bytes = 14'000 << 10});
  EXPECT_NE(refusal(14 * kMib).find("can be raised to 13M"), std::string::npos) << refusal(14 * kMib);
  EXPECT_EQ(refusal(13 * kMib), "");
}

// There is no background thread: threads that miss give memory back.
TEST_F(BudgetTest, WithoutBackgroundItIsKeptByThoseWhoMiss) {
  open({.range_pages = 4096, .memory_bytes = 8 * kMib});
  for (uint64_t page = 0; page < 4096; ++page) write(page, 'x');
  ASSERT_EQ(refusal(3 * kMib), "");
  for (uint64_t page = 0; page < 4096; ++page) ASSERT_EQ(value(page), 'x');
  for (uint64_t page = 0; page < 4096; ++page) ASSERT_EQ(value(page), 'x');
  EXPECT_LE(used(), 3 * kMib);
  world->cache->verify();
}

// What stays pinned may all be in one partition, and more than that would have alone.
TEST_F(BudgetTest, BesidePinnedPagesThereIsAFrameForOthersOfTheirPartition) {
  constexpr uint64_t kRegionPages = Table::kRegionOsPages, kRegions = 16, kPinned = 400;
  open({.range_pages = kRegions * kRegionPages, .partition_count = 2, .memory_bytes = 8 * kMib});
  const auto is_beside_pinned = [&](uint64_t region) {
    return world->cache->partition_number(PageId{region * kRegionPages}) ==
           world->cache->partition_number(PageId{0});
  };
  for (uint64_t page = 0; page < kPinned; ++page) ASSERT_TRUE(world->cache->pin(PageId{page}, *a->workspace));
  ASSERT_EQ(refusal(world->cache->least_memory_bytes(0, kPinned), 0, kPinned), "");
  settle();
  // The other partition takes all that is left.
  for (uint64_t region = 1; region < kRegions; ++region)
    for (uint64_t page = 0; page < kRegionPages && !is_beside_pinned(region); ++page)
      write(region * kRegionPages + page, 'x');
  a->release_all();
  uint64_t checked = 0;
  for (uint64_t region = 1; region < kRegions; ++region) {
    if (!is_beside_pinned(region)) continue;
    ASSERT_TRUE(a->write(world->address(region * kRegionPages), "y", 1)) << a->error.message;
    a->release_all();
    ++checked;
  }
  EXPECT_GT(checked, 1u);
  world->cache->verify();
  for (uint64_t page = 0; page < kPinned; ++page) world->cache->unpin(PageId{page});
}

TEST_F(BudgetTest, ItGrowsAfterAFork) {
  open({.range_pages = 4096, .memory_bytes = 4 * kMib, .most_memory_bytes = 24 * kMib});
  for (uint64_t page = 0; page < 2048; ++page) write(page, 'p');
  a->release_all();
  const auto no_pins = PinsOverFork{[](PageId) { return false; }, [](PageId) { return 0u; }};
  EXPECT_TRUE(world->cache->before_fork(no_pins));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    if (!world->cache->after_fork_in_child()) _exit(2);
    auto workspace = world->cache->open_workspace();
    if (!workspace) _exit(3);
    a->workspace = *workspace;
    if (!world->cache->set_memory(24 * kMib, 0)) _exit(4);
    for (uint64_t page = 1024; page < 4096; ++page) write(page, 'c');
    for (uint64_t page = 0; page < 4096; ++page)
      if (value(page) != (page < 1024 ? 'p' : 'c')) _exit(5);
    world->cache->verify();
    _exit(testing::Test::HasFailure() ? 6 : 0);
  }
  world->cache->after_fork_in_parent();
  ASSERT_EQ(refusal(24 * kMib), "");
  for (uint64_t page = 1024; page < 4096; ++page) write(page, 'q');
  for (uint64_t page = 0; page < 4096; ++page) ASSERT_EQ(value(page), page < 1024 ? 'p' : 'q') << page;
  world->cache->verify();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  // And again when the child has ended.
  while (world->cache->share_step(*a->workspace)) {
  }
  for (uint64_t page = 0; page < 4096; ++page) ASSERT_EQ(value(page), page < 1024 ? 'p' : 'q') << page;
  world->cache->verify();
}

// The background thread is not told again and again that there is more to do.
TEST_F(BudgetTest, WhatCannotBeGivenBackAfterAForkIsKept) {
  open({.range_pages = 2048, .memory_bytes = 4 * kMib});
  for (uint64_t page = 0; page < 2048; ++page) write(page, 'x');
  a->release_all();
  EXPECT_TRUE(world->cache->before_fork({[](PageId) { return false; }, [](PageId) { return 0u; }}));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  world->cache->after_fork_in_parent();
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  rlimit files = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = files.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string refused = refusal(2 * kMib);
  uint32_t left = 1;
  for (uint32_t i = 0; i < 10'000 && left > 0; ++i) left = world->cache->background_step(*a->workspace);
  const uint64_t kept = used();
  uint64_t wrong = 0;
  for (uint64_t page = 0; page < 2048; ++page) wrong += value(page) != 'x';
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(refused, "");
  EXPECT_EQ(left, 0u);
  EXPECT_GT(kept, 2 * kMib) << "there is no memory file";
  EXPECT_EQ(wrong, 0u);
  a->release_all();
  settle();
  EXPECT_LE(used(), 2 * kMib);
  world->cache->verify();
}

// Threads check everything that they read, while the budget goes up and down.
struct Case {
  const char* name;
  size_t page_bytes;
  uint32_t partitions;
  base::PolicyKind policy;
  uint64_t chaos_seed;
};
class BudgetThreads : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, BudgetThreads,
                         testing::Values(Case{"plain", 4096, 1, base::PolicyKind::kClock, 0},
                                         Case{"partitions", 4096, 4, base::PolicyKind::kNrlfu, 0},
                                         Case{"chaos", 8192, 2, base::PolicyKind::kS3fifo, 7}),
                         [](const auto& info) { return info.param.name; });

TEST_P(BudgetThreads, EveryByteIsWhatWasWrittenLast) {
  const Case& c = GetParam();
  constexpr uint32_t kWriters = 3;
  constexpr uint64_t kPages = 400;
  TestWorld world({.page_bytes = c.page_bytes,
                   .range_pages = kWriters * kPages,
                   .partition_count = c.partitions,
                   .read_ahead_pages = 4,
                   .chaos_seed = c.chaos_seed,
                   .policy = c.policy,
                   .memory_bytes = 2 * kMib * c.page_bytes / 4096,
                   .most_memory_bytes = 8 * kMib * c.page_bytes / 4096});
  ASSERT_TRUE(world.cache->prepare_cleaning());
  std::atomic<bool> ends = false;
  std::vector<std::jthread> threads;
  for (uint32_t t = 0; t < kWriters; ++t) {
    threads.emplace_back([&, t] {
      TestThread self(world, t);
      std::vector<uint64_t> model(kPages);
      Random random(t + 1);
      while (!ends) {
        const uint64_t page = random.below(kPages);
        const uint64_t address = world.address(t * kPages + page, 8 * random.below(c.page_bytes / 8 - 1));
        uint64_t value = random.below(1 << 30) + 1;
        uint64_t found = 0;
        const uint64_t first = world.address(t * kPages + page);
        ASSERT_TRUE(self.read(first, &found, sizeof found));
        ASSERT_EQ(found, model[page]);
        ASSERT_TRUE(self.write(first, &value, sizeof value));
        model[page] = value;
        if (address != first) ASSERT_TRUE(self.write(address, &value, sizeof value));
        if (random.one_in(64)) self.release_all();
      }
      for (uint64_t page = 0; page < kPages; ++page) {
        uint64_t found = 0;
        ASSERT_TRUE(self.read(world.address(t * kPages + page), &found, sizeof found));
        ASSERT_EQ(found, model[page]);
      }
    });
  }
  threads.emplace_back([&] {
    TestThread self(world, kWriters);
    while (!ends) {
      world.cache->background_step(*self.workspace);
      world.cache->idle_step(*self.workspace);
    }
  });
  Random random(99);
  const uint64_t unit = c.page_bytes / 4096 * kMib;
  uint32_t changes = 0;
  for (uint32_t i = 0; i < 150; ++i) {
    changes += world.cache->set_memory(unit / 2 + random.below(15) * unit / 2, 4).has_value();
    usleep(3000);
    if (i % 16 == 0) world.cache->verify();
  }
  EXPECT_GT(changes, 50u);
  ASSERT_TRUE(world.cache->set_memory(2 * unit, 4));
  ends = true;
  threads.clear();
  TestThread self(world, kWriters);
  while (world.cache->budget().exceeded_by(0) && world.cache->evict(*self.workspace) > 0) {
  }
  EXPECT_LE(world.cache->budget().used_bytes(), 2 * unit);
  world.cache->verify();
}

}  // namespace
}  // namespace cache
