// Loads that are begun by one thread and finished by another (load_queue.h).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "cache/testing/test_world.h"
#include "storage/opening/open.h"

namespace cache {
namespace {

using Begun = Partition::Begun;

class LoadQueueTest : public WorldTest {
 protected:
  void SetUp() override { open_with({}); }
  void open_with(TestParameters parameters) {
    close_queue();
    open(parameters);
    auto opened = world->cache->open_loads();
    ASSERT_TRUE(opened.has_value());
    queue = *opened;
  }
  ~LoadQueueTest() override { close_queue(); }
  void close_queue() {
    if (queue != nullptr) world->cache->close_loads(*queue);
    queue = nullptr;
  }

  Begun begin(uint64_t page) {
    auto begun = world->cache->begin_load(
        PageId{page}, *a->workspace, stream, *queue, [](void* count) { ++*static_cast<uint32_t*>(count); },
        &ended_count);
    EXPECT_TRUE(begun.has_value());
    return begun ? *begun : Begun::kDone;
  }
  // Polls until `count` loads have ended.
  void poll_until_ended(uint32_t count) {
    while (ended_count < count) world->cache->poll_loads();
  }
  // Puts pages first .. first + count - 1 on storage, each filled with a letter of its own.
  void fill(uint64_t first, uint64_t count) {
    for (uint64_t page = first; page < first + count; ++page) write(page, letter(page));
    evict();
  }
  static char letter(uint64_t page) { return static_cast<char>('a' + page % 26); }

  LoadQueue* queue = nullptr;
  Stream stream;
  uint32_t ended_count = 0;
};

TEST_F(LoadQueueTest, ALoadThatIsBegunEndsWhenItIsPolled) {
  fill(3, 1);
  EXPECT_EQ(begin(3), Begun::kUnderWay);
  EXPECT_EQ(ended_count, 0u);
  EXPECT_FALSE(world->resident(3));
  poll_until_ended(1);
  EXPECT_TRUE(world->resident(3));
  const uint64_t reads = world->device->reads;
  EXPECT_EQ(value(3), letter(3));
  EXPECT_EQ(world->device->reads, reads);
  EXPECT_EQ(world->cache->poll_loads(), 0u);
  EXPECT_EQ(ended_count, 1u);
}

TEST_F(LoadQueueTest, WhatIsUnchangedAfterALoadIsNotWritten) {
  fill(3, 1);
  const uint64_t writes = world->device->writes;
  EXPECT_EQ(begin(3), Begun::kUnderWay);
  poll_until_ended(1);
  evict();
  EXPECT_EQ(world->device->writes, writes);
  EXPECT_EQ(value(3), letter(3));
}

TEST_F(LoadQueueTest, WhatNeedsNoReadIsThereAtOnce) {
  EXPECT_EQ(begin(3), Begun::kDone);
  EXPECT_TRUE(world->resident(3));
  EXPECT_EQ(begin(3), Begun::kDone);
  EXPECT_EQ(ended_count, 0u);
}

TEST_F(LoadQueueTest, WhoeverWaitsForThePageEndsItsLoad) {
  fill(3, 1);
  EXPECT_EQ(begin(3), Begun::kUnderWay);
  const char* bytes = b->translate(world->address(3));
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(bytes[0], letter(3));
  EXPECT_EQ(ended_count, 1u);
}

TEST_F(LoadQueueTest, AMissThatWaitsCountsOnceHoweverOftenItLooks) {
  constexpr uint32_t kRounds = 16;
  const uint64_t before = base::statistics.cache_waits.get();
  for (uint32_t round = 1; round <= kRounds; ++round) {
    fill(3, 1);
    EXPECT_EQ(begin(3), Begun::kUnderWay);
    ASSERT_NE(b->translate(world->address(3)), nullptr);
    b->release_all();
    EXPECT_EQ(ended_count, round);
  }
  EXPECT_EQ(base::statistics.cache_waits.get() - before, kRounds);
}

TEST_F(LoadQueueTest, WhoPinsThePageEndsItsLoad) {
  fill(3, 1);
  EXPECT_EQ(begin(3), Begun::kUnderWay);
  auto pinned = world->cache->pin(PageId{3}, *b->workspace);
  ASSERT_TRUE(pinned.has_value());
  EXPECT_EQ((*pinned)[0], letter(3));
  world->cache->unpin(PageId{3});
  EXPECT_EQ(ended_count, 1u);
}

TEST_F(LoadQueueTest, WhoDiscardsThePageEndsItsLoad) {
  fill(3, 1);
  EXPECT_EQ(begin(3), Begun::kUnderWay);
  world->cache->discard(PageId{3}, 1, *b->workspace);
  EXPECT_EQ(ended_count, 1u);
  EXPECT_EQ(value(3), 0);
}

TEST_F(LoadQueueTest, ASecondLoadOfThePageIsNotBegun) {
  fill(3, 1);
  EXPECT_EQ(begin(3), Begun::kUnderWay);
  EXPECT_EQ(begin(3), Begun::kWait);
  poll_until_ended(1);
  EXPECT_EQ(begin(3), Begun::kDone);
}

TEST_F(LoadQueueTest, ManyLoadsAreUnderWayAtATime) {
  open_with({.frame_count = 64, .range_pages = 128});
  fill(0, 32);
  for (uint64_t page = 0; page < 32; ++page) EXPECT_EQ(begin(page), Begun::kUnderWay);
  poll_until_ended(32);
  for (uint64_t page = 0; page < 32; ++page) {
    EXPECT_TRUE(world->resident(page));
    EXPECT_EQ(value(page), letter(page));
  }
}

TEST_F(LoadQueueTest, AFullQueueTakesNoMore) {
  open_with({.frame_count = 2 * LoadQueue::kDepth, .range_pages = 2 * LoadQueue::kDepth});
  fill(0, LoadQueue::kDepth + 1);
  for (uint64_t page = 0; page < LoadQueue::kDepth; ++page) ASSERT_EQ(begin(page), Begun::kUnderWay);
  EXPECT_EQ(begin(LoadQueue::kDepth), Begun::kNoRoom);
  poll_until_ended(1);
  EXPECT_EQ(begin(LoadQueue::kDepth), Begun::kUnderWay);
  poll_until_ended(LoadQueue::kDepth + 1);
  EXPECT_EQ(value(LoadQueue::kDepth), letter(LoadQueue::kDepth));
}

TEST_F(LoadQueueTest, FramesThatAreBeingLoadedAreHadWhenTheirLoadsHaveEnded) {
  open_with({.frame_count = 8});
  fill(0, 9);
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(begin(page), Begun::kUnderWay);
  EXPECT_EQ(begin(8), Begun::kNoRoom);
  EXPECT_EQ(ended_count, 0u);
  const char* bytes = b->translate(world->address(8));
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(bytes[0], letter(8));
  EXPECT_GT(ended_count, 0u);
  poll_until_ended(8);
}

TEST_F(LoadQueueTest, WhatAReadDoesNotBringTheNextLoadReports) {
  fill(3, 1);
  world->device->bad_offset_bytes = offset_of(static_cast<uint64_t>(letter(3)));
  EXPECT_EQ(begin(3), Begun::kUnderWay);
  poll_until_ended(1);
  EXPECT_FALSE(world->resident(3));
  EXPECT_EQ(b->translate(world->address(3)), nullptr);
  EXPECT_EQ(b->error.number, EIO);
  world->device->bad_offset_bytes = ~uint64_t{0};
  EXPECT_EQ(begin(3), Begun::kUnderWay);
  poll_until_ended(2);
  EXPECT_EQ(value(3), letter(3));
}

TEST_F(LoadQueueTest, ALoadInSequenceBringsThePagesThatFollow) {
  open_with({.frame_count = 256, .range_pages = 512, .read_ahead_pages = 4});
  for (uint64_t page = 0; page < 12; ++page) write(page, letter(page));
  evict();
  for (uint32_t page = 0; page < 3; ++page) {
    EXPECT_EQ(begin(page), Begun::kUnderWay);
    poll_until_ended(page + 1);
  }
  for (uint64_t page = 3; page < 7; ++page) EXPECT_TRUE(world->resident(page)) << page;
  for (uint64_t page = 0; page < 12; ++page) EXPECT_EQ(value(page), letter(page));
}

TEST_F(LoadQueueTest, EachStreamIsReadAheadOfByItself) {
  open_with({.frame_count = 256, .range_pages = 512, .read_ahead_pages = 4});
  fill(0, 12);
  fill(100, 12);
  Stream other;
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(begin(i), Begun::kUnderWay);
    std::swap(stream, other);
    EXPECT_EQ(begin(100 + i), Begun::kUnderWay);
    std::swap(stream, other);
    poll_until_ended(static_cast<uint32_t>(2 * i + 2));
  }
  EXPECT_TRUE(world->resident(3));
  EXPECT_TRUE(world->resident(103));
}

TEST_F(LoadQueueTest, AQueueThatIsGivenBackIsTakenAgain) {
  LoadQueue* const first = queue;
  close_queue();
  auto again = world->cache->open_loads();
  ASSERT_TRUE(again.has_value());
  queue = *again;
  EXPECT_EQ(queue, first);
  auto second = world->cache->open_loads();
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(*second, first);
  world->cache->close_loads(**second);
}

// For the child, pages whose loads were under way are on storage; the loads end in the parent.
TEST_F(LoadQueueTest, AForkLeavesLoadsToTheParent) {
  fill(3, 2);
  EXPECT_EQ(begin(3), Begun::kUnderWay);
  world->cache->before_fork({[](PageId) { return false; }, [](PageId) { return uint32_t{0}; }});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!world->cache->after_fork_in_child()) _exit(1);
    auto workspace = world->cache->open_workspace();
    if (!workspace) _exit(2);
    auto loaded = world->cache->load(PageId{3}, **workspace);
    if (!loaded || (*loaded)[0] != letter(3)) _exit(3);
    auto own = world->cache->open_loads();
    if (!own) _exit(4);
    uint32_t ended = 0;
    const auto begun = world->cache->begin_load(
        PageId{4}, **workspace, stream, **own, [](void* count) { ++*static_cast<uint32_t*>(count); }, &ended);
    if (!begun || *begun != Begun::kUnderWay) _exit(5);
    while (ended == 0) world->cache->poll_loads();
    loaded = world->cache->load(PageId{4}, **workspace);
    _exit(loaded && (*loaded)[0] == letter(4) && ended_count == 0 ? 0 : 6);
  }
  world->cache->after_fork_in_parent();
  poll_until_ended(1);
  EXPECT_EQ(value(3), letter(3));
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A thread that only has loads under way sleeps until one has ended.
TEST(LoadQueue, AreWaitedForWithoutPolling) {
  storage::Device* device = storage::open_device("/var/tmp", {.overwrite = false, .spill = true}).value();
  LoadQueues queues;
  LoadQueue* queue = queues.open(*device, nullptr).value();
  EXPECT_GE(queue->quiet().descriptor, 0);
  EXPECT_EQ(queue->quiet().until_ns, base::Quiet::kForever);
  BegunLoad* load = queue->take();
  ASSERT_NE(load, nullptr);
  queue->submit(*load);
  EXPECT_EQ(queue->quiet().until_ns, 0u) << "until it has been polled the device knows nothing of it";
  queues.destroy();
  device->close();
}

}  // namespace
}  // namespace cache
