// Pages with an origin (origins.h), and pages that the cache's user gives up (Partition::forget).
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "cache/testing/test_world.h"

namespace cache {
namespace {

// Each page is filled with one byte.
class TestOrigins final : public Origins {
 public:
  Kind kind_of(PageId page) override { return kinds[index(page)]; }
  uint32_t count_together(PageId, uint32_t most) override { return most < together ? most : together; }
  base::Expected<uint64_t> read(PageId first, const iovec* segments, uint32_t count) override {
    ++reads;
    if (error != 0) return base::failure(error, "no");
    uint64_t got = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t at = (index(first) + i) * page_bytes;
      const uint64_t n = at >= end ? 0 : std::min(segments[i].iov_len, end - at);
      memset(segments[i].iov_base, values[index(first) + i], n);
      got += n;
    }
    return got;
  }

  uint64_t page_bytes = base::kOsPageBytes;
  std::vector<Kind> kinds = std::vector<Kind>(64, Kind::kConstant);
  std::vector<char> values = std::vector<char>(64, 'o');
  uint64_t end = ~uint64_t{0};
  uint32_t together = 64;
  uint32_t reads = 0;
  int error = 0;
};

class OriginsTest : public WorldTest {
 protected:
  void SetUp() override { open_with({}); }
  void open_with(TestParameters parameters) {
    parameters.origins = &origins;
    parameters.watch = false;
    origins.page_bytes = parameters.page_bytes;
    open(parameters);
  }
  Partition::Left forget(uint64_t first, uint64_t count = 1) {
    for (uint64_t page = first; page < first + count; ++page) origins.kinds[page] = Origins::Kind::kGone;
    return world->cache->forget(PageId{first}, count, *b->workspace);
  }
  TestOrigins origins;
};

TEST_F(OriginsTest, APageThatWasOnlyReadIsReadAgain) {
  EXPECT_EQ(value(5), 'o');
  evict();
  EXPECT_EQ(world->device->writes, 0u);
  EXPECT_EQ(value(5), 'o');
  EXPECT_EQ(origins.reads, 2u);
  EXPECT_EQ(world->device->reads, 0u);
}

TEST_F(OriginsTest, AChangedPageGoesToStorage) {
  EXPECT_EQ(value(5), 'o');
  write(5, 'x');
  evict();
  EXPECT_EQ(world->device->writes, 1u);
  EXPECT_EQ(value(5), 'x');
  EXPECT_EQ(origins.reads, 1u);
  origins.kinds[6] = Origins::Kind::kZeros;
  EXPECT_EQ(value(6), 0);
}

TEST_F(OriginsTest, WhatMayChangeIsKeptOnceItWasRead) {
  origins.kinds[5] = Origins::Kind::kChanging;
  EXPECT_EQ(value(5), 'o');
  evict();
  origins.values[5] = 'n';
  EXPECT_EQ(value(5), 'o');
  EXPECT_EQ(origins.reads, 1u);
}

TEST_F(OriginsTest, PastTheEndThereIsNothing) {
  origins.end = 5 * page_bytes;
  EXPECT_EQ(value(4), 'o');
  EXPECT_EQ(value(5), '!');
  EXPECT_EQ(a->error.number, ENXIO);
  EXPECT_EQ(world->cache->resident_count(), 1u);
  world->cache->verify();
  origins.end = 6 * page_bytes;
  EXPECT_EQ(value(5), 'o');
}

TEST_F(OriginsTest, TheLastPageEndsWithZeros) {
  open_with({.page_bytes = 16384, .frame_count = 8});
  origins.kinds[0] = Origins::Kind::kZeros;
  for (uint64_t page = 0; page < 8; ++page) {
    origins.kinds[page] = Origins::Kind::kZeros;
    write(page, 'x');
  }
  evict();
  origins.end = 40 * page_bytes + 5000;
  char bytes[16384];
  ASSERT_TRUE(a->read(world->address(40), bytes, sizeof bytes));
  EXPECT_EQ(std::string(bytes, sizeof bytes), std::string(5000, 'o') + std::string(sizeof bytes - 5000, 0));
}

TEST_F(OriginsTest, AFailedReadIsReported) {
  origins.error = EIO;
  EXPECT_EQ(value(5), '!');
  EXPECT_EQ(a->error.number, EIO);
  world->cache->verify();
  origins.error = 0;
  EXPECT_EQ(value(5), 'o');
}

TEST_F(OriginsTest, PagesThatFollowAreReadAhead) {
  open_with({.frame_count = 32, .range_pages = 64, .read_ahead_pages = 8});
  for (char& value : origins.values) value = static_cast<char>('A' + (&value - origins.values.data()));
  write(9, 'x');
  const uint32_t before = origins.reads;
  origins.end = 14 * page_bytes + 7;
  for (uint64_t page = 0; page < 14; ++page)
    EXPECT_EQ(value(page), page == 9 ? 'x' : origins.values[page]) << page;
  EXPECT_LT(origins.reads, before + 8);
  EXPECT_EQ(value(15), '!');
  origins.end = ~uint64_t{0};
  origins.together = 1;
  const uint32_t alone = origins.reads;
  for (uint64_t page = 16; page < 24; ++page) EXPECT_EQ(value(page), origins.values[page]);
  EXPECT_EQ(origins.reads, alone + 8);
}

TEST_F(OriginsTest, ForgottenPagesLeaveWithoutIo) {
  write(5, 'x');
  evict();
  const uint64_t writes = world->device->writes;
  write(6, 'y');
  EXPECT_EQ(value(7), 'o');
  a->release_all();
  EXPECT_TRUE(forget(0, 64).nothing());
  EXPECT_EQ(world->cache->resident_count(), 0u);
  EXPECT_EQ(world->device->writes, writes);
  EXPECT_EQ(value(6), '!');
  EXPECT_EQ(a->error.number, ESTALE);
  for (uint64_t page : {5, 6, 7}) {
    origins.kinds[page] = Origins::Kind::kConstant;
    EXPECT_EQ(value(page), 'o');
  }
}

TEST_F(OriginsTest, AHeldPageIsOutOfReachAndLeavesLater) {
  char* held = a->translate(world->address(5));
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(forget(5).held, 1u);
  EXPECT_EQ(world->entries[5], Table::kLocked);
  EXPECT_EQ(b->translate(world->address(5)), nullptr);
  EXPECT_EQ(b->error.number, ESTALE);
  world->cache->verify();
  // Nobody else gets the frame.
  for (uint64_t page = 10; page < 30; ++page) {
    origins.kinds[page] = Origins::Kind::kZeros;
    ASSERT_TRUE(b->write(world->address(page), "zz", 2));
    b->release_all();
  }
  EXPECT_EQ(*held, 'o');
  EXPECT_EQ(forget(5).held, 1u);
  a->release_all();
  EXPECT_TRUE(forget(5).nothing());
  EXPECT_EQ(world->entries[5], Table::kUnknown);
  origins.kinds[5] = Origins::Kind::kConstant;
  EXPECT_EQ(value(5), 'o');
}

TEST_F(OriginsTest, APinnedPageIsBusy) {
  ASSERT_TRUE(world->cache->pin(PageId{5}, *a->workspace));
  EXPECT_EQ(forget(5).busy, 1u);
  EXPECT_GT(world->entries[5], 1);
  world->cache->unpin(PageId{5});
  EXPECT_TRUE(forget(5).nothing());
}

}  // namespace
}  // namespace cache
