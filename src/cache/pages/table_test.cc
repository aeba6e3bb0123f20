#include "cache/pages/table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace cache {
namespace {

constexpr uint64_t kRange = uint64_t{1} << 40;
constexpr uint64_t kRegions = 64;
constexpr uint64_t kRegionBytes = Table::kRegionOsPages * base::kOsPageBytes;

class TableTest : public testing::Test {
 protected:
  explicit TableTest(size_t page_bytes = 4 * base::kOsPageBytes)
      : page_bytes(page_bytes), pieces(page_bytes / base::kOsPageBytes) {
    void* memory = mmap(nullptr, kRegions * base::kOsPageBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    entries = static_cast<Table::Entry*>(memory);
    EXPECT_TRUE(table.open(entries, kRange, kRegions * kRegionBytes, page_bytes, budget, nullptr));
  }
  ~TableTest() override {
    table.close();
    munmap(entries, kRegions * base::kOsPageBytes);
  }
  int64_t delta(PageId page) const {
    return reinterpret_cast<int64_t>(frame()) - static_cast<int64_t>(kRange + index(page) * page_bytes) + 1;
  }
  static const char* frame() { return reinterpret_cast<const char*>(uint64_t{0x7f0000000000}); }
  // Do all entries of the page, and no others, hold the value?
  void expect_entries(PageId page, int64_t value) {
    const uint64_t first = index(page) * pieces;
    for (uint64_t i = 0; i < pieces; ++i) EXPECT_EQ(entries[first + i].load(), value) << "entry " << i;
    if (first > 0) EXPECT_NE(entries[first - 1].load(), value);
    EXPECT_NE(entries[first + pieces].load(), value);
  }

  size_t page_bytes;
  uint64_t pieces;
  Budget budget;
  Table table;
  Table::Entry* entries = nullptr;
};

TEST_F(TableTest, AnEntryTranslatesAnAddressByOneAddition) {
  const PageId page{7};
  table.publish(page, frame(), Table::Heat::kHot);
  for (uint64_t i = 0; i < pieces; ++i) {
    const auto address = static_cast<int64_t>(kRange + 7 * page_bytes + i * base::kOsPageBytes + 123);
    EXPECT_EQ(address + table.entry(page, i) - 1,
              reinterpret_cast<int64_t>(frame()) + static_cast<int64_t>(i * base::kOsPageBytes + 123));
  }
  expect_entries(page, delta(page));
}

TEST_F(TableTest, CoolThenLockTellsWhetherThePageWasTouched) {
  const PageId page{7};
  table.publish(page, frame(), Table::Heat::kHot);
  EXPECT_TRUE(table.cool(page)) << "new pages count as touched";
  expect_entries(page, -delta(page));
  EXPECT_FALSE(table.cool(page));
  EXPECT_FALSE(table.lock(page));
  expect_entries(page, Table::kLocked);
  table.reopen(page, frame());
  expect_entries(page, delta(page));
  table.cool(page);
  entries[7 * pieces + pieces - 1] = delta(page);  // touched in its last OS page
  EXPECT_TRUE(table.lock(page));
}

TEST_F(TableTest, TouchOfOneOsPageIsSeenByCool) {
  const PageId page{7};
  table.publish(page, frame(), Table::Heat::kCooling);
  EXPECT_FALSE(table.cool(page));
  entries[7 * pieces + pieces - 1] = delta(page);
  EXPECT_TRUE(table.cool(page));
  EXPECT_FALSE(table.cool(page));
}

TEST_F(TableTest, LockClosesUnknownEntriesToo) {
  const PageId page{3};
  table.publish(page, frame(), Table::Heat::kCooling);
  EXPECT_FALSE(table.is_hot(page));
  entries[3 * pieces + 1] = Table::kUnknown;
  EXPECT_TRUE(table.is_hot(page)) << "a lost entry may have been hot";
  EXPECT_TRUE(table.lock(page)) << "a lost entry may have been hot";
  expect_entries(page, Table::kLocked);
  EXPECT_DEATH(table.lock(page), "kLocked");
}

TEST_F(TableTest, ClearMakesUnknown) {
  const PageId page{3};
  table.publish(PageId{2}, frame(), Table::Heat::kHot);
  table.publish(page, frame(), Table::Heat::kHot);
  table.publish(PageId{4}, frame(), Table::Heat::kHot);
  table.lock(page);
  table.clear(page);
  expect_entries(page, Table::kUnknown);
  EXPECT_DEATH(for (int i = 0; i < 3; ++i) table.clear(page), "kPresent");
}

TEST_F(TableTest, TablePagesAreCountedAndTheOldestEmptyOnesGivenBack) {
  const uint64_t pages_per_region = Table::kRegionOsPages / pieces;
  for (uint64_t region = 0; region < 32; ++region) {
    table.publish(PageId{region * pages_per_region}, frame(), Table::Heat::kHot);
    table.publish(PageId{region * pages_per_region + 1}, frame(), Table::Heat::kHot);
  }
  EXPECT_EQ(budget.used_bytes(), 32 * base::kOsPageBytes);
  for (uint64_t region = 0; region < 32; ++region) table.clear(PageId{region * pages_per_region});
  EXPECT_EQ(budget.used_bytes(), 32 * base::kOsPageBytes) << "a page of each region is still resident";
  for (uint64_t region = 0; region < 32; ++region) table.clear(PageId{region * pages_per_region + 1});
  EXPECT_EQ(budget.used_bytes(), Table::kEmptyRegionLimit * base::kOsPageBytes);
  unsigned char present[kRegions];
  ASSERT_EQ(mincore(entries, kRegions * base::kOsPageBytes, present), 0);
  uint64_t present_count = 0;
  for (unsigned char p : present) present_count += p & 1;
  EXPECT_EQ(present_count, Table::kEmptyRegionLimit);
}

TEST_F(TableTest, ARegionThatIsUsedAgainBeforeItsTurnStays) {
  const uint64_t pages_per_region = Table::kRegionOsPages / pieces;
  table.publish(PageId{0}, frame(), Table::Heat::kHot);
  table.clear(PageId{0});
  table.publish(PageId{1}, frame(), Table::Heat::kHot);
  for (uint64_t region = 1; region < 40; ++region) {
    table.publish(PageId{region * pages_per_region}, frame(), Table::Heat::kHot);
    table.clear(PageId{region * pages_per_region});
  }
  expect_entries(PageId{1}, delta(PageId{1}));
  table.clear(PageId{1});
  EXPECT_EQ(budget.used_bytes() / base::kOsPageBytes, Table::kEmptyRegionLimit);
  // A region that becomes empty again and again takes one element of the ring of empty regions, not sixteen.
  for (int i = 0; i < 100; ++i) {
    table.publish(PageId{1}, frame(), Table::Heat::kHot);
    table.clear(PageId{1});
  }
  EXPECT_LE(budget.used_bytes() / base::kOsPageBytes, Table::kEmptyRegionLimit);
  table.publish(PageId{1}, frame(), Table::Heat::kHot);
  expect_entries(PageId{1}, delta(PageId{1}));
}

}  // namespace
}  // namespace cache
