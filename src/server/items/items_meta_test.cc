// What memcached's meta commands do with items: claims, staleness, times of use.
#include <gtest/gtest.h>

#include <string>

#include "server/items/items.h"
#include "server/items/test_items.h"

namespace server {
namespace {

using ItemsMetaTest = ItemsTest;

TEST_F(ItemsMetaTest, FetchMakesAndClaimsWhatIsNotThere) {
  Fetched fetched = of(items.fetch("key", {}));
  EXPECT_FALSE(fetched.item.found() || fetched.is_made || fetched.has_claimed);
  EXPECT_EQ(fetched.cas, 0u);
  const FetchOptions makes = {.makes_until_ms = now_ms() + 30'000, .own_cas = 9876};
  fetched = of(items.fetch("key", makes));
  EXPECT_TRUE(fetched.is_made && fetched.has_claimed && !fetched.item.found());
  EXPECT_EQ(fetched.cas, 9876u);
  EXPECT_EQ(fetched.expires_ms, now_ms() + 30'000);
  EXPECT_EQ(get("key"), "");
  fetched = of(items.fetch("key", makes));
  EXPECT_TRUE(fetched.item.found() && fetched.item.marks().is_claimed);
  EXPECT_FALSE(fetched.is_made || fetched.has_claimed) << "another has";
  EXPECT_EQ(fetched.cas, 9876u);
  EXPECT_EQ(set("key", "value", {.cas = 5000}), Outcome::kOtherCas);
  EXPECT_EQ(set("key", "value", {.cas = 9876}), Outcome::kDone);
  EXPECT_FALSE(of(items.fetch("key", makes)).item.marks().is_claimed);
}

TEST_F(ItemsMetaTest, OneFetchClaimsWhatEndsSoon) {
  set("key", "value", {.expires_ms = now_ms() + 120'000});
  set("stays", "value");
  EXPECT_FALSE(of(items.fetch("key", {.claims_before_ms = now_ms() + 120'000})).has_claimed);
  EXPECT_FALSE(of(items.fetch("stays", {.claims_before_ms = kLastMs})).has_claimed);
  const uint64_t cas = cas_of("key");
  Fetched fetched = of(items.fetch("key", {.claims_before_ms = now_ms() + 120'001}));
  EXPECT_TRUE(fetched.has_claimed && !fetched.item.marks().is_claimed);
  EXPECT_EQ(fetched.cas, cas);
  EXPECT_EQ(whole_value(items, fetched.item), "value");
  fetched = of(items.fetch("key", {.claims_before_ms = now_ms() + 120'001}));
  EXPECT_TRUE(!fetched.has_claimed && fetched.item.marks().is_claimed);
  EXPECT_EQ(cas_of("key"), cas);
  EXPECT_EQ(set("key", "new", {.cas = cas}), Outcome::kDone);
  EXPECT_EQ(of(items.get("key")).marks(), Marks{});
}

TEST_F(ItemsMetaTest, AFetchThatTouchesMayClaimByTheNewExpiry) {
  set("key", "value", {.expires_ms = now_ms() + 10});
  const auto claims = [&](uint64_t ends_after_ms) {
    return of(items.fetch("key", {.expires_ms = now_ms() + ends_after_ms,
                                  .claims_before_ms = now_ms() + 100,
                                  .claims_by_new_expiry = true}))
        .has_claimed;
  };
  EXPECT_FALSE(claims(300));
  EXPECT_TRUE(claims(50));
}

TEST_F(ItemsMetaTest, FetchTouches) {
  EXPECT_FALSE(of(items.fetch("key", {.expires_ms = now_ms() + 1})).item.found());
  set("key", "value", {.flags = 2, .expires_ms = now_ms() + 10});
  Fetched fetched = of(items.fetch("key", {.expires_ms = now_ms() + 300}));
  EXPECT_EQ(whole_value(items, fetched.item), "value");
  EXPECT_EQ(fetched.expires_ms, now_ms() + 300);
  EXPECT_EQ(fetched.item.expires_ms(), now_ms() + 10);
  EXPECT_EQ(of(items.get("key")).expires_ms(), now_ms() + 300);
  EXPECT_EQ(of(items.get("key")).flags(), 2u);
  EXPECT_EQ(shared.counts()[Count::kTouchHits], 1u);
  EXPECT_EQ(shared.counts()[Count::kTouchMisses], 1u);
}

TEST_F(ItemsMetaTest, StaleItemsAreThereAndOneFetchClaimsThem) {
  EXPECT_EQ(of(items.invalidate("key", {})).outcome, Outcome::kAbsent);
  set("key", "moo", {.flags = 6});
  const uint64_t before = cas_of("key");
  EXPECT_EQ(of(items.invalidate("key", {.cas = before + 1})).outcome, Outcome::kOtherCas);
  EXPECT_EQ(of(items.invalidate("key", {.cas = before, .expires_ms = now_ms() + 30'000})).outcome,
            Outcome::kDone);
  EXPECT_NE(cas_of("key"), before);
  EXPECT_FALSE(of(items.fetch("key", {})).has_claimed) << "who does not ask for it claims nothing";
  Fetched fetched = of(items.fetch("key", {.claims_stale = true}));
  EXPECT_TRUE(fetched.has_claimed && fetched.item.marks().is_stale);
  EXPECT_EQ(whole_value(items, fetched.item), "moo");
  EXPECT_EQ(fetched.expires_ms, now_ms() + 30'000);
  // A set with a lower cas leaves it stale, claimed, and ending when it did.
  EXPECT_EQ(set("key", "f", {.expires_ms = now_ms() + 90'000, .cas = 1}), Outcome::kOtherCas);
  EXPECT_EQ(
      set("key", "f", {.expires_ms = now_ms() + 90'000, .cas = fetched.cas + 1, .takes_lower_cas = true}),
      Outcome::kOtherCas);
  EXPECT_EQ(set("key", "f", {.expires_ms = now_ms() + 90'000, .cas = 1, .takes_lower_cas = true}),
            Outcome::kDone);
  fetched = of(items.fetch("key", {.claims_stale = true}));
  EXPECT_EQ(fetched.item.marks(), (Marks{.is_stale = true, .is_claimed = true}));
  EXPECT_FALSE(fetched.has_claimed);
  EXPECT_EQ(fetched.expires_ms, now_ms() + 30'000);
  EXPECT_EQ(whole_value(items, fetched.item), "f");
  reopen();
  EXPECT_TRUE(of(items.get("key")).marks().is_stale);
  EXPECT_EQ(set("key", "g", {.expires_ms = now_ms() + 90'000, .cas = fetched.cas}), Outcome::kDone);
  EXPECT_EQ(of(items.get("key")).marks(), Marks{});
  EXPECT_EQ(of(items.get("key")).expires_ms(), now_ms() + 90'000);
}

TEST_F(ItemsMetaTest, InvalidateMayLeaveAnEmptyItem) {
  set("key", "value", {.flags = 6, .expires_ms = now_ms() + 5});
  EXPECT_EQ(of(items.invalidate("key", {.own_cas = 5678, .makes_stale = false, .empties = true})).outcome,
            Outcome::kDone);
  const Item item = of(items.get("key"));
  EXPECT_TRUE(item.found());
  EXPECT_EQ(item.value_bytes() + item.flags() + item.expires_ms(), 0u);
  EXPECT_EQ(item.cas(), 5678u);
  EXPECT_EQ(item.marks(), Marks{});
}

TEST_F(ItemsMetaTest, TellsWhenAnItemWasUsed) {
  set("key", "value");
  clock.move(2000);
  Fetched fetched = of(items.fetch("key", {.leaves_no_trace = true}));
  EXPECT_FALSE(fetched.facts.was_used);
  EXPECT_EQ(fetched.facts.idle_s, 2u);
  clock.move(1000);
  fetched = of(items.fetch("key", {}));
  EXPECT_FALSE(fetched.facts.was_used) << "as it was before";
  EXPECT_EQ(fetched.facts.idle_s, 3u);
  clock.move(4000);
  fetched = of(items.fetch("key", {.leaves_no_trace = true, .expires_ms = now_ms() + 40'000}));
  EXPECT_TRUE(fetched.facts.was_used);
  EXPECT_EQ(fetched.facts.idle_s, 4u);
  set("key", "other");
  EXPECT_FALSE(of(items.fetch("key", {})).facts.was_used);
  EXPECT_TRUE(of(items.fetch("key", {})).facts.was_used);
}

TEST_F(ItemsMetaTest, ATouchIsAUse) {
  const auto facts = [&] { return of(items.fetch("key", {.leaves_no_trace = true})).facts; };
  const auto expect_use = [&](const char* what, const auto& use) {
    set("key", "value");
    clock.move(2000);
    use();
    EXPECT_TRUE(facts().was_used) << what;
    EXPECT_EQ(facts().idle_s, 0u) << what;
  };
  expect_use("touch", [&] { of(items.touch("key", now_ms() + 50'000)); });
  expect_use("a touch that changes nothing", [&] { of(items.touch("key", kNever)); });
  expect_use("a fetch that is no get",
             [&] { of(items.fetch("key", {.is_get = false, .expires_ms = now_ms() + 50'000})); });
  set("key", "value");
  clock.move(2000);
  of(items.expire("key", now_ms() + 50'000, {.leaves_no_trace = true}));
  of(items.fetch("key", {.is_get = false}));
  EXPECT_FALSE(facts().was_used);
  EXPECT_EQ(facts().idle_s, 2u);
}

}  // namespace
}  // namespace server
