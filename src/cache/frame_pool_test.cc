#include "cache/frame_pool.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <vector>

namespace cache {
namespace {

class FramePoolTest : public testing::Test {
 protected:
  void open(uint32_t frame_count, size_t page_bytes = base::kOsPageBytes) {
    ASSERT_TRUE(pool.open(frame_count, page_bytes, budget, unwatched));
    opened = true;
  }
  ~FramePoolTest() override {
    if (opened) pool.close();
  }
  // A frame that held something and is free again.
  void use(FrameId frame) {
    pool.touch(frame);
    pool.bytes(frame)[0] = 1;
  }
  uint64_t allocated_bytes() {
    struct stat status = {};
    fstat(pool.descriptor(), &status);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }

  Budget budget;
  sys::WriteWatch unwatched;  // closed
  FramePool pool;
  bool opened = false;
};

TEST_F(FramePoolTest, HandsOutEveryFrameOnce) {
  for (uint32_t count : {1u, 8u, 15u, 16u, 17u, 63u, 64u, 65u, 200u}) {
    FramePool some;
    ASSERT_TRUE(some.open(count, base::kOsPageBytes, budget, unwatched));
    std::set<uint32_t> seen;
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(some.free_count(), count - i);
      const FrameId frame = some.take(PageId{i * 7}, base::kNoFrame, true);
      ASSERT_NE(frame, base::kNoFrame) << i << " of " << count;
      EXPECT_LT(index(frame), count);
      EXPECT_TRUE(seen.insert(index(frame)).second);
    }
    EXPECT_EQ(some.take(PageId{0}, base::kNoFrame, true), base::kNoFrame);
    for (uint32_t frame : seen) some.give_back(FrameId{frame});
    EXPECT_EQ(some.free_count(), count);
    EXPECT_NE(some.take(PageId{0}, FrameId{0}, true), base::kNoFrame);
    some.close();
  }
}

TEST_F(FramePoolTest, NeighbouringPagesGetNeighbouringFrames) {
  open(64);
  FrameId before = pool.take(PageId{32}, base::kNoFrame, true);
  EXPECT_EQ(index(before) % FramePool::kRunFrames, 0u) << "page 32 is the first of a run";
  for (uint32_t page = 33; page < 48; ++page) {
    const FrameId frame = pool.take(PageId{page}, before + 1, true);
    EXPECT_EQ(index(frame), index(before) + 1);
    before = frame;
  }
}

TEST_F(FramePoolTest, APageAloneTakesItsPositionInAFreeRunSoThatItsNeighboursFit) {
  open(64);
  const FrameId first = pool.take(PageId{5}, base::kNoFrame, true);
  EXPECT_EQ(index(first) % FramePool::kRunFrames, 5u);
  const FrameId other = pool.take(PageId{105}, base::kNoFrame, true);
  EXPECT_EQ(index(other) % FramePool::kRunFrames, 105 % FramePool::kRunFrames);
  EXPECT_NE(index(other) / FramePool::kRunFrames, index(first) / FramePool::kRunFrames)
      << "that run is no longer wholly free";
}

TEST_F(FramePoolTest, ARunThatBecomesFreeIsFoundAgain) {
  open(32);
  std::vector<FrameId> all;
  for (uint32_t i = 0; i < 32; ++i) all.push_back(pool.take(PageId{i}, base::kNoFrame, true));
  for (uint32_t i = 16; i < 32; ++i) pool.give_back(FrameId{i});
  EXPECT_EQ(index(pool.take(PageId{3}, base::kNoFrame, true)), 16u + 3);
}

TEST_F(FramePoolTest, AFreeRunRefusedBecauseItIsFreshIsFoundOnceFreshIsAllowed) {
  open(64);
  EXPECT_EQ(pool.take(PageId{3}, base::kNoFrame, false), base::kNoFrame);
  EXPECT_EQ(index(pool.take(PageId{3}, base::kNoFrame, true)) % FramePool::kRunFrames, 3u);
  EXPECT_EQ(index(pool.take(PageId{20}, base::kNoFrame, true)) % FramePool::kRunFrames, 4u);
}

TEST_F(FramePoolTest, AWishThatIsTakenOrOutOfRangeFallsBack) {
  open(16);
  const FrameId first = pool.take(PageId{0}, FrameId{9}, true);
  EXPECT_EQ(index(first), 9u);
  EXPECT_NE(pool.take(PageId{0}, FrameId{9}, true), FrameId{9});
  EXPECT_NE(pool.take(PageId{0}, FrameId{16}, true), base::kNoFrame);
}

TEST_F(FramePoolTest, TakesNoFreshFrameUnlessAllowed) {
  open(16);
  EXPECT_EQ(pool.take(PageId{0}, base::kNoFrame, false), base::kNoFrame);
  EXPECT_EQ(pool.take(PageId{0}, FrameId{3}, false), base::kNoFrame);
  const FrameId frame = pool.take(PageId{0}, base::kNoFrame, true);
  use(frame);
  pool[frame].claim();
  pool[frame].load_failed();
  pool.give_back(frame);
  EXPECT_EQ(pool.find_free_touched(), frame);
  EXPECT_EQ(pool.take(PageId{7}, base::kNoFrame, false), frame);
}

TEST_F(FramePoolTest, MemoryIsCountedWhenTouchedAndGivenBack) {
  open(16, 4 * base::kOsPageBytes);
  const uint64_t empty = budget.used_bytes();
  EXPECT_GE(empty, 16 * (sizeof(Frame) + 4 * sizeof(base::Fingerprint)));
  const FrameId frame = pool.take(PageId{0}, base::kNoFrame, true);
  EXPECT_EQ(budget.used_bytes(), empty);
  pool.touch(frame);
  pool.touch(frame);
  EXPECT_EQ(budget.used_bytes(), empty + 4 * base::kOsPageBytes);
  for (size_t i = 0; i < 4 * base::kOsPageBytes; ++i) pool.bytes(frame)[i] = 'x';
  EXPECT_EQ(allocated_bytes(), 4 * base::kOsPageBytes);
  pool.give_back(frame);
  pool[frame].poisoned = true;
  pool.release_memory(frame);
  EXPECT_EQ(budget.used_bytes(), empty);
  EXPECT_EQ(allocated_bytes(), 0u);
  EXPECT_TRUE(pool[frame].fresh);
  EXPECT_FALSE(pool[frame].poisoned);
  EXPECT_EQ(pool.bytes(frame)[100], 0);
  EXPECT_EQ(pool.find_free_touched(), base::kNoFrame);
}

TEST_F(FramePoolTest, FramesOfLargePagesDoNotOverlap) {
  open(4, 16 * base::kOsPageBytes);
  EXPECT_EQ(pool.bytes(FrameId{1}) - pool.bytes(FrameId{0}), 16 * 4096);
  EXPECT_EQ(pool.fingerprints(FrameId{1}) - pool.fingerprints(FrameId{0}), 16);
  EXPECT_EQ(pool.file_offset(FrameId{3}), 3u * 16 * 4096);
}

TEST_F(FramePoolTest, WhatIsNotFreeIsNotGivenBackTwice) {
  open(16);
  const FrameId frame = pool.take(PageId{0}, base::kNoFrame, true);
  pool[frame].claim();
  EXPECT_DEATH(pool.give_back(frame), "kFree");
  pool[frame].load_failed();
  pool.give_back(frame);
  EXPECT_DEATH(pool.give_back(frame), "is_free");
  EXPECT_DEATH(pool.give_back(FrameId{16}), "frame_count_");
}

TEST_F(FramePoolTest, OnlyFreeMemoryIsReleased) {
  open(16);
  const FrameId frame = pool.take(PageId{0}, base::kNoFrame, true);
  EXPECT_DEATH(pool.release_memory(frame), "is_free");
}

// Random takes and returns against a set.
TEST_F(FramePoolTest, AgreesWithAModel) {
  open(77);
  uint64_t random = 88172645463325252;
  std::set<uint32_t> taken;
  for (int i = 0; i < 20'000; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    if (random % 3 != 0) {
      const FrameId frame =
          pool.take(PageId{random >> 32}, FrameId{static_cast<uint32_t>(random >> 8) % 90}, true);
      ASSERT_EQ(frame == base::kNoFrame, taken.size() == 77);
      if (frame != base::kNoFrame) {
        ASSERT_LT(index(frame), 77u);
        ASSERT_TRUE(taken.insert(index(frame)).second);
      }
    } else if (!taken.empty()) {
      auto it = taken.lower_bound(static_cast<uint32_t>(random >> 8) % 77);
      if (it == taken.end()) it = taken.begin();
      pool.give_back(FrameId{*it});
      taken.erase(it);
    }
    ASSERT_EQ(pool.free_count(), 77 - taken.size());
  }
}

}  // namespace
}  // namespace cache
