#include "cache/pages/frame_pool.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cache/testing/test_mappings.h"
#include "sys/huge_pages.h"
#include "sys/memory.h"

namespace cache {
namespace {

constexpr uint32_t kBlockFrames = sys::kHugePageBytes / base::kOsPageBytes;

bool kernel_has_large_pages() {
  auto file = sys::create_memory_file(sys::kHugePageBytes, "probe");
  auto memory = sys::map_shared_high(*file, sys::kHugePageBytes);
  return sys::fill_huge_page(*memory);
}

class FramePoolTest : public testing::Test {
 protected:
  void open(uint32_t frame_count, size_t page_bytes = base::kOsPageBytes, bool large = false) {
    ASSERT_TRUE(pool.open(frame_count, page_bytes, budget, watch, large));
    opened = true;
  }
  ~FramePoolTest() override {
    if (opened) pool.close();
  }
  // Makes a taken frame one that held something and is free again.
  void use(FrameId frame) {
    pool.touch(frame);
    pool.bytes(frame)[0] = 1;
  }
  uint64_t allocated_bytes() {
    struct stat status = {};
    fstat(pool.descriptor(), &status);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }

  // How much of the pool's memory is mapped as large OS pages.
  uint64_t mapped_large_bytes() {
    std::ifstream maps("/proc/self/smaps");
    const auto begin = reinterpret_cast<uint64_t>(pool.bytes(FrameId{0}));
    bool here = false;
    for (std::string line; std::getline(maps, line);) {
      uint64_t from, to, kilobytes;
      if (sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) here = from <= begin && begin < to;
      if (here && sscanf(line.c_str(), "ShmemPmdMapped: %lu kB", &kilobytes) == 1) return kilobytes << 10;
    }
    return 0;
  }

  Budget budget;
  sys::WriteWatch watch;  // closed, unless a test opens it
  FramePool pool;
  bool opened = false;
};

TEST_F(FramePoolTest, HandsOutEveryFrameOnce) {
  for (uint32_t count : {1u, 8u, 15u, 16u, 17u, 63u, 64u, 65u, 200u}) {
    FramePool some;
    ASSERT_TRUE(some.open(count, base::kOsPageBytes, budget, watch));
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

TEST_F(FramePoolTest, PagesOfARegionGetTheirOwnPositionsInOneBlock) {
  open(3 * kBlockFrames + 100);
  const FrameId first = pool.take(PageId{7 * kBlockFrames + 300}, base::kNoFrame, true);
  EXPECT_EQ(index(first) % kBlockFrames, 300u);
  const FrameId other = pool.take(PageId{9 * kBlockFrames + 300}, base::kNoFrame, true);
  EXPECT_EQ(index(other) % kBlockFrames, 300u);
  EXPECT_NE(index(other) / kBlockFrames, index(first) / kBlockFrames);
  // In any order, and far apart.
  EXPECT_EQ(pool.take(PageId{7 * kBlockFrames + 511}, base::kNoFrame, true), first + 211);
  EXPECT_EQ(pool.take(PageId{7 * kBlockFrames}, base::kNoFrame, true), FrameId{index(first) - 300});
  EXPECT_EQ(pool.take(PageId{9 * kBlockFrames + 299}, base::kNoFrame, true), FrameId{index(other) - 1});
}

TEST_F(FramePoolTest, ABlockThatBecameFreeIsGivenToAnotherRegion) {
  open(kBlockFrames);
  const FrameId first = pool.take(PageId{5}, base::kNoFrame, true);
  EXPECT_EQ(index(first), 5u);
  const FrameId second = pool.take(PageId{kBlockFrames + 200}, base::kNoFrame, true);
  EXPECT_NE(second, FrameId{200}) << "a block that is in use is not another region's";
  pool.give_back(first);
  pool.give_back(second);
  EXPECT_EQ(pool.take(PageId{3 * kBlockFrames + 44}, base::kNoFrame, true), FrameId{44});
  // The region that had the block.
  EXPECT_NE(pool.take(PageId{5 + 40}, base::kNoFrame, true), FrameId{45});
}

TEST_F(FramePoolTest, GrowsByFramesThatTookNothingBefore) {
  constexpr uint32_t kFirst = kBlockFrames + 100, kAll = 3 * kBlockFrames;
  ASSERT_TRUE(pool.open(kFirst, base::kOsPageBytes, budget, watch, false, kAll));
  opened = true;
  std::set<uint32_t> seen;
  for (uint32_t page = 0; page < kFirst; ++page) {
    const FrameId frame = pool.take(PageId{page}, base::kNoFrame, true);
    pool.touch(frame);
    pool.bytes(frame)[0] = static_cast<char>(page % 100 + 1);
    ASSERT_TRUE(seen.insert(index(frame)).second);
  }
  EXPECT_EQ(pool.take(PageId{0}, base::kNoFrame, true), base::kNoFrame);
  const uint64_t used = budget.used_bytes();
  ASSERT_TRUE(pool.grow(kAll));
  EXPECT_EQ(pool.frame_count(), kAll);
  EXPECT_EQ(pool.free_count(), kAll - kFirst);
  EXPECT_GT(budget.used_bytes(), used + (kAll - kFirst) * sizeof(Frame));
  EXPECT_LT(budget.used_bytes(), used + (kAll - kFirst) * 64);
  EXPECT_EQ(allocated_bytes(), kFirst * base::kOsPageBytes);
  // The block that was partly used already belongs to no region; the last one to this page's.
  const FrameId placed = pool.take(PageId{9 * kBlockFrames + 77}, base::kNoFrame, true);
  EXPECT_EQ(index(placed), 2 * kBlockFrames + 77);
  ASSERT_TRUE(seen.insert(index(placed)).second);
  for (uint32_t i = kFirst + 1; i < kAll; ++i) {
    const FrameId frame = pool.take(PageId{i}, base::kNoFrame, true);
    ASSERT_NE(frame, base::kNoFrame);
    for (size_t byte = 0; byte < base::kOsPageBytes; byte += 512) ASSERT_EQ(pool.bytes(frame)[byte], 0);
    ASSERT_TRUE(seen.insert(index(frame)).second);
  }
  EXPECT_EQ(pool.take(PageId{0}, base::kNoFrame, true), base::kNoFrame);
  EXPECT_EQ(seen.size(), kAll);
  EXPECT_TRUE(pool.grow(kAll)) << "nothing to do";
}

TEST_F(FramePoolTest, ABlockIsTakenAsOneLargePageAndCounted) {
  open(2 * kBlockFrames, base::kOsPageBytes, true);
  const uint64_t empty = budget.used_bytes();
  const FrameId frame = pool.take(PageId{3}, base::kNoFrame, true);
  const bool large = kernel_has_large_pages();
  EXPECT_EQ(budget.used_bytes() - empty, large ? sys::kHugePageBytes : 0);
  EXPECT_EQ(pool.touched_count(), large ? kBlockFrames : 0);
  EXPECT_EQ(pool.free_touched_count(), large ? kBlockFrames - 1 : 0);
  EXPECT_EQ(pool.free_count(), 2 * kBlockFrames - 1);
  EXPECT_EQ(mapped_large_bytes(), large ? sys::kHugePageBytes : 0);
  pool.touch(frame);
  EXPECT_EQ(budget.used_bytes() - empty, large ? sys::kHugePageBytes : base::kOsPageBytes);
  for (size_t i = 0; i < base::kOsPageBytes; ++i) ASSERT_EQ(pool.bytes(frame)[i], 0);
  // Its frames are released one by one.
  pool.give_back(frame);
  pool.release_memory(frame);
  EXPECT_EQ(budget.used_bytes() - empty, large ? sys::kHugePageBytes - base::kOsPageBytes : 0);
  EXPECT_EQ(allocated_bytes(), large ? sys::kHugePageBytes - base::kOsPageBytes : 0);
}

TEST_F(FramePoolTest, NoLargePageWhereTheBudgetIsNearlyUsedUp) {
  open(4 * kBlockFrames, base::kOsPageBytes, true);
  budget.set_limit(budget.used_bytes() + 2 * sys::kHugePageBytes);
  const uint64_t empty = budget.used_bytes();
  pool.take(PageId{0}, base::kNoFrame, true);
  pool.take(PageId{kBlockFrames}, base::kNoFrame, true);
  // The second would have filled it.
  EXPECT_EQ(budget.used_bytes() - empty, kernel_has_large_pages() ? sys::kHugePageBytes : 0);
}

TEST_F(FramePoolTest, WatchedFramesOfALargePageKeepTheirContent) {
  if (auto opened = watch.open(); !opened) GTEST_SKIP() << opened.error().message;
  open(kBlockFrames, base::kOsPageBytes, true);
  std::vector<FrameId> all;
  for (uint32_t page = 0; page < kBlockFrames; ++page) {
    all.push_back(pool.take(PageId{page}, base::kNoFrame, true));
    pool.bytes(all.back())[7] = static_cast<char>(page % 251);
  }
  ASSERT_TRUE(pool.protect(FrameId{40}, 2));
  // Unmapped OS pages do not count as untouched, and the large page was split.
  for (FrameId frame : all) ASSERT_EQ(pool.bytes(frame)[9], 0);
  pool.bytes(FrameId{41})[8] = 1;
  uint64_t untouched[1];
  pool.watch().find_untouched(pool.bytes(FrameId{38}), 8, untouched);
  EXPECT_EQ(untouched[0], 1u << 2) << "frame 40 alone";
  for (uint32_t page = 0; page < kBlockFrames; ++page)
    ASSERT_EQ(pool.bytes(all[page])[7], static_cast<char>(page % 251));
}

// The kernel has one mapping for the three frames.
TEST_F(FramePoolTest, AGuardEndsWhereThereAreNoMoreMappings) {
  open(8);
  for (uint32_t frame = 2; frame < 5; ++frame) pool.guard(FrameId{frame}, 0, sys::Access::kNone);
  bool were_all;
  {
    const AllMappings mappings;
    were_all = mappings.are_all();
    pool.end_guard(FrameId{3});
  }
  if (!were_all) GTEST_SKIP() << "the kernel allows too many mappings";
  for (uint32_t frame = 2; frame < 5; ++frame) {
    EXPECT_FALSE(pool[FrameId{frame}].guarded);
    pool.bytes(FrameId{frame})[0] = 1;
  }
  pool.guard(FrameId{3}, 0, sys::Access::kNone);
  EXPECT_TRUE(pool[FrameId{3}].guarded);
  pool.end_guard(FrameId{3});
  EXPECT_FALSE(pool[FrameId{3}].guarded);
}

// Random takes and returns compared with a set, in a pool with blocks and in a small one.
TEST_F(FramePoolTest, AgreesWithAModelOfBlocks) {
  constexpr uint32_t kFrames = 2 * kBlockFrames + 77;
  open(kFrames, base::kOsPageBytes, true);
  std::mt19937_64 random(1);
  std::set<uint32_t> taken;
  for (int i = 0; i < 40'000; ++i) {
    const uint64_t drawn = random();
    if (drawn % 8 < (i / 5000 % 2 == 0 ? 5 : 3)) {
      const FrameId frame = pool.take(PageId{(drawn >> 32) % (4 * kBlockFrames)}, base::kNoFrame, true);
      ASSERT_EQ(frame == base::kNoFrame, taken.size() == kFrames);
      if (frame == base::kNoFrame) continue;
      ASSERT_LT(index(frame), kFrames);
      ASSERT_TRUE(taken.insert(index(frame)).second);
      pool.touch(frame);
    } else if (!taken.empty()) {
      auto it = taken.lower_bound(static_cast<uint32_t>(drawn >> 8) % kFrames);
      if (it == taken.end()) it = taken.begin();
      pool.give_back(FrameId{*it});
      if (drawn % 64 == 0) pool.release_memory(FrameId{*it});
      taken.erase(it);
    }
    ASSERT_EQ(pool.free_count(), kFrames - taken.size());
    ASSERT_GE(pool.touched_count(), taken.size());
    ASSERT_EQ(pool.touched_count() - pool.free_touched_count(), taken.size());
  }
}

TEST_F(FramePoolTest, AgreesWithAModel) {
  open(77);
  std::mt19937_64 random(1);
  std::set<uint32_t> taken;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t drawn = random();
    if (drawn % 3 != 0) {
      const FrameId frame =
          pool.take(PageId{drawn >> 32}, FrameId{static_cast<uint32_t>(drawn >> 8) % 90}, true);
      ASSERT_EQ(frame == base::kNoFrame, taken.size() == 77);
      if (frame != base::kNoFrame) {
        ASSERT_LT(index(frame), 77u);
        ASSERT_TRUE(taken.insert(index(frame)).second);
      }
    } else if (!taken.empty()) {
      auto it = taken.lower_bound(static_cast<uint32_t>(drawn >> 8) % 77);
      if (it == taken.end()) it = taken.begin();
      pool.give_back(FrameId{*it});
      taken.erase(it);
    }
    ASSERT_EQ(pool.free_count(), 77 - taken.size());
  }
}

}  // namespace
}  // namespace cache
