// The quick step of accesses that cross a page's edge: what it copies, what it protects, and what it leaves to the blocking one.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "spill/access.h"
#include "sys/memory.h"

extern "C" {
bool spillway_cross_load_quick(uint64_t address, uint64_t size, char* buffer);
bool spillway_cross_store_quick(uint64_t address, uint64_t size, const char* buffer);
extern uint64_t* spillway_crossing_counter;
extern uint64_t* spillway_rearm_counter;
__thread spill::Slot* __spillway_slots;
}

namespace spill {
namespace {

constexpr uint64_t kAddress = kRangeBegin + 8 * base::kOsPageBytes;

class CrossQuickTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(
        sys::reserve_at(kTableBase, uint64_t{8} << (47 - kTableShift), sys::Access::kReadWrite, "table")
            .has_value());
    static uint64_t crossings, rearms;
    spillway_crossing_counter = &crossings;
    spillway_rearm_counter = &rearms;
  }
  CrossQuickTest() {
    __spillway_slots = slots;
    std::iota(frames.begin(), frames.end(), 0);
    // Neighbours are frames apart, the second one lower.
    point(kAddress, 1);
    point(kAddress + base::kOsPageBytes, 0);
  }
  // REQUIRES: frames lie above the range.
  void point(uint64_t page, size_t frame) {
    entry_of(page).store(reinterpret_cast<int64_t>(&frames[frame * base::kOsPageBytes]) -
                         static_cast<int64_t>(page) + 1);
  }
  // Where the byte at an offset from kAddress is.
  char& at(uint64_t offset) {
    return frames[(offset < base::kOsPageBytes ? base::kOsPageBytes : 0) + offset % base::kOsPageBytes];
  }

  Slot slots[64] = {};
  std::vector<char> frames = std::vector<char>(2 * base::kOsPageBytes);
};

TEST_F(CrossQuickTest, CopiesWhatLiesOnBothSides) {
  for (const uint64_t size : {2, 8, 15, 16, 100, 256})
    for (uint64_t before = 1; before < size; ++before) {
      const uint64_t offset = base::kOsPageBytes - before;
      std::vector<char> buffer(size + 1, 77);
      ASSERT_TRUE(spillway_cross_load_quick(kAddress + offset, size, buffer.data()));
      for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(buffer[i], at(offset + i));
      EXPECT_EQ(buffer[size], 77);
      for (uint64_t i = 0; i < size; ++i) buffer[i] = static_cast<char>(i * 31 + before);
      const char below = at(offset - 1), above = at(offset + size);
      ASSERT_TRUE(spillway_cross_store_quick(kAddress + offset, size, buffer.data()));
      for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(buffer[i], at(offset + i));
      EXPECT_EQ(at(offset - 1), below);
      EXPECT_EQ(at(offset + size), above);
    }
}

TEST_F(CrossQuickTest, CountsAndLetsGo) {
  char buffer[16];
  const uint64_t before = *spillway_crossing_counter;
  ASSERT_TRUE(spillway_cross_load_quick(kAddress + base::kOsPageBytes - 3, sizeof buffer, buffer));
  EXPECT_EQ(*spillway_crossing_counter, before + 1);
  EXPECT_EQ(slots[kHoldCross].load(), 0u);
}

TEST_F(CrossQuickTest, LeavesWhatIsNotThereToTheBlockingStep) {
  char buffer[16] = {};
  const uint64_t before = *spillway_crossing_counter;
  for (const uint64_t page : {kAddress, kAddress + base::kOsPageBytes}) {
    const int64_t entry = entry_of(page).exchange(kEntryLocked);
    EXPECT_FALSE(spillway_cross_load_quick(kAddress + base::kOsPageBytes - 3, sizeof buffer, buffer));
    EXPECT_FALSE(spillway_cross_store_quick(kAddress + base::kOsPageBytes - 3, sizeof buffer, buffer));
    EXPECT_EQ(slots[kHoldCross].load(), 0u);
    entry_of(page).store(entry);
  }
  EXPECT_EQ(*spillway_crossing_counter, before);
  // A cooling entry is taken back.
  const int64_t entry = entry_of(kAddress).load();
  entry_of(kAddress).store(-entry);
  EXPECT_TRUE(spillway_cross_load_quick(kAddress + base::kOsPageBytes - 3, sizeof buffer, buffer));
  EXPECT_EQ(entry_of(kAddress).load(), entry);
}

}  // namespace
}  // namespace spill
