// Discard, alone and with everything that may be under way for the same page.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "cache/testing/test_world.h"

namespace cache {
namespace {

constexpr uint64_t kOs = base::kOsPageBytes;

class DiscardTest : public WorldTest {
 protected:
  void discard(uint64_t first, uint64_t count = 1, TestThread* thread = nullptr) {
    world->cache->discard(PageId{first}, count, *(thread != nullptr ? thread : a.get())->workspace);
  }
};

TEST_F(DiscardTest, AResidentPageLeavesWithoutIoAndReadsAsZeros) {
  write(5, 'x');
  a->release_all();
  discard(5);
  EXPECT_EQ(world->entries[5], Table::kUnknown);
  EXPECT_EQ(world->cache->resident_count(), 0u);
  EXPECT_EQ(value(5), 0);
  evict();
  EXPECT_EQ(world->device->writes, 0u);
}

TEST_F(DiscardTest, APageOnStorageReadsAsZerosWithoutIo) {
  write_and_evict(5, 'x');
  discard(5);
  const uint64_t reads = world->device->reads;
  EXPECT_EQ(value(5), 0);
  EXPECT_EQ(world->device->reads, reads);
}

TEST_F(DiscardTest, AnAbsentPageIsNoTrouble) {
  discard(0, 64);
  discard(63);
  discard(7, 0);
  EXPECT_EQ(value(63), 0);
}

TEST_F(DiscardTest, ExactlyTheRangeGoes) {
  open({.frame_count = 32, .range_pages = 64});
  for (uint64_t first : {0u, 1u, 15u, 16u, 17u, 31u}) {
    for (uint64_t count : {1u, 2u, 15u, 16u, 17u, 32u}) {
      for (uint64_t page = 0; page < 64; ++page) write(page, 'x');  // some are resident, some on storage
      a->release_all();
      discard(first, count);
      world->cache->verify();
      for (uint64_t page = 0; page < 64; ++page)
        ASSERT_EQ(value(page), page >= first && page < first + count ? 0 : 'x')
            << page << " of " << first << "+" << count;
    }
  }
}

TEST_F(DiscardTest, AnUnmappedGroupIsPassedOverNotWhatFollows) {
  open({.frame_count = 32});
  for (uint64_t page = 16; page < 32; ++page) write(page, 'x');
  a->release_all();
  discard(5, 20);
  for (uint64_t page = 0; page < 40; ++page)
    EXPECT_EQ(value(page), page >= 25 && page < 32 ? 'x' : 0) << page;
}

TEST_F(DiscardTest, ARangeOverSeveralRegionsAndPartitions) {
  open({.frame_count = 64, .range_pages = 512 * 8, .partition_count = 4});
  const uint64_t pages[] = {0, 511, 512, 513, 1023, 1024, 2047, 2048, 3000, 4095};
  for (uint64_t page : pages) write(page, 'x');
  a->release_all();
  discard(511, 2048 - 511);
  for (uint64_t page : pages) EXPECT_EQ(value(page), page >= 511 && page < 2048 ? 0 : 'x') << page;
}

TEST_F(DiscardTest, StorageIsUsedAgain) {
  open({.frame_count = 8, .range_pages = 64, .storage_pages = 32});
  for (int round = 0; round < 10; ++round) {
    for (uint64_t page = 0; page < 32; ++page) write(page, 'x');
    evict();
    discard(0, 64);
    world->cache->verify();
  }
}

TEST_F(DiscardTest, AHeldPageIsZeroedInPlace) {
  for (size_t bytes : {kOs, 16 * kOs}) {
    open({.page_bytes = bytes});
    write_and_evict(5, 'x');
    write(5, 'y');
    a->release_all();
    char* held = b->translate(world->address(5, bytes - 1), 1);
    discard(5);
    EXPECT_TRUE(world->resident(5));
    EXPECT_EQ(b->translate(world->address(5, bytes - 1), 1), held);
    EXPECT_EQ(value(5), 0);
    *held = 'z';
    b->release_all();
    evict();
    const char* again = a->translate(world->address(5));
    EXPECT_EQ(again[bytes - 1], 'z');
    EXPECT_EQ(again[bytes - 2], 0);
  }
}

// A page that is zeroed in place has the fingerprint of zeros and no place: evicting it needs no write, and the old
// content on storage is forgotten.
TEST_F(DiscardTest, AHeldPageForgetsItsStorage) {
  write_and_evict(5, 'x');
  EXPECT_EQ(value(5), 'x');
  b->translate(world->address(5));
  discard(5);
  b->release_all();
  const uint64_t writes = world->device->writes;
  evict();
  EXPECT_EQ(world->device->writes, writes);
  EXPECT_EQ(value(5), 0);
}

TEST_F(DiscardTest, APinnedPageIsZeroedInPlace) {
  write_and_evict(5, 'x');
  char* pinned = *world->cache->pin(PageId{5}, *a->workspace);
  discard(5);
  EXPECT_EQ(pinned[7], 0);
  EXPECT_TRUE(world->resident(5));
  pinned[7] = 'z';
  world->cache->unpin(PageId{5});
  evict();
  EXPECT_EQ(a->translate(world->address(5))[7], 'z');
}

TEST_F(DiscardTest, AHoldThatAppearsWhileEntriesAreLocked) {
  write(5, 'x');
  a->release_all();
  world->holders.on_barrier = [&] { b->slots.address[0] = world->address(5, 17); };
  discard(5);
  world->holders.on_barrier = nullptr;
  EXPECT_TRUE(world->resident(5));
  EXPECT_EQ(value(5), 0);
}

TEST_F(DiscardTest, ATouchAfterTheScanRescuesTheFrameButNotTheContent) {
  write_and_evict(5, 'x');
  write(5, 'y');
  a->release_all();
  const char* touched = nullptr;
  world->holders.on_visited = [&] { touched = b->translate(world->address(5)); };
  discard(5);
  world->holders.on_visited = nullptr;
  EXPECT_TRUE(world->resident(5));
  EXPECT_EQ(a->translate(world->address(5)), touched);
  EXPECT_EQ(value(5), 0);
}

// Between the scan and the last step the page is touched and evicted again, so that it is on storage then.
TEST_F(DiscardTest, APageThatMovedOnMeanwhileIsDiscardedWhereItIs) {
  for (bool into_another_frame : {false, true}) {
    open({});
    for (uint64_t page = 4; page < 7; ++page) write(page, 'x');
    a->release_all();
    bool moved = false;
    world->holders.on_visited = [&] {
      if (moved) return;
      moved = true;
      b->translate(world->address(5));
      b->release_all();
      world->evict_all(*b);
      EXPECT_FALSE(world->resident(5));
      if (into_another_frame) {
        for (uint64_t page = 20; page < 27; ++page) b->translate(world->address(page));
        b->translate(world->address(5));
        b->release_all();
      }
    };
    discard(5);
    world->holders.on_visited = nullptr;
    EXPECT_TRUE(moved);
    EXPECT_EQ(value(4), 'x');
    EXPECT_EQ(value(5), 0);
    EXPECT_EQ(value(6), 'x');
    EXPECT_EQ(value(20), 0);
  }
}

TEST_F(DiscardTest, AnEvictionThatIsComparingGivesWay) {
  write_and_evict(5, 'x');
  write(5, 'y');
  a->release_all();
  bool discarded = false;
  world->holders.on_visited = [&] {
    if (discarded) return;
    discarded = true;
    discard(5, 1, b.get());
    EXPECT_FALSE(world->resident(5));
    memset(b->translate(world->address(6)), 'z', kOs);  // may take the frame
    b->release_all();
  };
  while (!discarded) world->cache->evict(*a->workspace);
  world->holders.on_visited = nullptr;
  EXPECT_EQ(value(5), 0);
  EXPECT_EQ(value(6), 'z');
}

// The write must not happen after the discard, to a place that belongs to another page by then.
TEST_F(DiscardTest, WaitsForAWriteUnderWay) {
  for (bool rescued : {false, true}) {
    open({.storage_pages = 1});
    write(5, 'y');
    a->release_all();
    std::thread discarder;
    std::atomic<bool> done = false;
    world->device->before_transfer = [&](const Io&) {
      if (discarder.joinable()) return;
      if (rescued) {
        b->translate(world->address(5));
        b->release_all();
      }
      discarder = std::thread([&] {
        discard(5, 1, b.get());
        done = true;
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      EXPECT_FALSE(done);
    };
    while (!discarder.joinable()) world->cache->evict(*a->workspace);
    discarder.join();
    world->device->before_transfer = nullptr;
    EXPECT_EQ(value(5), 0);
    write_and_evict(6, 'z');  // the one place there is
    EXPECT_EQ(value(6), 'z');
    EXPECT_EQ(value(5), 0);
  }
}

TEST_F(DiscardTest, WaitsForALoadUnderWay) {
  write_and_evict(5, 'y');
  std::thread discarder;
  std::atomic<bool> done = false;
  world->device->before_transfer = [&](const Io&) {
    if (discarder.joinable()) return;
    discarder = std::thread([&] {
      discard(5, 1, b.get());
      done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(done);
  };
  a->translate(world->address(5));
  discarder.join();
  world->device->before_transfer = nullptr;
  EXPECT_EQ(value(5), 0);
}

// A discard of many pages continues with the others of its batch while one of them must wait.
TEST_F(DiscardTest, ARangeOfWhichOnePageIsBeingWritten) {
  open({.frame_count = 64});
  for (uint64_t page = 0; page < 20; ++page) write(page, 'y');
  a->release_all();
  std::thread discarder;
  world->device->before_transfer = [&](const Io&) {
    if (discarder.joinable()) return;
    discarder = std::thread([&] { discard(1, 18, b.get()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  };
  while (!discarder.joinable()) world->cache->evict(*a->workspace);
  discarder.join();
  world->device->before_transfer = nullptr;
  for (uint64_t page = 0; page < 20; ++page) EXPECT_EQ(value(page), page == 0 || page == 19 ? 'y' : 0);
}

}  // namespace
}  // namespace cache
