// Numbers in items: as memcached adds to them, and as Redis does.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "server/items/items.h"
#include "server/items/test_items.h"

namespace server {
namespace {

using ItemsNumbersTest = ItemsTest;

TEST_F(ItemsNumbersTest, AddsAsMemcachedDoes) {
  EXPECT_EQ(of(items.add("key", {})).outcome, Outcome::kAbsent);
  set("key", "9", {.flags = 4, .expires_ms = now_ms() + 50});
  Added<uint64_t> added = of(items.add("key", {}));
  EXPECT_EQ(added.outcome, Outcome::kDone);
  EXPECT_EQ(added.number, 10u);
  EXPECT_EQ(get("key"), "10");
  EXPECT_EQ(of(items.get("key")).flags(), 4u);
  EXPECT_EQ(added.expires_ms, now_ms() + 50);
  EXPECT_EQ(added.cas, cas_of("key"));
  EXPECT_EQ(of(items.add("key", {.delta = 1, .is_decrease = true})).number, 9u);
  EXPECT_EQ(get("key"), "9 ") << "the value keeps its length";
  EXPECT_EQ(of(items.add("key", {.delta = 5, .is_decrease = true, .expires_ms = now_ms() + 70})).number, 4u);
  EXPECT_EQ(of(items.get("key")).expires_ms(), now_ms() + 70);
  EXPECT_EQ(of(items.add("key", {.delta = 5, .is_decrease = true})).number, 0u);
  set("key", "18446744073709551615");
  EXPECT_EQ(of(items.add("key", {.delta = 3})).number, 2u);
  EXPECT_EQ(get("key"), "2                   ");
  for (const char* text : {"", "x", "-5", "1.5", "18446744073709551616"}) {
    set("text", text);
    EXPECT_EQ(of(items.add("text", {})).outcome, Outcome::kNotNumber) << text;
    EXPECT_EQ(get("text"), text);
  }
  const uint64_t cas = cas_of("key");
  EXPECT_EQ(of(items.add("key", {.cas = cas + 1})).outcome, Outcome::kOtherCas);
  EXPECT_EQ(of(items.add("key", {.cas = cas, .own_cas = 8765})).number, 3u);
  EXPECT_EQ(cas_of("key"), 8765u);
}

TEST_F(ItemsNumbersTest, AddMakesWhatIsNotThere) {
  Added<uint64_t> added =
      of(items.add("key", {.delta = 5, .own_cas = 44, .initial = 13, .initial_expires_ms = now_ms() + 9}));
  EXPECT_EQ(added.outcome, Outcome::kDone);
  EXPECT_TRUE(added.is_made);
  EXPECT_EQ(added.number, 13u);
  EXPECT_EQ(added.cas, 44u);
  EXPECT_EQ(added.expires_ms, now_ms() + 9);
  EXPECT_EQ(get("key"), "13");
  added = of(items.add("key", {.delta = 5, .initial = 13}));
  EXPECT_FALSE(added.is_made);
  EXPECT_EQ(added.number, 18u);
  EXPECT_EQ(of(items.get("key")).expires_ms(), now_ms() + 9);
  of(items.add("none", {.is_decrease = true}));
  of(items.add("key", {.is_decrease = true}));
  const ItemCounts counts = shared.counts();
  EXPECT_EQ(counts[Count::kIncreaseMisses], 1u);
  EXPECT_EQ(counts[Count::kIncreaseHits], 1u);
  EXPECT_EQ(counts[Count::kDecreaseMisses], 1u);
  EXPECT_EQ(counts[Count::kDecreaseHits], 1u);
}

TEST_F(ItemsNumbersTest, AddsAsRedisDoes) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();
  Added<int64_t> added = of(items.add_integer("key", -5));
  EXPECT_TRUE(added.is_made);
  EXPECT_EQ(added.number, -5);
  EXPECT_EQ(get("key"), "-5");
  of(items.expire("key", now_ms() + 80, {}));
  EXPECT_EQ(of(items.add_integer("key", 15)).number, 10);
  EXPECT_EQ(of(items.add_integer("key", -1)).number, 9);
  EXPECT_EQ(get("key"), "9") << "no blanks";
  EXPECT_EQ(of(items.get("key")).expires_ms(), now_ms() + 80);
  set("key", std::to_string(kMax));
  EXPECT_EQ(of(items.add_integer("key", 1)).outcome, Outcome::kOverflow);
  EXPECT_EQ(get("key"), std::to_string(kMax));
  EXPECT_EQ(of(items.add_integer("key", -1)).number, kMax - 1);
  set("key", std::to_string(kMin));
  EXPECT_EQ(of(items.add_integer("key", -1)).outcome, Outcome::kOverflow);
  for (const char* text : {"", " 1", "1 ", "01", "1.0", "x", "9223372036854775808"}) {
    set("key", text);
    EXPECT_EQ(of(items.add_integer("key", 1)).outcome, Outcome::kNotNumber) << text;
  }
}

}  // namespace
}  // namespace server
