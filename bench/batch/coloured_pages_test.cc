#include "coloured_pages.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>

namespace load {
namespace {

uint64_t virtual_page(const std::byte* page) { return reinterpret_cast<uintptr_t>(page) / kPageBytes; }

TEST(ColouredPagesTest, PagesAreOfTheColoursAskedForAndNobodyElses) {
  auto pool = PagePool::open(100, Address::kVirtual, 8);
  ASSERT_TRUE(pool);
  auto some = pool->take(30, 0, 3), others = pool->take(50, 3, 8), more = pool->take(6, 0, 3);
  ASSERT_TRUE(some && others && more);
  std::set<const std::byte*> all;
  const auto check = [&](const PagedMemory& memory, uint64_t begin, uint64_t end) {
    for (const std::byte* const page : memory.pages()) {
      EXPECT_GE(virtual_page(page) % 8, begin);
      EXPECT_LT(virtual_page(page) % 8, end);
      EXPECT_TRUE(all.insert(page).second);
    }
  };
  check(*some, 0, 3);
  check(*others, 3, 8);
  check(*more, 0, 3);
  EXPECT_EQ(all.size(), 86u);
  // At most 39 of a hundred neighbours are of three colours.
  EXPECT_FALSE(pool->take(4, 0, 3));
}

TEST(ColouredPagesTest, AnOffsetIsOfThePageThatHasIt) {
  auto pool = PagePool::open(64, Address::kVirtual, 4);
  ASSERT_TRUE(pool);
  auto memory = pool->take(10, 1, 2);
  ASSERT_TRUE(memory);
  pool->drop_rest();
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(memory->at(i * kPageBytes + 5), memory->pages()[i] + 5);
    EXPECT_EQ(*memory->at(i * kPageBytes + 5), std::byte{0});
  }
}

// As far as the system tells them.
TEST(ColouredPagesTest, ColoursMayBeOfPhysicalAddresses) {
  auto pool = PagePool::open(400, Address::kPhysical, 4);
  if (!pool) GTEST_SKIP() << "the system does not tell physical addresses";
  auto memory = pool->take(50, 2, 3);
  ASSERT_TRUE(memory);
  std::FILE* const map = std::fopen("/proc/self/pagemap", "rbe");
  ASSERT_NE(map, nullptr);
  for (const std::byte* const page : memory->pages()) {
    uint64_t entry = 0;
    ASSERT_EQ(std::fseek(map, static_cast<long>(virtual_page(page) * sizeof entry), SEEK_SET), 0);
    ASSERT_EQ(std::fread(&entry, sizeof entry, 1, map), 1u);
    EXPECT_EQ(entry % 4, 2u);  // the frame's number is in its low bits
  }
  std::fclose(map);
}

}  // namespace
}  // namespace load
