// Cleaning: writing changed pages before anybody waits for their frames, and discarding freed storage.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "base/statistics.h"
#include "cache/testing/test_world.h"

namespace cache {
namespace {

constexpr uint64_t kOs = base::kOsPageBytes;

class CleanTest : public WorldTest {
 protected:
  void SetUp() override { open_clean({}); }
  void open_clean(const TestParameters& parameters) {
    open(parameters);
    ASSERT_TRUE(world->cache->prepare_cleaning());
  }
  // Fills memory with pages 0, 1, ... and lets the clock go round once; then all but one or two are cooling.
  void fill_and_cool(char value) {
    for (uint64_t page = 0; page < world->parameters.frame_count; ++page) write(page, value);
    a->release_all();
    world->cache->evict(*a->workspace);
  }
  void clean() {
    // A step looks only near the clock's hand, so one that finds nothing need not be the last.
    for (int idle = 0; idle < 3;) idle = world->cache->idle_step(*a->workspace) ? 0 : idle + 1;
    world->cache->verify();
  }
  // Returns a page that is cooling, changed, and has a place on storage that holds 'x'.
  uint64_t changed_page() {
    for (uint64_t page = 0; page < world->parameters.frame_count; ++page) write(page, 'x');
    evict();
    fill_and_cool('y');
    for (uint64_t page = world->parameters.frame_count - 1; page > 0; --page)
      if (is_cooling(page)) return page;
    ADD_FAILURE() << "no page is cooling";
    return 0;
  }
  bool is_cooling(uint64_t page) { return world->entries[page * (page_bytes / kOs)] < Table::kLocked; }
  // Runs `action` once, when the page's cleaning writes to storage.
  template <class Action>
  void clean_with(uint64_t page, bool after, Action action) {
    bool acted = false;
    const auto hook = [&, page](const Io& io) {
      if (acted || io.operation != Operation::kWrite || io.length_bytes != page_bytes) return;
      if (static_cast<const char*>(io.segments[0].iov_base)[0] != 'y' || !frame_has_io(page)) return;
      acted = true;
      action();
    };
    (after ? world->device->after_transfer : world->device->before_transfer) = hook;
    clean();
    world->device->before_transfer = world->device->after_transfer = nullptr;
    EXPECT_TRUE(acted);
  }
  // Pages are cleaned one a batch, in the order of frames: each has its turn, so the first one will do.
  bool frame_has_io(uint64_t page) { return is_cooling(page); }
};

TEST_F(CleanTest, ACleanedPageLeavesWithoutAWrite) {
  for (size_t bytes : {kOs, 16 * kOs}) {
    open_clean({.page_bytes = bytes});
    fill_and_cool('y');
    const uint64_t cleans = base::statistics.cache_cleans.get();
    clean();
    EXPECT_GE(base::statistics.cache_cleans.get() - cleans, 5u);
    const uint64_t writes = world->device->writes;
    evict();
    EXPECT_LE(world->device->writes - writes, 1u);
    for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(value(page), 'y');
  }
}

TEST_F(CleanTest, PagesForWhichStorageHasNoPlaceCountAsNotWritten) {
  open({.frame_count = 32, .range_pages = 64, .storage_pages = 16});
  for (uint64_t page = 0; page < 24; ++page) write(page, 'y');
  a->release_all();
  const auto failed = world->cache->write_back(PageId{0}, 24, *a->workspace);
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(*failed, 8u);
  for (uint64_t page = 0; page < 24; ++page) EXPECT_EQ(value(page), 'y') << page;
}

TEST_F(CleanTest, HotPagesAreLeftAlone) {
  for (uint64_t page = 0; page < 8; ++page) write(page, 'y');
  clean();
  EXPECT_EQ(world->device->writes, 0u);
}

TEST_F(CleanTest, AChangeAfterCleaningIsNotLost) {
  fill_and_cool('y');
  clean();
  for (uint64_t page = 0; page < 8; ++page) a->translate(world->address(page))[kOs - 1] = 'z';
  evict();
  for (uint64_t page = 0; page < 8; ++page)
    EXPECT_EQ(a->translate(world->address(page))[kOs - 1], 'z') << page;
}

// The page is touched and cooled again, so its entry looks as cleaning left it.
TEST_F(CleanTest, AChangeThatCooledAgainIsNotLost) {
  for (int round = 0; round < 4; ++round) {
    fill_and_cool('y');
    clean();
    for (uint64_t page = 0; page < 8; ++page) write(page, 'z');
    a->release_all();
    for (int i = 0; i < 8; ++i) world->cache->evict(*a->workspace);
    evict();
    for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(value(page), 'z') << page;
    evict();
  }
}

// A thread translated the page before it was cooled, and still holds it.
TEST_F(CleanTest, AHeldPageIsNotTakenForVerified) {
  for (uint64_t page = 0; page < 7; ++page) write(page, 'y');
  a->release_all();
  char* held[4];
  for (uint32_t i = 0; i < 4; ++i) held[i] = b->translate(world->address(2 + i, 5), i);
  write(7, 'y');
  a->release_all();
  world->cache->evict(*a->workspace);
  ASSERT_TRUE(is_cooling(4));
  clean();
  for (char* at : held) *at = 'z';
  b->release_all();
  evict();
  for (uint64_t page = 2; page < 6; ++page) EXPECT_EQ(a->translate(world->address(page))[5], 'z') << page;
}

// Another partition gives back the page of the table that has the trace of the touch.
TEST_F(CleanTest, ATouchWhoseEntryIsLostIsSeen) {
  for (bool during_write : {false, true}) {
    open_clean({});
    const uint64_t page = changed_page();
    const auto touch = [&] {
      memset(b->translate(world->address(page)), 'z', kOs);
      b->release_all();
      world->entries[page] = Table::kUnknown;
    };
    if (during_write) {
      clean_with(page, true, touch);
    } else {
      clean();
      touch();
    }
    evict();
    EXPECT_EQ(value(page), 'z') << during_write;
  }
}

TEST_F(CleanTest, AHoldThatShowsOnlyAfterTheBarrierIsSeen) {
  const uint64_t page = changed_page();
  world->holders.on_barrier = [&] { b->slots.address[0] = world->address(page); };
  char* at = reinterpret_cast<char*>(world->address(page) + static_cast<uint64_t>(-world->entries[page]) - 1);
  clean();
  world->holders.on_barrier = nullptr;
  ASSERT_TRUE(world->resident(page));
  *at = 'z';
  b->release_all();
  evict();
  EXPECT_EQ(*a->translate(world->address(page)), 'z');
}

// 'x' was on storage; the cleaner writes 'y', while the program stores 'x' again.
TEST_F(CleanTest, AChangeDuringTheWriteIsNotLost) {
  for (bool after : {false, true}) {
    open_clean({});
    const uint64_t page = changed_page();
    clean_with(page, after, [&] {
      memset(b->translate(world->address(page)), 'x', kOs);
      b->release_all();
    });
    evict();
    EXPECT_EQ(value(page), 'x') << after;
  }
}

// Policies that cool pages before they name them must not remove the only trace of the touch.
TEST_F(CleanTest, ATouchDuringTheWriteIsSeenThoughPagesAreCooledThen) {
  for (const auto policy : {base::PolicyKind::kLru, base::PolicyKind::kS3fifo, base::PolicyKind::kNrlfu}) {
    open_clean({.policy = policy});
    const uint64_t page = changed_page();
    clean_with(page, false, [&] {
      // One of them is the one that is written.
      for (uint64_t i = 0; i < 8; ++i) {
        memset(b->translate(world->address(i)), 'z', kOs);
        b->release_all();
      }
      for (int i = 0; i < 20; ++i) world->cache->evict(*b->workspace);
    });
    evict();
    for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(value(i), 'z') << name_of(policy) << " " << i;
  }
}

TEST_F(CleanTest, AChangeThroughAPinDuringTheWriteIsNotLost) {
  const uint64_t page = changed_page();
  char* pinned = nullptr;
  clean_with(page, false, [&] { pinned = *world->cache->pin(PageId{page}, *b->workspace); });
  memset(pinned, 'z', kOs);
  evict();
  EXPECT_TRUE(world->resident(page));
  world->cache->unpin(PageId{page});
  evict();
  EXPECT_EQ(value(page), 'z');
}

TEST_F(CleanTest, APageUnderCleaningIsNotEvicted) {
  const uint64_t page = changed_page();
  clean_with(page, true, [&] {
    // The frame that is being written stays; at a second Io for its place the device would fail the test.
    for (int i = 0; i < 20; ++i) world->cache->evict(*b->workspace);
    world->cache->verify();
  });
  EXPECT_EQ(value(page), 'y');
}

TEST_F(CleanTest, AFailedCleaningLosesNothing) {
  for (bool is_short : {false, true}) {
    for (bool new_place : {false, true}) {
      open_clean({.storage_pages = 16});
      if (new_place)
        fill_and_cool('y');
      else
        changed_page();
      auto& chance =
          is_short ? world->device->short_writes_per_million : world->device->write_errors_per_million;
      chance = 1'000'000;
      for (int i = 0; i < 40; ++i) world->cache->idle_step(*a->workspace);
      EXPECT_GT(world->device->failed_operations, 0u);
      chance = 0;
      world->cache->verify();
      evict();
      EXPECT_EQ(world->cache->resident_count(), 0u);
      for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(value(page), 'y') << page;
      for (uint64_t page = 20; page < 28; ++page) write(page, 'z');
      evict();
      EXPECT_EQ(world->cache->resident_count(), 0u) << "16 places for 16 pages";
    }
  }
}

// Background cleanings fail while a thread looks for the one page that can leave without a write.
TEST_F(CleanTest, FailedCleaningsAreNoReasonToGiveUp) {
  for (const uint64_t unchanged : {5, 25, 45}) {
    open_clean({.frame_count = 64, .range_pages = 128});
    for (uint64_t page = 0; page < 64; ++page) write(page, 'x');
    evict();
    ASSERT_EQ(value(unchanged), 'x');
    for (uint64_t page = 0; page < 64; ++page)
      if (page != unchanged) write(page, 'y');
    a->release_all();
    // The one page that could leave does so only after a few evictions have failed, each beside many cleanings.
    ASSERT_TRUE(world->cache->pin(PageId{unchanged}, *b->workspace));
    world->device->write_errors_per_million = 1'000'000;
    bool inside = false;
    int evictions = 0;
    world->device->after_transfer = [&](const Io&) {
      if (inside) return;
      inside = true;
      for (int i = 0; i < 20; ++i) world->cache->idle_step(*b->workspace);
      if (++evictions == 4) world->cache->unpin(PageId{unchanged});
      inside = false;
    };
    EXPECT_NE(a->translate(world->address(100)), nullptr) << a->error.message;
    a->release_all();
    world->device->after_transfer = nullptr;
    world->device->write_errors_per_million = 0;
    for (uint64_t page = 0; page < 64; ++page) EXPECT_EQ(value(page), page == unchanged ? 'x' : 'y') << page;
  }
}

TEST_F(CleanTest, ADiscardWaitsForACleaning) {
  const uint64_t page = changed_page();
  std::thread discarder;
  std::atomic<bool> done = false;
  clean_with(page, false, [&] {
    discarder = std::thread([&] {
      world->cache->discard(PageId{0}, 8, *b->workspace);
      done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(done);
  });
  discarder.join();
  EXPECT_EQ(value(page), 0);
}

TEST_F(CleanTest, FullStorageStopsCleaningOnly) {
  open_clean({.storage_pages = 2});
  for (uint64_t page = 0; page < 8; ++page) write(page, 'y');
  a->release_all();
  for (int i = 0; i < 4; ++i) world->cache->evict(*a->workspace);
  for (int i = 0; i < 40; ++i) world->cache->idle_step(*a->workspace);
  world->cache->verify();
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(value(page), 'y') << a->error.message;
}

TEST_F(CleanTest, FreedStorageIsDiscardedAndNothingElse) {
  constexpr uint64_t kPages = 4096;
  open({.frame_count = 64, .range_pages = kPages, .storage_pages = 2 * kPages});
  world->device->allow_discards();
  for (uint64_t page = 0; page < kPages; ++page) write(page, 'y');
  evict();
  EXPECT_FALSE(world->cache->idle_step(*a->workspace)) << "nothing was freed";
  world->cache->discard(PageId{0}, 3 * kPages / 4, *a->workspace);
  while (world->cache->idle_step(*a->workspace)) {
  }
  EXPECT_GE(world->device->discarded_bytes, kPages / 2 * kOs);
  EXPECT_LE(world->device->discarded_bytes, 3 * kPages / 4 * kOs);
  const uint64_t discarded_bytes = world->device->discarded_bytes;
  for (uint64_t page = 3 * kPages / 4; page < kPages; ++page) ASSERT_EQ(value(page), 'y') << page;
  // Discarded places are used again, and can be discarded again.
  for (uint64_t page = 0; page < 3 * kPages / 4; ++page) write(page, 'z');
  evict();
  for (uint64_t page = 0; page < kPages; ++page)
    ASSERT_EQ(value(page), page < 3 * kPages / 4 ? 'z' : 'y') << page;
  world->cache->discard(PageId{0}, kPages, *a->workspace);
  while (world->cache->idle_step(*a->workspace)) {
  }
  EXPECT_GE(world->device->discarded_bytes - discarded_bytes, kPages / 2 * kOs);
}

}  // namespace
}  // namespace cache
