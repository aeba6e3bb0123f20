// The protocols of partition.h, one interleaving at a time: in hooks of the holders and the device, other
// threads act between the steps of an eviction, a write, a load or a discard.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>

#include "base/log.h"
#include "base/statistics.h"
#include "cache/testing/test_world.h"

namespace cache {
namespace {

constexpr uint64_t kOs = base::kOsPageBytes;

using ProtocolTest = WorldTest;

TEST_F(ProtocolTest, APageIsZerosAtFirstAndThenWhatWasWritten) {
  EXPECT_EQ(value(3), 0);
  write_and_evict(3, 'x');
  EXPECT_EQ(value(3), 'x');
  EXPECT_EQ(value(2), 0);
  EXPECT_EQ(value(4), 0);
}

TEST_F(ProtocolTest, ReadingNeverWritesAndZerosCostNoIo) {
  for (uint64_t page = 0; page < 40; ++page) EXPECT_EQ(value(page), 0);
  evict();
  for (uint64_t page = 0; page < 40; ++page) EXPECT_EQ(world->entries[page], Table::kUnknown) << page;
  EXPECT_EQ(world->device->writes, 0u);
  EXPECT_EQ(world->device->reads, 0u);
  write_and_evict(3, 'x');
  const uint64_t writes = world->device->writes;
  EXPECT_EQ(value(3), 'x');
  evict();
  EXPECT_EQ(value(3), 'x');
  evict();
  EXPECT_EQ(world->device->writes, writes) << "a page that nobody changed was written";
}

// A fingerprint must not be that of what the frame held before the load: here exactly that is written to the new page.
TEST_F(ProtocolTest, TheFingerprintIsOfWhatWasLoadedNotOfWhatTheFrameHeldBefore) {
  open({.frame_count = 1 + 7});
  for (uint64_t page = 0; page < 16; ++page) write(page, static_cast<char>('a' + page % 2));
  evict();
  for (int round = 0; round < 4; ++round) {
    for (uint64_t page = 0; page < 16; ++page) {
      const char before = value(page);
      write(page, before == 'a' ? 'b' : 'a');
    }
    evict();
  }
  for (uint64_t page = 0; page < 16; ++page) EXPECT_EQ(value(page), static_cast<char>('a' + page % 2));
}

TEST_F(ProtocolTest, APinThatMissesIsNoHit) {
  write_and_evict(5, 'x');
  const uint64_t hits = base::statistics.cache_hits.get(), misses = base::statistics.cache_misses.get();
  ASSERT_TRUE(world->cache->pin(PageId{5}, *a->workspace).has_value());
  EXPECT_EQ(base::statistics.cache_misses.get(), misses + 1);
  EXPECT_EQ(base::statistics.cache_hits.get(), hits);
  ASSERT_TRUE(world->cache->pin(PageId{5}, *a->workspace).has_value());
  EXPECT_EQ(base::statistics.cache_misses.get(), misses + 1);
  EXPECT_EQ(base::statistics.cache_hits.get(), hits + 1);
  world->cache->unpin(PageId{5});
  world->cache->unpin(PageId{5});
}

TEST_F(ProtocolTest, OnlyTheOsPagesThatChangedAreWritten) {
  open({.page_bytes = 16 * kOs});
  write_and_evict(1, 'x');
  EXPECT_EQ(world->device->written_bytes, 16 * kOs) << "a new place is written whole";
  char* bytes = a->translate(world->address(1));
  bytes[5 * kOs] = 'y';
  bytes[7 * kOs - 1] = 'y';
  bytes[16 * kOs - 1] = 'z';
  evict();
  EXPECT_EQ(world->device->written_bytes, (16 + 3) * kOs);
  std::string expected(16 * kOs, 'x');
  expected[5 * kOs] = expected[7 * kOs - 1] = 'y';
  expected[16 * kOs - 1] = 'z';
  std::string read(16 * kOs, 0);
  ASSERT_TRUE(a->read(world->address(1), read.data(), read.size()));
  EXPECT_TRUE(read == expected);
}

TEST_F(ProtocolTest, ManyScatteredChangesFitOneBatch) {
  // 64 victims, each changed in every second OS page: more Ios than a workspace has.
  open({.page_bytes = 16 * kOs, .frame_count = 512, .range_pages = 512});
  for (uint64_t page = 0; page < 512; ++page) write(page, 'x');
  evict();
  for (uint64_t page = 0; page < 512; ++page) {
    char* bytes = a->translate(world->address(page));
    for (uint64_t piece = page % 2; piece < 16; piece += 2) bytes[piece * kOs] = 'y';
  }
  evict();
  for (uint64_t page = 0; page < 512; ++page) {
    const char* bytes = a->translate(world->address(page));
    for (uint64_t i = 0; i < 16 * kOs; i += 64)
      ASSERT_EQ(bytes[i], i % kOs == 0 && i / kOs % 2 == page % 2 ? 'y' : 'x') << page << " " << i;
  }
}

TEST_F(ProtocolTest, AHeldPageStaysWhereItIs) {
  for (size_t bytes : {kOs, 16 * kOs}) {
    open({.page_bytes = bytes});
    write(5, 'x');
    const char* held = b->translate(world->address(5, bytes - 1), 2);
    evict();
    EXPECT_TRUE(world->resident(5));
    EXPECT_EQ(b->translate(world->address(5, bytes - 1), 2), held);
    EXPECT_EQ(*held, 'x');
    EXPECT_EQ(world->cache->resident_count(), 1u);
    b->release_all();
    evict();
    EXPECT_FALSE(world->resident(5));
  }
}

TEST_F(ProtocolTest, AHoldThatStandsBeforeTheScanIsSeen) {
  write(5, 'x');
  a->release_all();
  world->holders.on_barrier = [&] { b->slots.address[0] = world->address(5, 17); };
  world->evict_all(*a);
  EXPECT_TRUE(world->resident(5));
  world->holders.on_barrier = nullptr;
}

TEST_F(ProtocolTest, EntriesAreLockedBeforeTheBarrier) {
  for (uint64_t page = 0; page < 8; ++page) write(page, 'x');
  a->release_all();
  uint32_t most_locked = 0;
  world->holders.on_barrier = [&] {
    uint32_t locked = 0;
    for (uint64_t page = 0; page < 8; ++page) locked += world->entries[page] == Table::kLocked;
    EXPECT_GE(locked, 1u);
    most_locked = std::max(most_locked, locked);
    world->cache->verify();
  };
  world->evict_all(*a);
  EXPECT_GE(most_locked, 1u);
  world->holders.on_barrier = nullptr;
}

// The scan found no holder; then the page is touched, through the slow path, since its entry is locked.
TEST_F(ProtocolTest, ATouchAfterTheScanRescues) {
  for (bool changed : {false, true}) {
    write_and_evict(5, 'x');
    if (changed) write(5, 'y');
    EXPECT_EQ(value(5), changed ? 'y' : 'x');
    char* touched = nullptr;
    world->holders.on_visited = [&] {
      if (touched != nullptr) return;
      touched = b->translate(world->address(5));
      touched[1] = 'z';
    };
    const uint64_t writes = world->device->writes;
    while (touched == nullptr) world->cache->evict(*a->workspace);
    EXPECT_TRUE(world->resident(5));
    EXPECT_EQ(world->device->writes, writes) << "a rescued page is not written";
    world->holders.on_visited = nullptr;
    EXPECT_EQ(b->translate(world->address(5)), touched);
    touched[2] = 'z';
    b->release_all();
    evict();
    const char* again = a->translate(world->address(5));
    EXPECT_EQ(again[1], 'z');
    EXPECT_EQ(again[2], 'z');
    EXPECT_EQ(again[3], changed ? 'y' : 'x');
    write(5, 'x');
    evict();
  }
}

// 'x' is on storage and its fingerprint is known; 'y' is being written when the page is rescued and
// becomes 'x' again. If the old fingerprint were kept, the page would count as unchanged, and 'y' would come back.
TEST_F(ProtocolTest, ARescueDuringTheWriteLeavesTheFingerprintUnknown) {
  write_and_evict(5, 'x');
  write(5, 'y');
  a->release_all();
  char* touched = nullptr;
  world->device->after_transfer = [&](const Io& io) {
    if (io.operation != Operation::kWrite || touched != nullptr) return;
    world->cache->verify();
    touched = b->translate(world->address(5));
    memset(touched, 'x', kOs);
  };
  while (touched == nullptr) world->cache->evict(*a->workspace);
  world->device->after_transfer = nullptr;
  world->cache->verify();
  EXPECT_TRUE(world->resident(5)) << "a page that was touched during its write stays";
  b->release_all();
  evict();
  EXPECT_EQ(value(5), 'x');
}

TEST_F(ProtocolTest, ARescueDuringTheWriteKeepsWhatIsWrittenAfterIt) {
  write(5, 'x');
  a->release_all();
  char* touched = nullptr;
  world->device->before_transfer = [&](const Io&) {
    if (touched == nullptr) touched = b->translate(world->address(5));
  };
  world->device->after_transfer = [&](const Io&) { memset(touched, 'z', kOs); };
  while (touched == nullptr) world->cache->evict(*a->workspace);
  world->device->before_transfer = world->device->after_transfer = nullptr;
  EXPECT_EQ(b->translate(world->address(5)), touched);
  b->release_all();
  evict();
  EXPECT_EQ(value(5), 'z');
}

// While the write of a rescued page is under way, nobody starts a second one (at which the device would fail the test).
TEST_F(ProtocolTest, ARescuedPageIsNotEvictedUntilItsWriteEnded) {
  write_and_evict(5, 'x');
  write(5, 'y');
  a->release_all();
  bool inside = false;
  world->device->after_transfer = [&](const Io&) {
    if (inside) return;
    inside = true;
    memset(b->translate(world->address(5)), 'z', kOs);
    b->release_all();
    for (int i = 0; i < 50; ++i) EXPECT_EQ(world->cache->evict(*b->workspace), 0u);
    EXPECT_TRUE(world->resident(5));
  };
  while (!inside) world->cache->evict(*a->workspace);
  world->device->after_transfer = nullptr;
  evict();
  EXPECT_EQ(value(5), 'z');
}

// 'x' is on storage with a known fingerprint; the write of 'y' fails halfway, and the program writes 'x' again.
TEST_F(ProtocolTest, AFailedWriteKeepsThePageAndLeavesTheFingerprintUnknown) {
  for (bool is_short : {false, true}) {
    open({});
    write_and_evict(5, 'x');
    for (int round = 0; round < 8; ++round) {  // how much of a failed write arrives is random
      write(5, 'y');
      a->release_all();
      auto& chance =
          is_short ? world->device->short_writes_per_million : world->device->write_errors_per_million;
      chance = 1'000'000;
      const uint64_t failed = world->device->failed_operations;
      const uint64_t reported = base::statistics.cache_write_failures.get();
      while (world->device->failed_operations == failed) EXPECT_EQ(world->cache->evict(*a->workspace), 0u);
      EXPECT_GT(base::statistics.cache_write_failures.get(), reported);
      world->cache->verify();
      EXPECT_TRUE(world->resident(5));
      EXPECT_EQ(value(5), 'y');
      chance = 0;
      if (round % 2 == 0) write(5, 'x');
      evict();
      EXPECT_EQ(value(5), round % 2 == 0 ? 'x' : 'y');
      write_and_evict(5, 'x');
      EXPECT_EQ(value(5), 'x');
    }
  }
}

TEST_F(ProtocolTest, AWriteThatFailsOnANewPlaceLeavesNoPlaceBehind) {
  open({.storage_pages = 8});
  for (uint64_t page = 0; page < 8; ++page) write(page, static_cast<char>('a' + page));
  a->release_all();
  world->device->write_errors_per_million = 500'000;
  world->device->short_writes_per_million = 500'000;
  for (int i = 0; i < 200; ++i) world->cache->evict(*a->workspace);
  world->device->write_errors_per_million = 0;
  world->device->short_writes_per_million = 0;
  evict();
  EXPECT_EQ(world->cache->resident_count(), 0u) << "8 places for 8 pages";
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(value(page), static_cast<char>('a' + page));
}

TestWorld* world_of_message;
std::future<uint32_t> asked_meanwhile;
bool was_answered;

// The reader of the log may be slow, or need a page of the same partition first.
TEST_F(ProtocolTest, AMessageOfAFailedWriteHoldsUpNobody) {
  world_of_message = world.get();
  base::set_log_writer([](const base::LogLine&) {
    asked_meanwhile =
        std::async(std::launch::async, [] { return world_of_message->cache->resident_count(); });
    was_answered = asked_meanwhile.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  });
  write(5, 'x');
  a->release_all();
  world->device->write_errors_per_million = 1'000'000;
  for (int i = 0; i < 100; ++i) world->cache->evict(*a->workspace);
  base::set_log_writer(nullptr);
  ASSERT_TRUE(asked_meanwhile.valid()) << "no message came";
  EXPECT_TRUE(was_answered);
  EXPECT_EQ(asked_meanwhile.get(), 1u);
}

// A new place holds junk until the whole page is there, even if only one OS page differs from zeros.
TEST_F(ProtocolTest, ARetryOfAFailedFirstWriteWritesThePageWhole) {
  open({.page_bytes = 16 * kOs});
  a->translate(world->address(2))[3 * kOs] = 'x';
  a->release_all();
  world->device->write_errors_per_million = 1'000'000;
  for (int i = 0; i < 20; ++i) world->cache->evict(*a->workspace);
  world->device->write_errors_per_million = 0;
  evict();
  EXPECT_FALSE(world->resident(2));
  const char* bytes = a->translate(world->address(2));
  for (uint64_t i = 0; i < 16 * kOs; ++i) ASSERT_EQ(bytes[i], i == 3 * kOs ? 'x' : 0) << i;
}

TEST_F(ProtocolTest, ARescueOfAPageWhoseFirstWriteFailsKeepsIt) {
  write(5, 'y');
  a->release_all();
  char* touched = nullptr;
  world->device->after_transfer = [&](const Io&) {
    if (touched == nullptr) memset(touched = b->translate(world->address(5)), 'z', kOs);
  };
  world->device->write_errors_per_million = 1'000'000;
  while (touched == nullptr) world->cache->evict(*a->workspace);
  world->device->write_errors_per_million = 0;
  world->device->after_transfer = nullptr;
  world->cache->verify();
  b->release_all();
  evict();
  EXPECT_EQ(value(5), 'z');
}

TEST_F(ProtocolTest, AReadThatFailsIsReportedAndLosesNothing) {
  for (bool is_short : {false, true}) {
    open({});
    write_and_evict(5, 'x');
    auto& chance = is_short ? world->device->short_reads_per_million : world->device->read_errors_per_million;
    chance = 1'000'000;
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(a->translate(world->address(5)), nullptr);
      EXPECT_EQ(a->error.number, EIO);
      EXPECT_NE(std::string(a->error.message).find("cannot read page 5 from test device"), std::string::npos)
          << a->error.message;
      EXPECT_FALSE(world->resident(5));
    }
    world->cache->verify();
    chance = 0;
    EXPECT_EQ(value(5), 'x');
  }
}

TEST_F(ProtocolTest, NoEntryIsOpenBeforeThePageIsLoaded) {
  open({.page_bytes = 16 * kOs});
  write_and_evict(5, 'x');
  bool looked = false;
  const auto look = [&](const Io&) {
    for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(world->entries[5 * 16 + i], Table::kUnknown);
    world->cache->verify();
    looked = true;
  };
  world->device->before_transfer = world->device->after_transfer = look;
  EXPECT_EQ(*a->translate(world->address(5)), 'x');
  EXPECT_TRUE(looked);
  for (uint64_t i = 0; i < 16; ++i) EXPECT_GT(world->entries[5 * 16 + i], 1);
  world->device->before_transfer = world->device->after_transfer = nullptr;
}

// A victim is rescued after the scan, held, and locked by a second evictor: the first must not treat it as its own.
TEST_F(ProtocolTest, AnEvictorLeavesAVictimThatAnotherHasLockedSince) {
  write(5, 'x');
  a->release_all();
  const auto first = std::this_thread::get_id();
  TestThread second(*world, 2);
  std::thread other;
  std::atomic<bool> locked{false}, finished{false};
  const char* held = nullptr;
  world->holders.on_visited = [&] {
    if (std::this_thread::get_id() != first || other.joinable()) return;
    held = b->translate(world->address(5));
    other = std::thread([&] {
      for (int i = 0; i < 10 && !locked; ++i) world->cache->evict(*second.workspace);
      locked = true;
    });
    while (!locked) std::this_thread::yield();
  };
  world->holders.on_barrier = [&] {
    if (std::this_thread::get_id() == first) return;
    locked = true;
    while (!finished) std::this_thread::yield();
  };
  for (int i = 0; i < 10 && !other.joinable(); ++i) world->cache->evict(*a->workspace);
  finished = true;
  other.join();
  world->holders.on_visited = world->holders.on_barrier = nullptr;
  ASSERT_NE(held, nullptr);
  EXPECT_TRUE(world->resident(5));
  EXPECT_EQ(b->translate(world->address(5)), held);
  EXPECT_EQ(*held, 'x');
}

// While others load, no entry is seen open before the frame's state says that the page is there.
TEST_F(ProtocolTest, StatesAndEntriesAgreeAtAnyTime) {
  std::atomic<bool> stop{false};
  std::thread looker([&] {
    while (!stop) world->cache->verify();
  });
  for (uint64_t i = 0; i < 100'000; ++i) EXPECT_NE(a->translate(world->address(i * 7 % 64)), nullptr);
  stop = true;
  looker.join();
}

TEST_F(ProtocolTest, TwoThreadsThatMissOnePageReadItOnce) {
  write_and_evict(5, 'x');
  std::thread other;
  world->device->before_transfer = [&](const Io&) {
    if (other.joinable()) return;
    other = std::thread([&] { EXPECT_EQ(*b->translate(world->address(5)), 'x'); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  EXPECT_EQ(*a->translate(world->address(5)), 'x');
  other.join();
  world->device->before_transfer = nullptr;
  EXPECT_EQ(world->device->reads, 1u);
}

TEST_F(ProtocolTest, WhoWaitsForALoadThatFailsTriesItself) {
  write_and_evict(5, 'x');
  std::thread other;
  world->device->read_errors_per_million = 1'000'000;
  world->device->before_transfer = [&](const Io&) {
    if (other.joinable()) return;
    other = std::thread([&] { EXPECT_EQ(*b->translate(world->address(5)), 'x'); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  world->device->after_transfer = [&](const Io&) { world->device->read_errors_per_million = 0; };
  EXPECT_EQ(a->translate(world->address(5)), nullptr);
  other.join();
  world->device->before_transfer = world->device->after_transfer = nullptr;
  EXPECT_EQ(value(5), 'x');
}

TEST_F(ProtocolTest, APinnedPageStaysUntilUnpinned) {
  write_and_evict(5, 'x');
  auto pinned = world->cache->pin(PageId{5}, *a->workspace);
  ASSERT_TRUE(pinned);
  EXPECT_EQ(*world->cache->pin(PageId{5}, *a->workspace), *pinned);
  evict();
  EXPECT_TRUE(world->resident(5));
  memset(*pinned, 'y', kOs);
  world->cache->unpin(PageId{5});
  evict();
  EXPECT_TRUE(world->resident(5)) << "pinned twice";
  const Cache::FilePiece piece = world->cache->file_piece(PageId{5}, *pinned);
  char byte = 0;
  EXPECT_EQ(pread(piece.descriptor, &byte, 1, static_cast<off_t>(piece.offset) + 9), 1);
  EXPECT_EQ(byte, 'y');
  world->cache->unpin(PageId{5});
  evict();
  EXPECT_FALSE(world->resident(5));
  EXPECT_EQ(value(5), 'y');
}

// All frames but one are pinned, and writing that one takes longer than a load waits for pins.
// Takes 13 s: cache_long runs it.
TEST_F(ProtocolTest, DISABLED_WhoNeedsAFrameWaitsAsLongAsAWriteTakes) {
  for (uint64_t page = 0; page < 8; ++page) write(page, 'x');
  a->release_all();
  for (uint64_t page = 0; page < 7; ++page) ASSERT_TRUE(world->cache->pin(PageId{page}, *a->workspace));
  std::thread other;
  world->device->before_transfer = [&](const Io& io) {
    if (io.operation != Operation::kWrite || other.joinable()) return;
    other = std::thread([&] { EXPECT_NE(b->translate(world->address(21)), nullptr) << b->error.message; });
    std::this_thread::sleep_for(std::chrono::seconds(13));
    world->cache->unpin(PageId{0});  // so that there is a frame for each of the two
  };
  EXPECT_NE(a->translate(world->address(20)), nullptr) << a->error.message;
  EXPECT_TRUE(other.joinable()) << "nothing was written";
  if (other.joinable()) other.join();
  world->device->before_transfer = nullptr;
  for (uint64_t page = 1; page < 7; ++page) world->cache->unpin(PageId{page});
}

TEST_F(ProtocolTest, APinRescues) {
  write_and_evict(5, 'x');
  write(5, 'y');
  a->release_all();
  char* pinned = nullptr;
  world->device->before_transfer = [&](const Io&) {
    if (pinned == nullptr) pinned = *world->cache->pin(PageId{5}, *b->workspace);
  };
  while (pinned == nullptr) world->cache->evict(*a->workspace);
  world->device->before_transfer = nullptr;
  memset(pinned, 'z', kOs);
  evict();
  EXPECT_TRUE(world->resident(5));
  world->cache->unpin(PageId{5});
  evict();
  EXPECT_EQ(value(5), 'z');
}

// Chaos: a write to a frame after it became free is detected when the frame is used again.
TEST_F(ProtocolTest, ChaosFindsAWriteToAFreeFrame) {
  open({.frame_count = 8, .chaos_seed = 5});
  char* stale = a->translate(world->address(5));
  *stale = 'x';
  a->release_all();
  while (world->resident(5)) world->cache->evict(*a->workspace);
  EXPECT_EXIT(
      {
        stale[100] = 'y';
        for (uint64_t page = 10; page < 30; ++page) a->translate(world->address(page));
      },
      testing::KilledBySignal(SIGABRT), "unlike_poison");
}

TEST_F(ProtocolTest, ReadAheadTakesWhatFollowsAndLosesNothingWhenItFails) {
  for (int trouble = 0; trouble < 3; ++trouble) {
    open({.frame_count = 64, .range_pages = 64, .read_ahead_pages = 4});
    for (uint64_t page = 0; page < 64; ++page) write(page, static_cast<char>(page + 1));
    evict();
    ASSERT_EQ(world->cache->resident_count(), 0u);
    const base::Statistics& counted = base::statistics;
    const uint64_t misses = counted.cache_misses.get(), read_aheads = counted.cache_read_aheads.get();
    world->device->short_reads_per_million = trouble == 1 ? 300'000 : 0;
    for (uint64_t page = 0; page < 64; ++page) {
      // Trouble 2: the page after the one that is wanted cannot be read.
      if (trouble == 2) world->device->bad_offset_bytes = offset_of(page + 2);
      char got = value(page);
      for (int tries = 0; got == '!' && trouble == 1 && tries < 50; ++tries) got = value(page);
      ASSERT_EQ(got, static_cast<char>(page + 1))
          << page << " trouble " << trouble << ": " << a->error.message;
      world->cache->verify();
    }
    if (trouble == 0) {
      EXPECT_LT(world->device->reads, 40u);
      // Each page was loaded once, in one of the two ways.
      EXPECT_LT(counted.cache_misses.get() - misses, 40u);
      EXPECT_EQ(counted.cache_misses.get() - misses + counted.cache_read_aheads.get() - read_aheads, 64u);
    }
  }
}

// However many pages are requested.
TEST_F(ProtocolTest, AReadAheadIsOneRead) {
  open({.frame_count = 512, .range_pages = 256, .read_ahead_pages = 255});
  for (uint64_t page = 0; page < 256; ++page) write(page, static_cast<char>(page));
  evict();
  for (uint64_t page = 0; page < 256; ++page)
    ASSERT_EQ(value(page), static_cast<char>(page)) << a->error.message;
  EXPECT_LT(world->device->reads, 16u);
}

}  // namespace
}  // namespace cache
