// Watched frames: pages whose content is not compared, because the kernel knows that nobody stored to them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/statistics.h"
#include "cache/testing/test_world.h"
#include "sys/memory.h"
#include "sys/write_watch.h"

namespace cache {
namespace {

constexpr uint64_t kOs = base::kOsPageBytes;

class WatchTest : public WorldTest {
 protected:
  void SetUp() override {
    sys::WriteWatch watch;
    if (auto opened = watch.open(); !opened) GTEST_SKIP() << opened.error().message;
    watch.close();
    open_watched({});
  }
  // Every page is filled with 'x' and on storage, and all frames are watched.
  void open_watched(const TestParameters& parameters) {
    open(parameters);
    for (uint64_t page = 0; page < parameters.range_pages; ++page) write(page, 'x');
    evict();
    read_all();
    read_all();
    const uint64_t before = untouched();
    read_all();
    EXPECT_EQ(untouched() - before, parameters.range_pages);
  }
  void read_all(char expected = 'x') {
    for (uint64_t page = 0; page < world->parameters.range_pages; ++page) EXPECT_EQ(value(page), expected);
    evict();
  }
  static uint64_t untouched() { return base::statistics.cache_untouched.get(); }
};

TEST_F(WatchTest, WhatIsOnlyReadIsNeitherComparedNorWritten) {
  const uint64_t writes = world->device->writes;
  const uint64_t before = untouched();
  for (int round = 0; round < 3; ++round) read_all();
  EXPECT_EQ(world->device->writes, writes);
  EXPECT_EQ(untouched() - before, 3 * world->parameters.range_pages);
}

// The first page leaves unchanged when a fork has lent all frames.
TEST_F(WatchTest, WhatIsOnlyReadIsNotWrittenWhileAChildLives) {
  open({});
  for (uint64_t page = 0; page < 64; ++page) write(page, 'x');
  evict();
  ASSERT_TRUE(world->cache->before_fork({[](PageId) { return false; }, [](PageId) { return 0u; }}));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // in case nobody ends it
    for (;;) pause();
  }
  world->cache->after_fork_in_parent();
  const uint64_t writes = world->device->writes;
  for (int round = 0; round < 4; ++round) read_all();
  EXPECT_EQ(world->device->writes, writes);
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(WatchTest, AStoreToAnyByteIsWritten) {
  for (uint64_t offset : {uint64_t{0}, uint64_t{1234}, kOs - 1}) {
    for (uint64_t page = 0; page < 16; ++page) a->translate(world->address(page))[offset] = 'y';
    evict();
    for (uint64_t page = 0; page < 16; ++page) EXPECT_EQ(a->translate(world->address(page))[offset], 'y');
    a->release_all();
  }
}

TEST_F(WatchTest, AFrameThatWasStoredToIsNotTakenForUntouchedLater) {
  open_watched({.frame_count = 64, .range_pages = 128});
  for (int round = 0; round < 6; ++round) {
    for (uint64_t page = 0; page < 128; page += 9) write(page, static_cast<char>('a' + round));
    for (uint64_t page = 0; page < 128; ++page)
      ASSERT_EQ(value(page), page % 9 == 0 ? static_cast<char>('a' + round) : 'x') << page;
    evict();
  }
  const uint64_t writes = world->device->writes;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t page = 0; page < 128; ++page) EXPECT_EQ(value(page), page % 9 == 0 ? 'f' : 'x');
    evict();
  }
  EXPECT_EQ(world->device->writes, writes) << "nor for stored to";
}

// All frames held 'x' when they were last compared, and page 3 becomes 'x', too.
TEST_F(WatchTest, NothingIsKnownOfWhatIsLoadedIntoAWatchedFrame) {
  write_and_evict(3, 'y');
  for (int round = 0; round < 8; ++round) {
    for (uint64_t page = 0; page < 64; ++page) EXPECT_EQ(value(page), page == 3 ? 'y' : 'x');
    evict();
  }
  write_and_evict(3, 'x');
  EXPECT_EQ(value(3), 'x');
}

TEST_F(WatchTest, WhatTheKernelStoresForTheProgramIsWritten) {
  auto pinned = world->cache->pin(PageId{5}, *a->workspace);
  ASSERT_TRUE(pinned);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "kernel", 6), 6);
  ASSERT_EQ(::read(ends[0], *pinned + 100, 6), 6);
  close(ends[0]);
  close(ends[1]);
  world->cache->unpin(PageId{5});
  evict();
  EXPECT_EQ(std::string(a->translate(world->address(5, 100)), 6), "kernel");
}

TEST_F(WatchTest, AStoreByAMappingOfItsOwnIsWritten) {
  auto pinned = world->cache->pin(PageId{5}, *a->workspace);
  ASSERT_TRUE(pinned);
  world->cache->stop_watching(PageId{5});
  const auto piece = world->cache->file_piece(PageId{5}, *pinned);
  auto mapped = sys::map_shared(piece.descriptor, piece.offset, kOs, sys::Access::kReadWrite);
  ASSERT_TRUE(mapped);
  (*mapped)[7] = 'y';
  sys::unmap(*mapped, kOs);
  world->cache->unpin(PageId{5});
  evict();
  EXPECT_EQ(a->translate(world->address(5))[7], 'y');
}

TEST_F(WatchTest, AStoreDuringTheEvictionIsWritten) {
  for (bool held : {false, true}) {
    EXPECT_EQ(value(5), 'x');
    char* touched = nullptr;
    const auto touch = [&] {
      if (touched == nullptr) *(touched = b->translate(world->address(5))) = held ? 'z' : 'y';
    };
    (held ? world->holders.on_barrier : world->holders.on_visited) = touch;
    while (touched == nullptr) world->cache->evict(*a->workspace);
    world->holders.on_barrier = world->holders.on_visited = nullptr;
    b->release_all();
    evict();
    EXPECT_EQ(*a->translate(world->address(5)), held ? 'z' : 'y');
    write(5, 'x');
    evict();
  }
}

// The page is translated before its entries are locked, stored to before the barrier, and released before the scan.
TEST_F(WatchTest, AStoreByWhoTranslatedBeforeIsWritten) {
  char* const bytes = b->translate(world->address(5));
  bool stored = false;
  world->holders.on_barrier = [&] {
    if (world->entries[5] != Table::kLocked || stored) return;
    bytes[3] = 'y';
    b->release_all();
    stored = true;
  };
  evict();
  world->holders.on_barrier = nullptr;
  EXPECT_TRUE(stored);
  EXPECT_FALSE(world->resident(5));
  EXPECT_EQ(a->translate(world->address(5))[3], 'y');
}

// A page is rescued from a write: its place holds what was written, and only the frame has the later store.
TEST_F(WatchTest, AStoreDuringTheWriteIsWritten) {
  write(5, 'y');
  a->release_all();
  char* touched = nullptr;
  world->device->after_transfer = [&](const Io& io) {
    if (io.operation == Operation::kWrite && touched == nullptr)
      memset(touched = b->translate(world->address(5)), 'z', kOs);
  };
  while (touched == nullptr) world->cache->evict(*a->workspace);
  world->device->after_transfer = nullptr;
  b->release_all();
  evict();
  EXPECT_EQ(value(5), 'z');
}

TEST_F(WatchTest, APageZeroedInPlaceIsZeros) {
  EXPECT_EQ(*b->translate(world->address(5)), 'x');
  world->cache->discard(PageId{5}, 1, *a->workspace);
  b->release_all();
  evict();
  EXPECT_EQ(value(5), 0);
  write(5, 'y');
  evict();
  EXPECT_EQ(value(5), 'y');
}

TEST_F(WatchTest, ZerosInAWatchedFrameMayBeStoredTo) {
  open_watched({.range_pages = 32});
  world->cache->discard(PageId{0}, 32, *a->workspace);
  for (uint64_t page = 0; page < 32; ++page) EXPECT_EQ(value(page), 0);
  evict();
  for (uint64_t page = 0; page < 32; ++page) a->translate(world->address(page))[page] = 'y';
  evict();
  for (uint64_t page = 0; page < 32; ++page) {
    const char* bytes = a->translate(world->address(page));
    for (uint64_t i = 0; i < kOs; ++i) ASSERT_EQ(bytes[i], i == page ? 'y' : 0);
  }
}

TEST_F(WatchTest, OnlyTheOsPagesThatWereStoredToAreWritten) {
  open_watched({.page_bytes = 16 * kOs, .range_pages = 32});
  const uint64_t written = world->device->written_bytes;
  char* bytes = a->translate(world->address(1));
  bytes[5 * kOs] = 'y';
  bytes[16 * kOs - 1] = 'z';
  evict();
  EXPECT_EQ(world->device->written_bytes - written, 2 * kOs);
  std::string expected(16 * kOs, 'x');
  expected[5 * kOs] = 'y';
  expected[16 * kOs - 1] = 'z';
  std::string read(16 * kOs, 0);
  ASSERT_TRUE(a->read(world->address(1), read.data(), read.size()));
  EXPECT_TRUE(read == expected);
}

TEST_F(WatchTest, TheLargestPagesAreWatchedToo) {
  open_watched({.page_bytes = 512 * kOs, .frame_count = 8, .range_pages = 12});
  a->translate(world->address(11))[511 * kOs] = 'y';
  evict();
  EXPECT_EQ(a->translate(world->address(11))[511 * kOs], 'y');
  EXPECT_EQ(a->translate(world->address(11))[510 * kOs], 'x');
}

TEST_F(WatchTest, CleaningSeesWhatWasStored) {
  ASSERT_TRUE(world->cache->prepare_cleaning());
  for (int round = 0; round < 4; ++round) {
    const char value_now = static_cast<char>('a' + round);
    for (uint64_t page = 0; page < 8; ++page) write(page, value_now);
    a->release_all();
    world->cache->evict(*a->workspace);
    for (int idle = 0; idle < 3;) idle = world->cache->idle_step(*a->workspace) ? 0 : idle + 1;
    world->cache->verify();
    // The page is stored to once more after it was cleaned.
    a->translate(world->address(static_cast<uint64_t>(round)))[9] = '!';
    evict();
    for (uint64_t page = 0; page < 8; ++page) {
      const char* bytes = a->translate(world->address(page));
      EXPECT_EQ(bytes[8], value_now);
      EXPECT_EQ(bytes[9], page == static_cast<uint64_t>(round) ? '!' : value_now);
    }
    evict();
  }
}

TEST_F(WatchTest, CleaningLeavesWhatIsUntouchedAlone) {
  ASSERT_TRUE(world->cache->prepare_cleaning());
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(value(page), 'x');
  a->release_all();
  world->cache->evict(*a->workspace);
  const uint64_t writes = world->device->writes;
  for (int idle = 0; idle < 3;) idle = world->cache->idle_step(*a->workspace) ? 0 : idle + 1;
  evict();
  EXPECT_EQ(world->device->writes, writes);
  const uint64_t before = untouched();
  read_all();
  EXPECT_EQ(untouched() - before, world->parameters.range_pages) << "frames are watched as before";
}

// If many pages change, watching would cost a fault for each.
TEST_F(WatchTest, FramesOfPagesThatChangeAreNotWatched) {
  open({.frame_count = 64, .range_pages = 64});
  const uint64_t before = untouched();
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    for (uint64_t page = 0; page < 64; ++page)
      if (page % 4 == 3)
        EXPECT_EQ(value(page), 0);
      else
        write(page, static_cast<char>('a' + round));
    evict();
  }
  // A batch may happen to have no page that changed.
  EXPECT_LT(untouched() - before, kRounds * 16 / 4);
}

TEST_F(WatchTest, WithoutItPagesAreCompared) {
  open({.watch = false});
  const uint64_t before = untouched();
  for (uint64_t page = 0; page < 64; ++page) write(page, 'x');
  evict();
  const uint64_t writes = world->device->writes;
  for (int round = 0; round < 4; ++round) read_all();
  EXPECT_EQ(world->device->writes, writes);
  EXPECT_EQ(untouched(), before);
}

}  // namespace
}  // namespace cache
