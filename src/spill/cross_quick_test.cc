// The quick step of accesses that cross a page's edge: what it copies, what it protects, and what it leaves to the blocking one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "spill/access.h"
#include "sys/memory.h"

extern "C" {
bool spillway_cross_load_quick(uint64_t address, uint64_t size, char* buffer);
bool spillway_cross_store_quick(uint64_t address, uint64_t size, const char* buffer);
bool spillway_cross_copy_quick(uint64_t to, uint64_t from, uint64_t size);
extern uint64_t* spillway_crossing_counter;
extern uint64_t* spillway_rearm_counter;
extern __thread uint64_t spillway_marks[4][2];
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
    lay({1, 0});
    // Three more pages, of which two lie side by side.
    for (size_t page : {2, 3, 4}) point(kAddress + page * base::kOsPageBytes, page == 4 ? 2 : page + 1);
  }
  // Where the first two pages lie: neighbours are frames apart, the second one lower; or side by side.
  void lay(std::array<size_t, 2> frames_of) {
    order = frames_of;
    for (size_t page : {0, 1}) point(kAddress + page * base::kOsPageBytes, order[page]);
  }
  bool holds_nothing() const {
    return std::all_of(std::begin(slots), std::end(slots), [](const Slot& slot) { return slot.load() == 0; });
  }
  // REQUIRES: frames lie above the range.
  void point(uint64_t page, size_t frame) {
    entry_of(page).store(reinterpret_cast<int64_t>(&frames[frame * base::kOsPageBytes]) -
                         static_cast<int64_t>(page) + 1);
  }
  // Where the byte at an offset from kAddress is.
  char& at(uint64_t offset) {
    const size_t page = offset / base::kOsPageBytes;
    const size_t frame = page < 2 ? order[page] : page == 4 ? 2 : page + 1;
    return frames[frame * base::kOsPageBytes + offset % base::kOsPageBytes];
  }

  Slot slots[64] = {};
  std::array<size_t, 2> order;
  std::vector<char> frames = std::vector<char>(5 * base::kOsPageBytes);
};

TEST_F(CrossQuickTest, CopiesWhatLiesOnBothSides) {
  for (const uint64_t size : {2, 3, 5, 8, 15, 16, 100, 256})
    for (uint64_t before = 1; before < size; ++before) {
      lay(before % 2 == 0 ? std::array<size_t, 2>{1, 0} : std::array<size_t, 2>{0, 1});
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
  EXPECT_TRUE(holds_nothing());
  ASSERT_TRUE(spillway_cross_copy_quick(kAddress + base::kOsPageBytes - 3, kAddress, sizeof buffer));
  EXPECT_EQ(*spillway_crossing_counter, before + 2);
  EXPECT_TRUE(holds_nothing());
}

// Either side, both or none may cross, at different places; one may be plain memory.
TEST_F(CrossQuickTest, CopiesBetweenPages) {
  char plain[256];
  for (const uint64_t size : {1, 7, 40, 100, 256})
    for (uint64_t to_before = 0; to_before <= size; to_before += size / 8 + 1)
      for (uint64_t from_before = 0; from_before <= size; from_before += size / 8 + 1)
        for (const uint64_t from_page : {2, 3, 4}) {
          const uint64_t to = base::kOsPageBytes - to_before;
          const uint64_t from = from_page * base::kOsPageBytes - (from_page == 2 ? 0 : from_before);
          for (uint64_t i = 0; i < size; ++i)
            at(from + i) = static_cast<char>(i * 31 + to_before + from_before);
          const char below = at(to - 1), above = at(to + size);
          ASSERT_TRUE(spillway_cross_copy_quick(kAddress + to, kAddress + from, size));
          for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(at(to + i), at(from + i));
          ASSERT_TRUE(spillway_cross_copy_quick(reinterpret_cast<uint64_t>(plain), kAddress + to, size));
          for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(plain[i], at(to + i));
          EXPECT_EQ(at(to - 1), below);
          EXPECT_EQ(at(to + size), above);
        }
  // What is copied to itself stays.
  const std::vector<char> all = frames;
  ASSERT_TRUE(
      spillway_cross_copy_quick(kAddress + base::kOsPageBytes - 60, kAddress + base::kOsPageBytes - 60, 100));
  EXPECT_EQ(frames, all);
}

TEST_F(CrossQuickTest, LeavesWhatIsNotThereToTheBlockingStep) {
  char buffer[16] = {};
  const uint64_t before = *spillway_crossing_counter;
  for (const uint64_t page : {kAddress, kAddress + base::kOsPageBytes}) {
    const int64_t entry = entry_of(page).exchange(kEntryLocked);
    EXPECT_FALSE(spillway_cross_load_quick(kAddress + base::kOsPageBytes - 3, sizeof buffer, buffer));
    EXPECT_FALSE(spillway_cross_store_quick(kAddress + base::kOsPageBytes - 3, sizeof buffer, buffer));
    EXPECT_FALSE(
        spillway_cross_copy_quick(kAddress + base::kOsPageBytes - 3, kAddress + 2 * base::kOsPageBytes, 16));
    EXPECT_FALSE(
        spillway_cross_copy_quick(kAddress + 2 * base::kOsPageBytes, kAddress + base::kOsPageBytes - 3, 16));
    EXPECT_TRUE(holds_nothing());
    entry_of(page).store(entry);
  }
  EXPECT_EQ(*spillway_crossing_counter, before);
  // A cooling entry is taken back.
  const int64_t entry = entry_of(kAddress).load();
  entry_of(kAddress).store(-entry);
  EXPECT_TRUE(spillway_cross_load_quick(kAddress + base::kOsPageBytes - 3, sizeof buffer, buffer));
  EXPECT_EQ(entry_of(kAddress).load(), entry);
}

// The blocking step must be the one that re-arms the entry, and reports the use.
TEST_F(CrossQuickTest, LeavesTheFirstUseOfAMarkedPageToTheBlockingStep) {
  char buffer[16] = {};
  const uint64_t edge = kAddress + base::kOsPageBytes - 3;
  for (const uint64_t page : {kAddress, kAddress + base::kOsPageBytes}) {
    spillway_marks[1][0] = page >> kTableShift;
    spillway_marks[1][1] = 1;
    EXPECT_TRUE(spillway_cross_load_quick(edge, sizeof buffer, buffer)) << "it is in use already";
    const int64_t entry = entry_of(page).load();
    entry_of(page).store(-entry);
    EXPECT_FALSE(spillway_cross_load_quick(edge, sizeof buffer, buffer));
    EXPECT_FALSE(spillway_cross_store_quick(edge, sizeof buffer, buffer));
    EXPECT_FALSE(spillway_cross_copy_quick(edge, kAddress + 2 * base::kOsPageBytes, sizeof buffer));
    EXPECT_FALSE(spillway_cross_copy_quick(kAddress + 2 * base::kOsPageBytes, edge, sizeof buffer));
    EXPECT_EQ(entry_of(page).load(), -entry);
    EXPECT_TRUE(holds_nothing());
    spillway_marks[1][1] = 0;
    EXPECT_TRUE(spillway_cross_load_quick(edge, sizeof buffer, buffer));
    EXPECT_EQ(entry_of(page).load(), entry);
  }
}

}  // namespace
}  // namespace spill
