// Regions that are mapped at their own addresses (regions.h).
#include "cache/pages/regions.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "cache/testing/test_mappings.h"
#include "cache/testing/test_world.h"

namespace cache {
namespace {

constexpr uint64_t kOs = base::kOsPageBytes;
constexpr uint64_t kRegionPages = kRegionBytes / kOs;

// Everything may be mapped except single OS pages.
class TestMappable final : public Mappable {
 public:
  bool find(uint64_t& begin, uint64_t& end) override {
    while (begin < end && left.contains(begin)) begin += kOs;
    if (begin == end) return false;
    uint64_t stop = begin;
    while (stop < end && !left.contains(stop)) stop += kOs;
    end = stop;
    return true;
  }
  void ended(RegionsEnd reason) override {
    EXPECT_FALSE(why.has_value());
    why = reason;
  }
  std::set<uint64_t> left;  // addresses
  std::optional<RegionsEnd> why;
};

class RegionsTest : public WorldTest {
 protected:
  void SetUp() override { open_regions({.frame_count = 4 * kRegionPages, .range_pages = 8 * kRegionPages}); }
  void TearDown() override { close(); }
  void close() {
    if (world != nullptr) world->cache->verify();
    b.reset();
    a.reset();
    world.reset();
    if (reserved != 0) munmap(reinterpret_cast<void*>(kRangeBegin), reserved);
    reserved = 0;
    mappable.why.reset();
  }
  void open_regions(const TestParameters& parameters) {
    close();
    open(parameters);
    reserved = world->range_bytes;
    void* const range = mmap(reinterpret_cast<void*>(kRangeBegin), reserved, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK_EQ(reinterpret_cast<uint64_t>(range), kRangeBegin);
    world->cache->begin_regions(mappable);
  }
  void reserve() {
    reserved = world->range_bytes;
    void* const range = mmap(reinterpret_cast<void*>(kRangeBegin), reserved, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK_EQ(reinterpret_cast<uint64_t>(range), kRangeBegin);
  }
  // Whether the kernel can read the byte at the page's own address.
  static bool can_read(uint64_t address) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const bool can = ::write(ends[1], reinterpret_cast<char*>(address), 1) == 1;
    ::close(ends[0]);
    ::close(ends[1]);
    return can;
  }
  bool is_mapped(uint64_t page) { return can_read(world->address(page)); }
  char* own(uint64_t page) { return reinterpret_cast<char*>(world->address(page)); }
  bool map_own(uint64_t page) { return world->cache->map_own(PageId{page}, *a->workspace); }
  void set_own(uint64_t page, char value) { memset(own(page), value, page_bytes); }
  void discard(uint64_t first, uint64_t count, Cache::After after) {
    world->cache->discard(PageId{first}, count, *a->workspace, after);
  }
  const char* frame_of(uint64_t page) {
    const char* const found = a->translate(world->address(page));
    a->release_all();
    return found;
  }

  TestMappable mappable;
  uint64_t reserved = 0;
};

TEST_F(RegionsTest, TheFirstLoadMapsTheWholeRegionWithFramesSideBySide) {
  write(kRegionPages + 7, 'x');
  EXPECT_EQ(world->cache->resident_count(), kRegionPages);
  EXPECT_EQ(*own(kRegionPages + 7), 'x');
  for (uint64_t i = 0; i < kRegionPages; ++i) {
    EXPECT_TRUE(world->resident(kRegionPages + i));
    EXPECT_EQ(frame_of(kRegionPages + i), frame_of(kRegionPages) + i * kOs);
  }
  EXPECT_FALSE(is_mapped(0));
  EXPECT_FALSE(is_mapped(2 * kRegionPages));
}

TEST_F(RegionsTest, BothAddressesShowTheSame) {
  ASSERT_TRUE(map_own(3));
  set_own(3, 'a');
  EXPECT_EQ(value(3), 'a');
  write(4, 'b');
  EXPECT_EQ(*own(4), 'b');
  EXPECT_EQ(*own(5), 0);
}

TEST_F(RegionsTest, MemoryIsChargedForTheWholeRegion) {
  const uint64_t before = world->cache->budget().used_bytes();
  ASSERT_TRUE(map_own(0));
  EXPECT_GE(world->cache->budget().used_bytes(), before + kRegionBytes);
  EXPECT_EQ(world->cache->frames_bytes(), kRegionBytes);
}

TEST_F(RegionsTest, ARegionWithPagesInMemoryIsLeftAlone) {
  close();
  open({.frame_count = 4 * kRegionPages, .range_pages = 8 * kRegionPages});
  write(5, 'x');  // before regions begin
  reserve();
  world->cache->begin_regions(mappable);
  EXPECT_FALSE(map_own(5));
  EXPECT_FALSE(map_own(6));
  EXPECT_TRUE(map_own(kRegionPages));
  EXPECT_FALSE(mappable.why.has_value());
}

TEST_F(RegionsTest, EndsWhenThereIsNoRoomForAnother) {
  for (uint64_t region = 0; region < 8 && world->cache->maps_regions(); ++region)
    map_own(region * kRegionPages);
  EXPECT_EQ(mappable.why, RegionsEnd::kMemoryFull);
  EXPECT_GE(world->cache->resident_count(), 2 * kRegionPages);
  EXPECT_TRUE(is_mapped(0));  // stays until a page of it is evicted
  write(7 * kRegionPages, 'z');
  EXPECT_FALSE(is_mapped(7 * kRegionPages));
}

TEST_F(RegionsTest, EndsWhenTheBudgetIsUsedUp) {
  ASSERT_TRUE(map_own(0));
  const uint64_t rest = world->cache->budget().limit_bytes() - world->cache->budget().used_bytes();
  world->cache->charge(rest - kRegionBytes);
  EXPECT_FALSE(map_own(kRegionPages));
  EXPECT_EQ(mappable.why, RegionsEnd::kMemoryFull);
  world->cache->uncharge(rest - kRegionBytes);
  EXPECT_FALSE(map_own(kRegionPages));
}

// Otherwise the process would soon be refused mappings that it needs.
TEST(RegionsAlone, EndWhenThereAreAsManyAsMayBe) {
  Regions regions;
  ASSERT_TRUE(regions.open(8 * kRegionBytes).has_value());
  TestMappable mappable;
  regions.begin(mappable, 2);
  for (uint64_t region = 0; region < 2; ++region) {
    ASSERT_TRUE(regions.begin_mapping());
    regions.note_mapped(region * kRegionBytes, FrameId{0});
  }
  EXPECT_TRUE(regions.is_on());
  EXPECT_FALSE(regions.begin_mapping());
  EXPECT_EQ(mappable.why, RegionsEnd::kMappings);
  EXPECT_TRUE(regions.is_mapped(0));
  for (uint64_t region = 0; region < 2; ++region) regions.note_unmapped(region * kRegionBytes);
  EXPECT_FALSE(regions.any());
  regions.close();
}

TEST_F(RegionsTest, EvictionUnmapsTheRegionAfterTheEntriesAreLocked) {
  ASSERT_TRUE(map_own(0));
  ASSERT_TRUE(map_own(kRegionPages));
  set_own(1, 'a');
  set_own(kRegionPages + 1, 'b');
  bool looked = false;
  world->holders.on_barrier = [&] {
    // Before anything is compared: some entries are locked, and the page is not accessible at its own address.
    for (uint64_t page = 0; page < 2 * kRegionPages; ++page)
      if (world->entries[page].load() == Table::kLocked) {
        EXPECT_FALSE(is_mapped(page));
        looked = true;
      }
  };
  evict();
  EXPECT_TRUE(looked);
  EXPECT_EQ(mappable.why, RegionsEnd::kEviction);
  EXPECT_FALSE(is_mapped(0));
  EXPECT_FALSE(is_mapped(kRegionPages));
  EXPECT_EQ(value(1), 'a');
  EXPECT_EQ(value(kRegionPages + 1), 'b');
  EXPECT_EQ(value(2), 0);
  EXPECT_FALSE(map_own(1));  // it stays unmapped
}

TEST_F(RegionsTest, AnEvictionLeavesOtherRegionsMapped) {
  ASSERT_TRUE(map_own(0));
  ASSERT_TRUE(map_own(kRegionPages));
  while (world->cache->evict(*a->workspace) == 0) {
  }
  EXPECT_NE(is_mapped(0), is_mapped(kRegionPages));
}

// The kernel has one mapping for the three regions.
TEST_F(RegionsTest, ARegionIsUnmappedWhereThereAreNoMoreMappings) {
  for (uint64_t region = 0; region < 3; ++region) {
    ASSERT_TRUE(map_own(region * kRegionPages));
    set_own(region * kRegionPages + 1, static_cast<char>('a' + region));
  }
  bool were_all;
  {
    const AllMappings mappings;
    were_all = mappings.are_all();
    world->cache->unmap_regions(world->address(kRegionPages), kRegionBytes);
  }
  if (!were_all) GTEST_SKIP() << "the kernel allows too many mappings";
  for (uint64_t region = 0; region < 3; ++region) {
    EXPECT_FALSE(is_mapped(region * kRegionPages));
    EXPECT_FALSE(map_own(region * kRegionPages));  // its pages are in memory
    EXPECT_EQ(value(region * kRegionPages + 1), static_cast<char>('a' + region));
  }
}

TEST_F(RegionsTest, WhatIsStoredByItsOwnAddressIsNeverTakenForClean) {
  // So few frames are free that pages are cleaned.
  open_regions({.frame_count = 3 * kRegionPages + 256, .range_pages = 8 * kRegionPages});
  for (uint64_t region = 0; region < 3; ++region) ASSERT_TRUE(map_own(region * kRegionPages));
  ASSERT_TRUE(world->cache->prepare_cleaning().has_value());
  world->cache->end_regions(RegionsEnd::kFork);
  for (uint64_t page = 0; page < 3 * kRegionPages; ++page)
    world->entries[page].store(-world->entries[page].load());
  for (int i = 0; i < 100; ++i) world->cache->idle_step(*a->workspace);
  for (uint64_t page = 0; page < 3 * kRegionPages; ++page) set_own(page, 'n');
  evict();
  for (uint64_t page = 0; page < 3 * kRegionPages; ++page) ASSERT_EQ(value(page), 'n') << page;
}

TEST_F(RegionsTest, DiscardedPagesThatStayInUseKeepTheirFrames) {
  ASSERT_TRUE(map_own(0));
  for (uint64_t page = 0; page < 8; ++page) set_own(page, 'x');
  const char* const frame = frame_of(3);
  discard(2, 4, Cache::After::kInUse);
  EXPECT_EQ(frame_of(3), frame);
  for (uint64_t page = 0; page < 8; ++page) {
    EXPECT_TRUE(is_mapped(page));
    EXPECT_EQ(*own(page), page >= 2 && page < 6 ? 0 : 'x') << page;
  }
  set_own(3, 'y');
  EXPECT_EQ(value(3), 'y');
  EXPECT_EQ(world->cache->resident_count(), kRegionPages);
}

TEST_F(RegionsTest, FreedPagesLeaveAndComeBackAtTheirOwnAddress) {
  ASSERT_TRUE(map_own(0));
  for (uint64_t page = 0; page < 8; ++page) set_own(page, 'x');
  discard(2, 4, Cache::After::kFree);
  EXPECT_EQ(world->cache->resident_count(), kRegionPages - 4);
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(is_mapped(page), page < 2 || page >= 6) << page;
  EXPECT_FALSE(world->resident(3));
  ASSERT_TRUE(map_own(3));
  EXPECT_EQ(*own(3), 0);
  EXPECT_EQ(*own(2), 0);  // all missing pages came at once
  set_own(3, 'y');
  EXPECT_EQ(value(3), 'y');
  EXPECT_EQ(*own(7), 'x');
}

TEST_F(RegionsTest, AllPagesFreedLeaveNothing) {
  for (int round = 0; round < 20; ++round) {
    for (uint64_t region = 0; region < 2; ++region) {
      ASSERT_TRUE(map_own(region * kRegionPages));
      for (uint64_t page = 0; page < kRegionPages; page += 5) {
        ASSERT_EQ(*own(region * kRegionPages + page), 0);
        set_own(region * kRegionPages + page, 'x');
      }
    }
    discard(0, 2 * kRegionPages, Cache::After::kFree);
    EXPECT_EQ(world->cache->resident_count(), 0u);
    EXPECT_EQ(world->cache->frames_bytes(), 0u);
    EXPECT_FALSE(is_mapped(0));
  }
  EXPECT_FALSE(mappable.why.has_value());
}

TEST_F(RegionsTest, AFreedPageThatSomebodyHoldsStaysUntouchable) {
  ASSERT_TRUE(map_own(0));
  set_own(3, 'x');
  ASSERT_NE(a->translate(world->address(3)), nullptr);
  world->cache->discard(PageId{3}, 1, *b->workspace, Cache::After::kFree);
  EXPECT_FALSE(is_mapped(3));
  EXPECT_EQ(value(3), 0);
}

TEST_F(RegionsTest, OnlyWhatMayBeMappedIs) {
  mappable.left = {world->address(3), world->address(100), world->address(101)};
  ASSERT_TRUE(map_own(0));
  EXPECT_EQ(world->cache->resident_count(), kRegionPages - 3);
  EXPECT_FALSE(is_mapped(3));
  EXPECT_FALSE(is_mapped(100));
  EXPECT_TRUE(is_mapped(102));
  write(3, 'x');  // by translation, alone
  EXPECT_FALSE(is_mapped(3));
  mappable.left.clear();
  ASSERT_TRUE(map_own(3));
  EXPECT_EQ(*own(3), 'x');
  ASSERT_TRUE(map_own(100));
  EXPECT_EQ(*own(101), 0);
}

TEST_F(RegionsTest, WhatIsCutComesBackWhenItMay) {
  ASSERT_TRUE(map_own(0));
  set_own(3, 'x');
  world->cache->cut(world->address(3), kOs);
  EXPECT_FALSE(is_mapped(3));
  EXPECT_TRUE(is_mapped(2));
  EXPECT_TRUE(is_mapped(4));
  ASSERT_TRUE(map_own(3));
  EXPECT_EQ(*own(3), 'x');
}

TEST_F(RegionsTest, UnmappedOnRequest) {
  ASSERT_TRUE(map_own(0));
  ASSERT_TRUE(map_own(kRegionPages));
  set_own(kRegionPages, 'x');
  world->cache->unmap_regions(world->address(kRegionPages), kOs);
  EXPECT_TRUE(is_mapped(0));
  EXPECT_FALSE(is_mapped(kRegionPages));
  EXPECT_FALSE(map_own(kRegionPages));  // its pages are known
  EXPECT_EQ(value(kRegionPages), 'x');
  world->cache->end_regions(RegionsEnd::kFork);
  world->cache->unmap_all_regions();
  EXPECT_FALSE(is_mapped(0));
  EXPECT_FALSE(world->cache->has_regions());
}

TEST_F(RegionsTest, LargerPages) {
  for (const uint64_t page : {uint64_t{64} << 10, uint64_t{1} << 20, uint64_t{2} << 20}) {
    const uint64_t count = kRegionBytes / page;
    open_regions(
        {.page_bytes = page, .frame_count = static_cast<uint32_t>(8 * count), .range_pages = 8 * count});
    ASSERT_TRUE(map_own(count));
    EXPECT_EQ(world->cache->resident_count(), count);
    memset(own(count), 'x', kRegionBytes);
    EXPECT_EQ(value(2 * count - 1), 'x');
    discard(2 * count - 1, 1, Cache::After::kInUse);
    EXPECT_EQ(*own(2 * count - 1), 0);
    evict();
    EXPECT_FALSE(is_mapped(count));
    if (count > 1) EXPECT_EQ(value(count), 'x');
  }
}

TEST_F(RegionsTest, MissesThatWouldComeAloneBringRegions) {
  LoadQueue* const loads = *world->cache->open_loads();
  auto begun =
      world->cache->begin_load(PageId{5}, *a->workspace, a->workspace->stream, *loads, [](void*) {}, nullptr);
  EXPECT_EQ(begun.value(), Partition::Begun::kDone);
  EXPECT_TRUE(is_mapped(0));
  world->cache->close_loads(*loads);
  const auto pinned = world->cache->pin(PageId{kRegionPages + 5}, *a->workspace);
  ASSERT_TRUE(pinned.has_value());
  EXPECT_TRUE(is_mapped(kRegionPages));
  world->cache->unpin(PageId{kRegionPages + 5});
}

// Threads store through pages' own addresses and through translations, and map what they miss, while others evict, discard and cut.
TEST_F(RegionsTest, ThreadsStoreWhileRegionsComeAndGo) {
  const uint64_t seconds = environment("SPILLWAY_TEST_SECONDS", 1);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (uint64_t round = 0; std::chrono::steady_clock::now() < until; ++round) {
    open_regions({.frame_count = 3 * kRegionPages,
                  .range_pages = 8 * kRegionPages,
                  .partition_count = 1,
                  .chaos_seed = round + 1});
    constexpr uint64_t kThreads = 3, kPages = 4 * kRegionPages;
    std::atomic<bool> evicts{false}, done{false};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        TestThread thread(*world, static_cast<uint32_t>(t + 2));
        // Each thread has a byte in each page. It stores at the page's own address if that is mapped, else through a translation.
        std::vector<unsigned char> expected(kPages);
        std::mt19937_64 random(round * 31 + t);
        for (int i = 0; i < 6000; ++i) {
          const uint64_t drawn = random();
          const uint64_t page = (drawn >> 33) % kPages;
          const uint64_t at = world->address(page, t);
          if (i == 3000 && t == 0) evicts = true;
          if ((drawn >> 20) % 2 == 0) world->cache->map_own(PageId{page}, *thread.workspace);
          unsigned char seen, next = static_cast<unsigned char>(drawn >> 50);
          iovec local = {&seen, 1}, remote = {reinterpret_cast<void*>(at), 1};
          if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1) thread.read(at, &seen, 1);
          ASSERT_EQ(seen, expected[page]) << "page " << page << " round " << round;
          local.iov_base = &next;
          if (process_vm_writev(getpid(), &local, 1, &remote, 1, 0) != 1) thread.write(at, &next, 1);
          expected[page] = next;
          thread.release_all();
        }
      });
    std::thread evictor([&] {
      while (!done) {
        if (evicts) world->cache->evict(*b->workspace);
        world->cache->cut(world->address(round % kPages), 3 * kOs);
        world->cache->discard(PageId{5 * kRegionPages}, kRegionPages, *b->workspace, Cache::After::kFree);
        world->cache->map_own(PageId{5 * kRegionPages + round % 512}, *b->workspace);
      }
    });
    for (std::thread& thread : threads) thread.join();
    done = true;
    evictor.join();
    world->cache->verify();
  }
}

}  // namespace
}  // namespace cache
