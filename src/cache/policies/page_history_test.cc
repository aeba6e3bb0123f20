#include "cache/policies/page_history.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cache {
namespace {

TEST(PageHistoryTest, KnowsWhatLeftLately) {
  constexpr uint32_t kCapacity = 64;
  alignas(base::kLineBytes) static char memory[64 * 64];
  memset(memory, 0, sizeof memory);
  ASSERT_LE(PageHistory::memory_bytes(kCapacity), sizeof memory);
  PageHistory history;
  EXPECT_EQ(history.take(PageId{1}), std::nullopt) << "none was opened";
  history.open(memory, kCapacity);
  EXPECT_EQ(history.take(PageId{1}), std::nullopt);
  for (uint64_t page = 0; page < 1000; ++page) history.add(PageId{page}, page % 16);
  uint32_t known = 0;
  for (uint64_t page = 1000 - kCapacity; page < 1000; ++page) {
    const auto number = history.take(PageId{page});
    known += number.has_value();
    if (number) EXPECT_EQ(*number, page % 16);
    EXPECT_EQ(history.take(PageId{page}), std::nullopt) << "taken";
  }
  EXPECT_GE(known, kCapacity * 9 / 10);
  for (uint64_t page = 0; page < 1000 - kCapacity; ++page)
    EXPECT_EQ(history.take(PageId{page}), std::nullopt) << page;
}

TEST(PageHistoryTest, NumbersAreHalvedAndTheLastCounts) {
  alignas(base::kLineBytes) static char memory[4096];
  memset(memory, 0, sizeof memory);
  PageHistory history;
  history.open(memory, 16);
  history.add(PageId{7}, 15);
  history.add(PageId{8}, 3);
  history.add(PageId{8}, 4);
  history.halve();
  EXPECT_EQ(history.take(PageId{7}), 7);
  EXPECT_EQ(history.take(PageId{8}), 2);
  EXPECT_EQ(history.take(PageId{8}), std::nullopt);
}

}  // namespace
}  // namespace cache
