// Closed OS pages (closed.h): nobody gets a translation to them, and their content is kept like any other.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "cache/testing/test_world.h"

namespace cache {
namespace {

constexpr uint64_t kOs = base::kOsPageBytes;
constexpr uint64_t kPieces = 4;

class TestClosed final : public Closed {
 public:
  bool has_any(PageId page) override {
    const auto first = pieces.lower_bound(index(page) * kPieces);
    return first != pieces.end() && *first < (index(page) + 1) * kPieces;
  }
  bool has(PageId page, uint64_t i) override { return pieces.contains(index(page) * kPieces + i); }
  std::set<uint64_t> pieces;  // page * kPieces + i
};

class ClosedTest : public WorldTest {
 protected:
  void SetUp() override {
    TestParameters parameters;
    parameters.page_bytes = kPieces * kOs;
    parameters.closed = &closed;
    open(parameters);
  }
  int64_t entry(uint64_t page, uint64_t i) { return world->entries[page * kPieces + i].load(); }
  Partition::Seen close(uint64_t page, uint64_t i) {
    closed.pieces.insert(page * kPieces + i);
    return world->cache->close_again(PageId{page}, 1);
  }
  Partition::Seen open_again(uint64_t page, uint64_t i) {
    closed.pieces.erase(page * kPieces + i);
    return world->cache->close_again(PageId{page}, 1);
  }
  void expect_closed(uint64_t page, uint64_t i) {
    for (uint64_t piece = 0; piece < kPieces; ++piece) {
      if (piece == i)
        EXPECT_EQ(entry(page, piece), Table::kDirect) << piece;
      else
        EXPECT_GT(entry(page, piece), Table::kDirect) << piece;
    }
  }
  // Can the kernel read the byte, and store to it?
  static bool can_read(const char* at) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const bool can = ::write(ends[1], at, 1) == 1;
    ::close(ends[0]);
    ::close(ends[1]);
    return can;
  }
  static bool can_store(char* at) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    EXPECT_EQ(::write(ends[1], "s", 1), 1);
    const bool can = ::read(ends[0], at, 1) == 1;
    ::close(ends[0]);
    ::close(ends[1]);
    return can;
  }
  TestClosed closed;
};

TEST_F(ClosedTest, ALoadOpensTheOthersOnly) {
  closed.pieces.insert(5 * kPieces + 2);
  write(5, 'x');
  expect_closed(5, 2);
  evict();
  EXPECT_EQ(entry(5, 2), Table::kUnknown);
  EXPECT_NE(a->translate(world->address(5)), nullptr);
  expect_closed(5, 2);
}

TEST_F(ClosedTest, APageInMemoryIsClosedAndOpenedAgain) {
  write(5, 'x');
  EXPECT_TRUE(close(5, 1).resident);
  expect_closed(5, 1);
  EXPECT_TRUE(open_again(5, 1).resident);
  for (uint64_t piece = 0; piece < kPieces; ++piece) EXPECT_GT(entry(5, piece), Table::kDirect);
  EXPECT_EQ(value(5), 'x');
  evict();
  EXPECT_FALSE(close(5, 1).resident);
}

TEST_F(ClosedTest, ARescueOpensTheOthersOnly) {
  write(5, 'x');
  close(5, 1);
  b->translate(world->address(5));
  world->holders.on_barrier = [this] { b->translate(world->address(5, 3 * kOs)); };
  for (int i = 0; i < 20; ++i) world->cache->evict(*a->workspace);
  world->holders.on_barrier = nullptr;
  expect_closed(5, 1);
  b->release_all();
  evict();
  EXPECT_EQ(entry(5, 1), Table::kUnknown);
}

TEST_F(ClosedTest, APageThatIsClosedWhileItIsEvictedStaysClosedWhenItIsRescued) {
  write(5, 'x');
  a->release_all();
  bool done = false;
  world->holders.on_visited = [&] {
    if (done || entry(5, 0) != Table::kLocked) return;
    done = true;
    close(5, 2);
    EXPECT_EQ(entry(5, 2), Table::kLocked);
    b->translate(world->address(5));
  };
  while (!done) world->cache->evict(*a->workspace);
  world->holders.on_visited = nullptr;
  expect_closed(5, 2);
}

// A page must not count as clean only because its closed entries do not look hot.
TEST_F(ClosedTest, AStoreBetweenCleaningAndClosingIsWritten) {
  ASSERT_TRUE(world->cache->prepare_cleaning());
  for (uint64_t page = 0; page < world->parameters.frame_count; ++page) write(page, 'x');
  a->release_all();
  world->cache->evict(*a->workspace);
  for (int idle = 0; idle < 3;) idle = world->cache->idle_step(*a->workspace) ? 0 : idle + 1;
  uint64_t stored = 0;
  for (uint64_t page = 0; page < world->parameters.frame_count; ++page) {
    if (entry(page, 0) >= Table::kLocked) continue;
    memset(a->translate(world->address(page, kOs)), 'y', kOs);
    for (uint64_t piece = 0; piece < kPieces; ++piece) close(page, piece);
    ++stored;
  }
  ASSERT_GT(stored, 0u);
  evict();
  uint64_t found = 0;
  closed.pieces.clear();
  for (uint64_t page = 0; page < world->parameters.frame_count; ++page)
    found += *a->translate(world->address(page, kOs)) == 'y';
  EXPECT_EQ(found, stored);
}

// The fault path stores to a closed OS page while the cleaner writes it.
TEST_F(ClosedTest, AStoreByAPinDuringCleaningIsWritten) {
  ASSERT_TRUE(world->cache->prepare_cleaning());
  for (uint64_t page = 0; page < world->parameters.frame_count; ++page) write(page, 'x');
  a->release_all();
  world->cache->evict(*a->workspace);
  bool acted = false;
  world->device->before_transfer = [&](const Io& io) {
    if (acted || io.operation != Operation::kWrite) return;
    acted = true;
    for (uint64_t page = 0; page < world->parameters.frame_count; ++page) {
      for (uint64_t piece = 0; piece < kPieces; ++piece) close(page, piece);
      auto pinned = world->cache->pin(PageId{page}, *b->workspace);
      ASSERT_TRUE(pinned);
      memset(*pinned, 'y', page_bytes);
      world->cache->unpin(PageId{page});
    }
  };
  for (int idle = 0; idle < 3;) idle = world->cache->idle_step(*a->workspace) ? 0 : idle + 1;
  world->device->before_transfer = nullptr;
  ASSERT_TRUE(acted);
  evict();
  closed.pieces.clear();
  for (uint64_t page = 0; page < world->parameters.frame_count; ++page) EXPECT_EQ(value(page), 'y');
}

TEST_F(ClosedTest, AGuardHoldsOffWhoTranslatedBefore) {
  write(5, 'x');
  char* held = b->translate(world->address(5, kOs + 7));
  close(5, 1);
  EXPECT_TRUE(can_read(held));
  world->cache->guard(world->address(5, kOs), sys::Access::kRead);
  EXPECT_TRUE(can_read(held));
  EXPECT_FALSE(can_store(held));
  world->cache->guard(world->address(5, kOs), sys::Access::kNone);
  EXPECT_FALSE(can_read(held));
  EXPECT_TRUE(can_read(held - kOs));
  EXPECT_EQ(world->cache->guarded_address(held), world->address(5, kOs + 7));
  // The cache itself can still use it.
  for (int i = 0; i < 20; ++i) world->cache->evict(*a->workspace);
  EXPECT_FALSE(can_read(held));
  EXPECT_TRUE(open_again(5, 1).guarded);
  EXPECT_TRUE(can_store(held));
  EXPECT_EQ(*held, 's');
  EXPECT_FALSE(world->cache->guarded_address(held));
  b->release_all();
  evict();
  EXPECT_EQ(*a->translate(world->address(5, kOs + 7)), 's');
}

TEST_F(ClosedTest, AGuardWaitsForWhoeverLooksAtTheFrame) {
  write(5, 'x');
  a->release_all();
  std::atomic<bool> guarded = false;
  std::thread other;
  world->holders.on_visited = [&] {
    if (other.joinable() || entry(5, 0) != Table::kLocked) return;
    // Translates the page, which is being evicted: guarding it has to wait.
    char* held = b->translate(world->address(5, kOs));
    EXPECT_TRUE(held != nullptr);
    close(5, 1);
    other = std::thread([&] {
      world->cache->guard(world->address(5, kOs), sys::Access::kNone);
      guarded = true;
    });
    usleep(20'000);
    EXPECT_FALSE(guarded);
  };
  while (!other.joinable()) world->cache->evict(*a->workspace);
  world->holders.on_visited = nullptr;
  other.join();
  EXPECT_TRUE(guarded);
  char* held = reinterpret_cast<char*>(world->address(5, kOs) + static_cast<uint64_t>(entry(5, 0)) - 1);
  EXPECT_FALSE(can_read(held));
  open_again(5, 1);
  EXPECT_TRUE(can_read(held));
}

TEST_F(ClosedTest, WhatIsOpenIsNotGuarded) {
  write(5, 'x');
  char* held = b->translate(world->address(5, kOs));
  world->cache->guard(world->address(5, kOs), sys::Access::kNone);
  EXPECT_TRUE(can_store(held));
}

TEST_F(ClosedTest, AGuardedPageLeavesWithItsContentAndItsFrameCanBeUsed) {
  for (uint64_t page = 0; page < 8; ++page) {
    write(page, 'x');
    b->translate(world->address(page, 2 * kOs));
    close(page, 2);
    world->cache->guard(world->address(page, 2 * kOs), sys::Access::kNone);
    b->release_all();
  }
  evict();
  closed.pieces.clear();
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(value(page), 'x');
  // The same if the page is discarded.
  for (uint64_t page = 0; page < 8; ++page) {
    b->translate(world->address(page, 2 * kOs));
    close(page, 2);
    world->cache->guard(world->address(page, 2 * kOs), sys::Access::kNone);
    b->release_all();
  }
  world->cache->discard(PageId{0}, 8, *a->workspace);
  closed.pieces.clear();
  for (uint64_t page = 10; page < 40; ++page) write(page, 'z');
  for (uint64_t page = 10; page < 40; ++page) EXPECT_EQ(value(page), 'z');
}

TEST_F(ClosedTest, ADiscardUnderAGuardZeroes) {
  write(5, 'x');
  char* held = b->translate(world->address(5, kOs));
  close(5, 1);
  world->cache->guard(world->address(5, kOs), sys::Access::kNone);
  world->cache->discard(PageId{5}, 1, *a->workspace);
  EXPECT_FALSE(can_read(held));
  auto pinned = world->cache->pin(PageId{5}, *a->workspace);
  ASSERT_TRUE(pinned);
  char found = '?';
  world->cache->copy_out(PageId{5}, kOs, &found, 1);
  EXPECT_EQ(found, 0);
  (*pinned)[0] = 'n';
  world->cache->zero(PageId{5}, kOs, kOs);
  world->cache->unpin(PageId{5});
  b->release_all();
  evict();
  open_again(5, 1);
  EXPECT_EQ(*a->translate(world->address(5, kOs)), 0);
  EXPECT_EQ(*a->translate(world->address(5, 0)), 'n');
}

}  // namespace
}  // namespace cache
