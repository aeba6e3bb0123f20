// Moving changed pages to neighbouring places: what is written, and what is left after failures.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "base/statistics.h"
#include "cache/testing/test_world.h"

namespace cache {
namespace {

constexpr uint64_t kOs = base::kOsPageBytes;

class MoveTest : public WorldTest {
 protected:
  static constexpr uint64_t kPages = 48;

  void SetUp() override { open_scattered({}); }
  // Pages 0 .. kPages - 1 hold 'x' on storage, no two neighbours on neighbouring places; a batch has 8 of them.
  void open_scattered(TestParameters parameters) {
    parameters.frame_count = 64;
    parameters.range_pages = 1024;
    open(parameters);
    ASSERT_TRUE(world->cache->prepare_cleaning());
    for (uint64_t i = 0; i < kPages; ++i) write_and_evict(i * 31 % kPages, 'x');
    moves_before_ = base::statistics.cache_moves.get();
  }
  void change_all() {
    for (uint64_t page = 0; page < kPages; ++page) write(page, 'y');
    a->release_all();
  }
  void expect_all(char expected) {
    for (uint64_t page = 0; page < kPages; ++page)
      ASSERT_EQ(value(page), expected) << page << a->error.message;
  }
  uint64_t moves() { return base::statistics.cache_moves.get() - moves_before_; }
  // Runs `action` once, while the first write of several pages is under way.
  template <class Action>
  void evict_with(bool after, Action action) {
    bool acted = false;
    const auto hook = [&](const Io& io) {
      if (acted || io.operation != Operation::kWrite || io.segment_count < 4) return;
      acted = true;
      action(io);
    };
    (after ? world->device->after_transfer : world->device->before_transfer) = hook;
    evict();
    world->device->before_transfer = world->device->after_transfer = nullptr;
    EXPECT_TRUE(acted);
  }
  // Every place is either a page's or free: there is room for as many pages as storage has places.
  void expect_no_place_lost(uint64_t storage_pages) {
    for (uint64_t page = 100; page < 100 + storage_pages - kPages; ++page) {
      write(page, 'z');
      if (page % 8 == 0) evict();
    }
    evict();
    EXPECT_EQ(world->cache->resident_count(), 0u) << storage_pages << " places for as many pages";
    for (uint64_t page = 100; page < 100 + storage_pages - kPages; ++page)
      ASSERT_EQ(value(page), 'z') << page;
  }

 private:
  uint64_t moves_before_ = 0;
};

TEST_F(MoveTest, ScatteredChangesAreWrittenTogether) {
  for (char content : {'y', 'z', 'x'}) {
    const uint64_t writes = world->device->writes;
    const uint64_t bytes = world->device->written_bytes;
    for (uint64_t page = 0; page < kPages; ++page) write(page, content);
    evict();
    EXPECT_EQ(world->cache->resident_count(), 0u);
    EXPECT_LE(world->device->writes - writes, kPages / 4);
    EXPECT_EQ(world->device->written_bytes - bytes, kPages * kOs);
    if (content == 'y') EXPECT_GE(moves(), kPages / 2);
    expect_all(content);
    evict();
    // In another order next time, so that the batches have other pages.
    for (uint64_t i = 0; i < kPages; ++i) write_and_evict(i * 29 % kPages, 'w');
  }
}

TEST_F(MoveTest, MovedPagesLieInTheOrderOfTheirAddresses) {
  std::string seen;
  world->device->after_transfer = [&](const Io& io) {
    if (io.operation != Operation::kWrite || io.segment_count < 4) return;
    for (uint32_t i = 0; i < io.segment_count; ++i)
      seen += *static_cast<const char*>(io.segments[i].iov_base);
    seen += '\0';
  };
  for (uint64_t i = 0; i < kPages; ++i) write(i * 31 % kPages, static_cast<char>(i * 31 % kPages + 1));
  evict();
  world->device->after_transfer = nullptr;
  ASSERT_GE(moves(), kPages / 2);
  ASSERT_FALSE(seen.empty());
  for (size_t i = 1; i < seen.size(); ++i)
    if (seen[i] != 0) EXPECT_LT(seen[i - 1], seen[i]);
}

TEST_F(MoveTest, PagesThatLieTogetherStayThere) {
  open({.frame_count = 64, .range_pages = 1024});
  for (uint64_t page = 0; page < kPages; ++page) write(page, static_cast<char>('A' + page));
  evict();
  const uint64_t moves_before = base::statistics.cache_moves.get();
  uint64_t before[kPages];
  for (uint64_t page = 0; page < kPages; ++page) before[page] = offset_of('A' + page);
  for (uint64_t page = 0; page < kPages; ++page) write(page, static_cast<char>('A' + kPages + page));
  evict();
  EXPECT_EQ(base::statistics.cache_moves.get(), moves_before);
  for (uint64_t page = 0; page < kPages; ++page) EXPECT_EQ(offset_of('A' + kPages + page), before[page]);
}

// Partly changed pages are not worth writing whole.
TEST_F(MoveTest, OnlyWhatIsChangedAsAWholeMoves) {
  open_scattered({.page_bytes = 4 * kOs});
  const uint64_t bytes = world->device->written_bytes;
  for (uint64_t page = 0; page < kPages; ++page) *a->translate(world->address(page, 2 * kOs)) = 'y';
  evict();
  EXPECT_EQ(moves(), 0u);
  EXPECT_EQ(world->device->written_bytes - bytes, kPages * kOs);
  for (uint64_t page = 0; page < kPages; ++page) {
    EXPECT_EQ(*a->translate(world->address(page, 2 * kOs)), 'y');
    EXPECT_EQ(*a->translate(world->address(page, kOs)), 'x');
  }
  change_all();
  evict();
  EXPECT_GE(moves(), kPages / 2);
  expect_all('y');
}

TEST_F(MoveTest, AFailedMoveLosesNothing) {
  constexpr uint64_t kStorage = 2 * kPages;
  for (bool is_short : {false, true}) {
    open_scattered({.storage_pages = kStorage});
    auto& chance =
        is_short ? world->device->short_writes_per_million : world->device->write_errors_per_million;
    change_all();
    evict_with(false, [&](const Io&) { chance = 1'000'000; });
    EXPECT_GT(world->device->failed_operations, 0u);
    chance = 0;
    world->cache->verify();
    expect_all('y');
    // Back to what is on the places that the pages kept.
    for (uint64_t page = 0; page < kPages; ++page) write(page, 'x');
    evict();
    EXPECT_EQ(world->cache->resident_count(), 0u);
    expect_all('x');
    expect_no_place_lost(kStorage);
    expect_all('x');
  }
}

// Nobody else may get the old place until the page is safe at the new one: here other pages take all free places
// while the write, which fails in the end, is under way.
TEST_F(MoveTest, TheOldPlaceIsKeptUntilTheWriteSucceeded) {
  for (bool fails : {true, false}) {
    open_scattered({.storage_pages = kPages + kPages / 2 + 8});
    change_all();
    bool inside = false;
    world->device->after_transfer = [&](const Io& io) {
      if (inside || io.operation != Operation::kWrite || io.segment_count < 4) return;
      inside = true;
      world->device->write_errors_per_million = 0;
      for (uint64_t page = 200; page < 208; ++page) write(page, 'z', b.get());
      b->release_all();
      for (int i = 0; i < 40; ++i) world->cache->evict(*b->workspace);
    };
    if (fails) world->device->write_errors_per_million = 1'000'000;
    for (int i = 0; i < 100 && !inside; ++i) world->cache->evict(*a->workspace);
    world->device->write_errors_per_million = 0;
    world->device->after_transfer = nullptr;
    EXPECT_TRUE(inside);
    evict();
    EXPECT_EQ(world->cache->resident_count(), 0u);
    expect_all('y');
    for (uint64_t page = 200; page < 208; ++page) EXPECT_EQ(value(page), 'z') << page;
  }
}

TEST_F(MoveTest, ARescueDuringAMoveKeepsWhatIsWrittenAfterIt) {
  for (bool after : {false, true}) {
    for (bool fails : {false, true}) {
      constexpr uint64_t kStorage = 2 * kPages;
      open_scattered({.storage_pages = kStorage});
      change_all();
      uint64_t page = ~uint64_t{0};
      world->device->write_errors_per_million = fails ? 1'000'000 : 0;
      evict_with(after, [&](const Io&) {
        world->cache->verify();
        for (uint64_t p = 0; p < kPages; ++p) {
          if (world->entries[p] != Table::kLocked) continue;
          page = p;
          break;
        }
        memset(b->translate(world->address(page)), 'x', kOs);
        b->release_all();
        world->device->write_errors_per_million = 0;
      });
      ASSERT_LT(page, kPages);
      EXPECT_EQ(value(page), 'x') << "what lay on the old place, when 'y' was being written to the new one";
      write(page, 'y');
      evict();
      expect_all('y');
      evict();
      expect_no_place_lost(kStorage);
    }
  }
}

TEST_F(MoveTest, ADiscardWaitsForAMove) {
  for (bool fails : {false, true}) {
    constexpr uint64_t kStorage = 2 * kPages;
    open_scattered({.storage_pages = kStorage});
    change_all();
    std::thread discarder;
    std::atomic<bool> done = false;
    world->device->write_errors_per_million = fails ? 1'000'000 : 0;
    evict_with(false, [&](const Io&) {
      discarder = std::thread([&] {
        world->cache->discard(PageId{0}, kPages, *b->workspace);
        done = true;
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      EXPECT_FALSE(done);
    });
    world->device->write_errors_per_million = 0;
    discarder.join();
    expect_all(0);
    evict();
    for (uint64_t page = 0; page < kPages; ++page) write_and_evict(page, 'x');
    expect_no_place_lost(kStorage);
  }
}

TEST_F(MoveTest, WithoutFreePlacesPagesAreWrittenWhereTheyAre) {
  open_scattered({.storage_pages = kPages});
  for (char content : {'y', 'z'}) {
    for (uint64_t page = 0; page < kPages; ++page) write(page, content);
    evict();
    EXPECT_EQ(world->cache->resident_count(), 0u);
    expect_all(content);
  }
  EXPECT_EQ(moves(), 0u);
}

// A full file system accepts only writes for which it has blocks already.
TEST_F(MoveTest, WhenNewPlacesCannotBeWrittenTheOldOnesAre) {
  for (uint64_t page = 0; page < kPages; ++page)
    write_and_evict(page, static_cast<char>('A' + page));  // in place
  std::set<uint64_t> has_blocks;
  for (uint64_t page = 0; page < kPages; ++page) has_blocks.insert(offset_of('A' + page));
  world->device->has_no_room = [&](const Io& io) {
    for (uint64_t at = 0; at < io.length_bytes; at += kOs)
      if (!has_blocks.contains(io.offset_bytes + at)) return true;
    return false;
  };
  for (char content : {'y', 'z'}) {
    for (uint64_t page = 0; page < kPages; ++page) write(page, content);
    evict();
    EXPECT_EQ(world->cache->resident_count(), 0u);
    // Goes through all of memory: nothing reports an error.
    for (uint64_t page = 500; page < 600; ++page) ASSERT_EQ(value(page), 0) << a->error.message;
    expect_all(content);
  }
}

TEST_F(MoveTest, CleanedPagesMove) {
  for (bool fails : {false, true}) {
    constexpr uint64_t kStorage = 2 * kPages;
    open_scattered({.storage_pages = kStorage});
    for (uint64_t page = 300; page < 316; ++page) value(page);  // frames are full
    change_all();
    world->cache->evict(*a->workspace);  // cools them
    const uint64_t writes = world->device->writes;
    world->device->write_errors_per_million = fails ? 1'000'000 : 0;
    const uint64_t cleans = base::statistics.cache_cleans.get();
    for (int idle = 0; idle < 20; ++idle) world->cache->idle_step(*a->workspace);
    world->device->write_errors_per_million = 0;
    world->cache->verify();
    const uint64_t cleaned = base::statistics.cache_cleans.get() - cleans;
    if (fails) {
      EXPECT_EQ(cleaned, 0u);
    } else {
      EXPECT_GE(cleaned, kPages / 2);
      EXPECT_GE(moves(), kPages / 4);
      EXPECT_LE(world->device->writes - writes, cleaned / 2);
    }
    expect_all('y');
    evict();
    EXPECT_EQ(world->cache->resident_count(), 0u);
    expect_all('y');
    evict();
    expect_no_place_lost(kStorage);
  }
}

}  // namespace
}  // namespace cache
