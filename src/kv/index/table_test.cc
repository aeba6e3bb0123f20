#include "kv/index/table.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace kv {
namespace {

class TableTest : public testing::Test {
 protected:
  TableTest() : slots(new std::atomic<uint64_t>[kSlots] {}) { table.slots = slots.get(); }

  // Puts an entry there, under the locks that this needs. Its address identifies it.
  bool place(uint32_t home, uint64_t address, bool both) {
    RegionLocks locks(table, region_of(home), both);
    return table.place(home, format.make(0, address, 1), both);
  }
  // How often the entry is found in its home's neighbourhood.
  int found(uint32_t home, uint64_t address) const {
    int count = 0;
    table.for_each(home, [&](uint32_t, uint64_t entry) {
      count += format.address(entry) == address;
      return true;
    });
    return count;
  }

  const EntryFormat format{20};
  std::unique_ptr<std::atomic<uint64_t>[]> slots;
  Table table;
};

TEST_F(TableTest, FillsToNineteenTwentiethsBeforeThereIsNoRoom) {
  std::mt19937_64 random(1);
  std::vector<uint32_t> homes;
  for (;;) {
    const auto home = static_cast<uint32_t>(random() % kSlots);
    if (!place(home, homes.size(), true)) break;
    homes.push_back(home);
  }
  EXPECT_GT(homes.size(), kSlots * 95 / 100);
  for (size_t i = 0; i < homes.size(); ++i) ASSERT_EQ(found(homes[i], i), 1) << i;
}

TEST_F(TableTest, AHomeHasRoomForItsNeighbourhood) {
  for (uint32_t home : {uint32_t{5}, kRegionSlots - 1, kSlots - 1, kSlots - 9}) {
    for (uint32_t i = 0; i < kNeighbourhood; ++i)
      ASSERT_TRUE(place(home, home + i, true)) << home << " " << i;
    EXPECT_FALSE(place(home, 0, true));
    for (uint32_t i = 0; i < kNeighbourhood; ++i) ASSERT_EQ(found(home, home + i), 1);
    for (uint32_t i = 0; i < kNeighbourhood; ++i) table.set((home + i) % kSlots, 0);
  }
}

TEST_F(TableTest, WithOneLockNoSlotOfTheNextRegionIsUsed) {
  const uint32_t home = kRegionSlots - 3;
  for (uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(place(home, i, false));
  EXPECT_FALSE(place(home, 3, false));
  EXPECT_TRUE(place(home, 3, true));
  EXPECT_EQ(found(home, 3), 1);
}

TEST_F(TableTest, AFreeSlotIsNoEntryAtHome) {
  place(100, 0, false);
  for (uint32_t home : {uint32_t{93}, uint32_t{99}, kSlots - 4})
    table.for_each(home, [&](uint32_t slot, uint64_t) {
      ADD_FAILURE() << "slot " << slot << " of home " << home;
      return true;
    });
}

TEST_F(TableTest, MeasuredAnewReachesAreTrue) {
  const uint32_t home = kRegionSlots - 2;
  for (uint32_t i = 0; i < 40; ++i) ASSERT_TRUE(place(home, i, true));
  for (uint32_t i = 20; i < 40; ++i) table.set(home + i, 0);
  EXPECT_EQ(table.reaches[home / kReachHomes].load(), 5);
  {
    RegionLocks locks(table, 0, true);
    table.measure(0);
  }
  EXPECT_EQ(table.reaches[home / kReachHomes].load(), 3);
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(found(home, i), 1);
}

TEST_F(TableTest, NeighbourhoodsThatCross) {
  for (uint32_t home = 0; home < 2 * kRegionSlots; ++home)
    ASSERT_EQ(crosses(home), region_of(home) != region_of(home + kNeighbourhood - 1)) << home;
}

TEST_F(TableTest, WordsAreWhatUnlockSays) {
  for (uint32_t region : {uint32_t{0}, kRegions - 1}) {
    const uint64_t before = table.words[region].load();
    {
      RegionLocks locks(table, region, true);
      EXPECT_TRUE(RegionWord{table.words[region].load()}.is_locked());
      EXPECT_TRUE(RegionWord{table.words[next_region(region)].load()}.is_locked());
      locks.word() = locks.word().with(3, 77);
    }
    const RegionWord word{table.words[region].load()};
    EXPECT_FALSE(word.is_locked());
    EXPECT_EQ(word.depth(), 3u);
    EXPECT_EQ(word.count(), 77u);
    EXPECT_GT(word.bits >> 24, before >> 24) << "who looked meanwhile must see it";
    EXPECT_FALSE(RegionWord{table.words[next_region(region)].load()}.is_locked());
  }
}

}  // namespace
}  // namespace kv
