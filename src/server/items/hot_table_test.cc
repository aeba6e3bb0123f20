#include "server/items/hot_table.h"

#include <gtest/gtest.h>

namespace server {
namespace {

constexpr uint64_t kNow = 1'700'000'000;

TEST(HotTableTest, KnowsWhenAnItemWasUsed) {
  HotTable table;
  ASSERT_TRUE(table.open(16));
  EXPECT_FALSE(table.facts_of(1, kNow).was_used);
  EXPECT_EQ(table.facts_of(1, kNow).idle_s, 0u);
  table.stored(1, kNow);
  EXPECT_FALSE(table.facts_of(1, kNow + 5).was_used);
  EXPECT_EQ(table.facts_of(1, kNow + 5).idle_s, 5u);
  table.used(1, kNow + 5);
  EXPECT_TRUE(table.facts_of(1, kNow + 7).was_used);
  EXPECT_EQ(table.facts_of(1, kNow + 7).idle_s, 2u);
  EXPECT_EQ(table.facts_of(1, kNow).idle_s, 0u) << "the clock went back";
  table.stored(1, kNow + 9);
  EXPECT_FALSE(table.facts_of(1, kNow + 9).was_used);
}

TEST(HotTableTest, GoesOnWhenSecondsHaveMoreThan32Bits) {
  constexpr uint64_t kLast = 0xffff'ffff;  // in the year 2106
  HotTable table;
  ASSERT_TRUE(table.open(16));
  table.used(1, kLast);
  EXPECT_EQ(table.facts_of(1, kLast + 5).idle_s, 5u);
  table.used(1, kLast + 5);
  EXPECT_EQ(table.facts_of(1, kLast + 7).idle_s, 2u);
  EXPECT_EQ(table.facts_of(1, kLast).idle_s, 0u) << "the clock went back";
}

TEST(HotTableTest, ForgetsOneForAnotherAndTakesNoneForAnother) {
  constexpr uint64_t kOther = uint64_t{1} << 40;
  HotTable table;
  ASSERT_TRUE(table.open(16));
  table.used(3, kNow);
  table.used(4, kNow);
  EXPECT_TRUE(table.facts_of(3, kNow).was_used);
  EXPECT_FALSE(table.facts_of(3 | kOther, kNow).was_used);
  table.used(3 | kOther, kNow);
  EXPECT_FALSE(table.facts_of(3, kNow).was_used);
  EXPECT_TRUE(table.facts_of(3 | kOther, kNow).was_used);
  EXPECT_TRUE(table.facts_of(4, kNow).was_used);
}

TEST(HotTableTest, MayBeNone) {
  HotTable table;
  ASSERT_TRUE(table.open(0));
  table.used(1, kNow);
  EXPECT_FALSE(table.facts_of(1, kNow).was_used);
}

}  // namespace
}  // namespace server
