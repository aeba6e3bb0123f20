#include "server/items/items.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/items/test_items.h"

namespace server {
namespace {

TEST_F(ItemsTest, GivesBackWhatWasSet) {
  EXPECT_EQ(get("key"), "(none)");
  const Done done = of(items.set("key", bytes_of("value"), {.flags = 7, .expires_ms = now_ms() + 1000}));
  EXPECT_EQ(done.outcome, Outcome::kDone);
  EXPECT_EQ(done.value_bytes, 5u);
  EXPECT_EQ(done.expires_ms, now_ms() + 1000);
  Item item = of(items.get("key"));
  EXPECT_EQ(whole_value(items, item), "value");
  EXPECT_EQ(item.value().size(), 5u);
  EXPECT_EQ(item.flags(), 7u);
  EXPECT_EQ(item.expires_ms(), now_ms() + 1000);
  EXPECT_EQ(item.cas(), done.cas);
  EXPECT_EQ(item.marks(), Marks{});
  const Item none = of(items.get("other"));
  EXPECT_EQ(none.cas() + none.flags() + none.expires_ms() + none.value_bytes() + none.value().size(), 0u);
  set("empty", "");
  EXPECT_EQ(get("empty"), "");
  EXPECT_TRUE(of(items.get("empty")).found());
}

TEST_F(ItemsTest, KeysMayBeAnyBytes) {
  const std::string zero(1, '\0');
  const std::vector<std::string> keys = {"",
                                         zero,
                                         zero + zero,
                                         zero + "\1flush",
                                         "\1",
                                         std::string(kMaxKeyBytes, 'k'),
                                         std::string(kMaxKeyBytes, '\0')};
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(set(keys[i], std::to_string(i)), Outcome::kDone);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(get(keys[i]), std::to_string(i));
  EXPECT_EQ(items.get(std::string(kMaxKeyBytes + 1, 'k')).error().number, EINVAL);
  EXPECT_EQ(items.set(std::string(kMaxKeyBytes + 1, 'k'), {}).error().number, EINVAL);
  for (const std::string& key : keys) EXPECT_EQ(of(items.remove(key)).outcome, Outcome::kDone);
  for (const std::string& key : keys) EXPECT_EQ(get(key), "(none)");
}

TEST_F(ItemsTest, AddsAndReplaces) {
  EXPECT_EQ(set("key", "1", {.mode = Mode::kReplace}), Outcome::kAbsent);
  EXPECT_EQ(set("key", "2", {.mode = Mode::kAdd, .flags = 2}), Outcome::kDone);
  EXPECT_EQ(set("key", "3", {.mode = Mode::kAdd}), Outcome::kPresent);
  EXPECT_EQ(get("key"), "2");
  EXPECT_EQ(set("key", "4", {.mode = Mode::kReplace, .flags = 4}), Outcome::kDone);
  EXPECT_EQ(get("key"), "4");
  EXPECT_EQ(of(items.get("key")).flags(), 4u);
}

TEST_F(ItemsTest, ComparesCas) {
  EXPECT_EQ(set("key", "1", {.cas = 5}), Outcome::kAbsent);
  set("other", "1");
  set("key", "1");
  const uint64_t cas = cas_of("key");
  ASSERT_GT(cas, 1u);
  EXPECT_EQ(set("key", "2", {.cas = cas + 1}), Outcome::kOtherCas);
  EXPECT_EQ(set("key", "2", {.cas = cas - 1}), Outcome::kOtherCas);
  EXPECT_EQ(get("key"), "1");
  const Done done = of(items.set("key", bytes_of("2"), {.cas = cas}));
  EXPECT_EQ(done.outcome, Outcome::kDone);
  EXPECT_NE(done.cas, cas);
  EXPECT_EQ(set("key", "3", {.cas = cas}), Outcome::kOtherCas);
  EXPECT_EQ(set("key", "3", {.mode = Mode::kReplace, .cas = done.cas}), Outcome::kDone);
  EXPECT_EQ(of(items.remove("key", done.cas)).outcome, Outcome::kOtherCas);
  EXPECT_EQ(of(items.remove("key", cas_of("key"))).outcome, Outcome::kDone);
  EXPECT_EQ(of(items.remove("key", 7)).outcome, Outcome::kAbsent);
  const ItemCounts counts = shared.counts();
  EXPECT_EQ(counts[Count::kCasMisses], 1u);
  EXPECT_EQ(counts[Count::kCasOthers], 3u);
  EXPECT_EQ(counts[Count::kCasHits], 2u);
  EXPECT_EQ(counts[Count::kDeleteHits], 1u);
  EXPECT_EQ(counts[Count::kDeleteMisses], 1u);
}

TEST_F(ItemsTest, AClientMayGiveTheCas) {
  EXPECT_EQ(of(items.set("key", bytes_of("1"), {.own_cas = 973})).cas, 973u);
  EXPECT_EQ(cas_of("key"), 973u);
  reopen();
  EXPECT_EQ(cas_of("key"), 973u);
  EXPECT_EQ(set("key", "2", {.cas = of(items.get("key")).version()}), Outcome::kOtherCas);
  EXPECT_EQ(of(items.set("key", bytes_of("2"), {.cas = 973, .own_cas = 4000})).cas, 4000u);
  EXPECT_EQ(get("key"), "2");
  EXPECT_EQ(set("key", "3", {.cas = 4000}), Outcome::kDone);
  EXPECT_EQ(cas_of("key"), of(items.get("key")).version());
}

TEST_F(ItemsTest, AppendsAndPrepends) {
  EXPECT_EQ(set("key", "x", {.mode = Mode::kAppend}), Outcome::kAbsent);
  EXPECT_EQ(set("key", "x", {.mode = Mode::kPrepend}), Outcome::kAbsent);
  set("key", "middle", {.flags = 3, .expires_ms = now_ms() + 5000});
  EXPECT_EQ(set("key", " end", {.mode = Mode::kAppend, .flags = 9, .expires_ms = 1}), Outcome::kDone);
  const Done done = of(items.set("key", bytes_of("start "), {.mode = Mode::kPrepend}));
  EXPECT_EQ(done.value_bytes, 16u);
  EXPECT_EQ(get("key"), "start middle end");
  const Item item = of(items.get("key"));
  EXPECT_EQ(item.flags(), 3u) << "the item's";
  EXPECT_EQ(item.expires_ms(), now_ms() + 5000);
  EXPECT_EQ(set("key", "x", {.mode = Mode::kAppend, .cas = done.cas + 1}), Outcome::kOtherCas);
  EXPECT_EQ(set("key", "!", {.mode = Mode::kAppend, .cas = done.cas}), Outcome::kDone);
  EXPECT_EQ(get("key"), "start middle end!");
  EXPECT_EQ(set("new", "first", {.mode = Mode::kAppend, .makes_until_ms = now_ms() + 9}), Outcome::kDone);
  EXPECT_EQ(of(items.get("new")).expires_ms(), now_ms() + 9);
  EXPECT_EQ(set("new", " second", {.mode = Mode::kAppend, .makes_until_ms = now_ms() + 99}), Outcome::kDone);
  EXPECT_EQ(get("new"), "first second");
  EXPECT_EQ(of(items.get("new")).expires_ms(), now_ms() + 9);
}

TEST_F(ItemsTest, ValuesInPiecesGoThroughAllOfIt) {
  options.value_bytes_max = 8 << 20;
  reopen();
  std::string value(3 << 20, 'v');
  for (size_t i = 0; i < value.size(); i += 1000) value[i] = static_cast<char>('a' + i % 23);
  EXPECT_EQ(set("key", value, {.flags = 5}), Outcome::kDone);
  EXPECT_TRUE(of(items.get("key")).is_large());
  EXPECT_TRUE(get("key") == value);
  const std::string end(100'000, 'e');
  EXPECT_EQ(set("key", end, {.mode = Mode::kAppend}), Outcome::kDone);
  EXPECT_EQ(set("key", "begin", {.mode = Mode::kPrepend}), Outcome::kDone);
  value = "begin" + value + end;
  EXPECT_TRUE(get("key") == value);
  EXPECT_EQ(of(items.touch("key", now_ms() + 1000)).outcome, Outcome::kDone);
  EXPECT_EQ(of(items.set_range("key", 2 << 20, bytes_of(end))).value_bytes, value.size());
  value.replace(2 << 20, end.size(), end);
  EXPECT_TRUE(get("key") == value);
  EXPECT_EQ(of(items.add("key", {})).outcome, Outcome::kNotNumber);
  EXPECT_EQ(of(items.add_integer("key", 1)).outcome, Outcome::kNotNumber);
  EXPECT_EQ(set("key", std::string(6 << 20, 'x'), {.mode = Mode::kAppend}), Outcome::kTooLong);
  EXPECT_EQ(set("key", std::string((8 << 20) + 1, 'x')), Outcome::kTooLong);
  reopen();
  EXPECT_TRUE(get("key") == value);
  EXPECT_EQ(of(items.get("key")).flags(), 5u);
}

TEST_F(ItemsTest, WhatIsLongerThanTheServerNowTakesCanStillBeChanged) {
  const std::string value(1000, 'v');
  EXPECT_EQ(set("key", value), Outcome::kDone);
  options.value_bytes_max = 100;
  reopen();
  EXPECT_EQ(of(items.touch("key", now_ms() + 1000)).outcome, Outcome::kDone);
  EXPECT_EQ(of(items.get("key")).expires_ms(), now_ms() + 1000);
  const Fetched fetched = of(items.fetch("key", {.expires_ms = now_ms() + 2000}));
  EXPECT_EQ(fetched.expires_ms, now_ms() + 2000);
  EXPECT_EQ(fetched.cas, cas_of("key"));
  EXPECT_EQ(of(items.invalidate("key", {})).outcome, Outcome::kDone);
  EXPECT_TRUE(of(items.fetch("key", {.claims_stale = true})).has_claimed);
  EXPECT_FALSE(of(items.fetch("key", {.claims_stale = true})).has_claimed) << "by one client only";
  EXPECT_EQ(of(items.set_range("key", 50, bytes_of("new"))).value_bytes, value.size());
  EXPECT_EQ(set("key", "x", {.mode = Mode::kAppend}), Outcome::kTooLong);
  EXPECT_EQ(set("key", value), Outcome::kTooLong);
}

TEST_F(ItemsTest, SetsThatKeepTheExpiryOrGiveWhatWasThere) {
  Item before;
  EXPECT_EQ(of(items.set("key", bytes_of("1"), {.expires_ms = now_ms() + 7}, &before)).outcome,
            Outcome::kDone);
  EXPECT_FALSE(before.found());
  EXPECT_EQ(of(items.set("key", bytes_of("2"), {.keeps_expiry = true}, &before)).outcome, Outcome::kDone);
  EXPECT_EQ(whole_value(items, before), "1");
  EXPECT_EQ(of(items.get("key")).expires_ms(), now_ms() + 7);
  EXPECT_EQ(of(items.set("key", bytes_of("3"), {.mode = Mode::kAdd}, &before)).outcome, Outcome::kPresent);
  EXPECT_EQ(whole_value(items, before), "2");
  EXPECT_EQ(set("key", "4", {.keeps_expiry = true}), Outcome::kDone);
  EXPECT_EQ(of(items.get("key")).expires_ms(), now_ms() + 7);
  EXPECT_EQ(set("key", "5"), Outcome::kDone);
  EXPECT_EQ(of(items.get("key")).expires_ms(), kNever);
  EXPECT_EQ(of(items.remove("key", std::nullopt, &before)).outcome, Outcome::kDone);
  EXPECT_EQ(whole_value(items, before), "5");
  EXPECT_EQ(of(items.remove("key", std::nullopt, &before)).outcome, Outcome::kAbsent);
  EXPECT_FALSE(before.found());
  EXPECT_EQ(of(items.set("key", bytes_of("6"), {.mode = Mode::kReplace}, &before)).outcome, Outcome::kAbsent);
  EXPECT_EQ(shared.counts()[Count::kGetHits], 6u) << "three by gets";
  EXPECT_EQ(shared.counts()[Count::kGetMisses], 3u);
  EXPECT_EQ(set("key", "7", {.keeps_expiry = true}), Outcome::kDone);
}

TEST_F(ItemsTest, WhatHasExpiredIsAbsent) {
  set("key", "1", {.expires_ms = now_ms() + 1000});
  set("past", "1", {.expires_ms = kEnded});
  EXPECT_EQ(get("past"), "(none)");
  clock.move(999);
  EXPECT_EQ(get("key"), "1");
  EXPECT_EQ(set("key", "2", {.mode = Mode::kAdd}), Outcome::kPresent);
  clock.move(1);
  EXPECT_EQ(get("key"), "(none)");
  EXPECT_EQ(set("key", "2", {.mode = Mode::kReplace}), Outcome::kAbsent);
  EXPECT_EQ(set("key", "2", {.mode = Mode::kAppend}), Outcome::kAbsent);
  EXPECT_EQ(of(items.touch("key", kNever)).outcome, Outcome::kAbsent);
  EXPECT_EQ(of(items.remove("key")).outcome, Outcome::kAbsent);
  EXPECT_EQ(of(items.add("key", {})).outcome, Outcome::kAbsent);
  EXPECT_EQ(set("key", "2", {.mode = Mode::kAdd}), Outcome::kDone);
}

TEST_F(ItemsTest, TouchesLeaveTheItemAsItIs) {
  EXPECT_EQ(of(items.touch("key", kNever)).outcome, Outcome::kAbsent);
  set("key", "value", {.flags = 3});
  const uint64_t cas = cas_of("key");
  const Done done = of(items.touch("key", now_ms() + 500));
  EXPECT_EQ(done.outcome, Outcome::kDone);
  EXPECT_EQ(done.cas, cas);
  Item item = of(items.get("key"));
  EXPECT_EQ(item.expires_ms(), now_ms() + 500);
  EXPECT_EQ(item.flags(), 3u);
  EXPECT_EQ(item.cas(), cas);
  EXPECT_EQ(whole_value(items, item), "value");
  EXPECT_EQ(set("key", "other", {.cas = cas}), Outcome::kDone);
  EXPECT_NE(cas_of("key"), cas);
  EXPECT_EQ(of(items.touch("key", kEnded)).outcome, Outcome::kDone);
  EXPECT_EQ(get("key"), "(none)");
  EXPECT_EQ(shared.counts()[Count::kTouchHits], 2u);
  EXPECT_EQ(shared.counts()[Count::kTouchMisses], 1u);
}

TEST_F(ItemsTest, ExpireByConditions) {
  const uint64_t now = now_ms();
  const auto expire = [&](uint64_t expires_ms, const ExpireOptions& options) {
    return of(items.expire("key", expires_ms, options)).outcome;
  };
  EXPECT_EQ(expire(now + 5, {}), Outcome::kAbsent);
  set("key", "value");
  EXPECT_EQ(expire(now + 5, {.if_ends = true}), Outcome::kUnmet);
  EXPECT_EQ(expire(now + 5, {.if_later = true}), Outcome::kUnmet) << "never is later";
  EXPECT_EQ(of(items.get("key")).expires_ms(), kNever);
  EXPECT_EQ(expire(now + 50, {.if_sooner = true}), Outcome::kDone);
  EXPECT_EQ(expire(now + 60, {.if_never = true}), Outcome::kUnmet);
  EXPECT_EQ(expire(now + 60, {.if_sooner = true}), Outcome::kUnmet);
  EXPECT_EQ(expire(now + 50, {.if_later = true}), Outcome::kUnmet);
  EXPECT_EQ(expire(now + 50, {.if_sooner = true}), Outcome::kUnmet);
  EXPECT_EQ(expire(now + 60, {.if_ends = true, .if_later = true}), Outcome::kDone);
  EXPECT_EQ(of(items.get("key")).expires_ms(), now + 60);
  EXPECT_EQ(expire(kNever, {.if_ends = true}), Outcome::kDone) << "persist";
  EXPECT_EQ(expire(kNever, {.if_ends = true}), Outcome::kUnmet);
  EXPECT_EQ(expire(now + 70, {.if_never = true}), Outcome::kDone);
  EXPECT_EQ(expire(kNever, {.if_later = true}), Outcome::kDone);
  EXPECT_EQ(of(items.get("key")).expires_ms(), kNever);
  EXPECT_EQ(get("key"), "value");
}

TEST_F(ItemsTest, SetsRanges) {
  options.value_bytes_max = 1000;
  reopen();
  EXPECT_EQ(of(items.set_range("key", 5, {})).value_bytes, 0u);
  EXPECT_EQ(get("key"), "(none)") << "nothing was written";
  EXPECT_EQ(of(items.set_range("key", 3, bytes_of("abc"))).value_bytes, 6u);
  EXPECT_EQ(get("key"), std::string(3, '\0') + "abc");
  EXPECT_EQ(of(items.set_range("key", 0, bytes_of("xyz"))).value_bytes, 6u);
  EXPECT_EQ(get("key"), "xyzabc");
  EXPECT_EQ(of(items.set_range("key", 4, bytes_of("BCD"))).value_bytes, 7u);
  EXPECT_EQ(get("key"), "xyzaBCD");
  EXPECT_EQ(of(items.set_range("key", 1, {})).value_bytes, 7u);
  EXPECT_EQ(of(items.set_range("key", 998, bytes_of("123"))).outcome, Outcome::kTooLong);
  EXPECT_EQ(of(items.set_range("key", ~uint64_t{0}, bytes_of("123"))).outcome, Outcome::kTooLong);
  EXPECT_EQ(of(items.set_range("key", 997, bytes_of("123"))).value_bytes, 1000u);
  EXPECT_EQ(get("key"), "xyzaBCD" + std::string(990, '\0') + "123");
}

TEST_F(ItemsTest, AnyFunctionMayUpdate) {
  set("key", "3.5");
  auto doubles = [&](Item& item) -> base::Expected<Change> {
    if (!item.found()) return base::failure(ENOENT, "nothing to double");
    const std::string twice = whole_value(items, item) + whole_value(items, item);
    static std::string value;
    value = twice;
    Change change = Change::value_of(item);
    change.add(Part::of(bytes_of(value)));
    return change;
  };
  EXPECT_EQ(of(items.update("key", doubles)).value_bytes, 6u);
  EXPECT_EQ(get("key"), "3.53.5");
  EXPECT_EQ(items.update("none", doubles).error().number, ENOENT);
  auto removes = [](Item&) { return Change::removal(); };
  EXPECT_EQ(of(items.update("key", removes)).outcome, Outcome::kDone);
  EXPECT_EQ(of(items.update("key", removes)).outcome, Outcome::kAbsent);
}

TEST_F(ItemsTest, GetsManyKeysAtOnce) {
  std::vector<std::string> keys;
  for (int i = 0; i < 150; ++i) keys.push_back("key" + std::to_string(i));
  keys[7] = "";
  keys[8] = std::string(kMaxKeyBytes + 1, 'k');
  keys[9] = std::string("\0\1flush", 7);
  for (size_t i = 0; i < keys.size(); i += 2)
    if (i != 8) set(keys[i], "value of " + std::to_string(i));
  set("", "of none");
  std::vector<std::string_view> asked(keys.begin(), keys.end());
  std::vector<base::Expected<Item>> results(keys.size());
  get_all(asked, results);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i == 8) {
      EXPECT_EQ(results[i].error().number, EINVAL);
      continue;
    }
    ASSERT_TRUE(results[i]) << i;
    const std::string expected = i == 7 ? "of none" : i % 2 == 0 ? "value of " + std::to_string(i) : "(none)";
    EXPECT_EQ(results[i]->found() ? whole_value(items, *results[i]) : "(none)", expected) << i;
  }
  EXPECT_EQ(shared.counts()[Count::kGetHits], 75u);
  EXPECT_EQ(shared.counts()[Count::kGetMisses], 74u);
}

TEST_F(ItemsTest, OfManyKeysOnlySoMuchIsFoundAtATime) {
  const std::string value(200'000, 'v');
  EXPECT_EQ(set("large", value), Outcome::kDone);
  const std::string too_long(kMaxKeyBytes + 1, 'k');
  std::vector<std::string_view> keys(50, "large");
  keys[1] = "none";
  keys[2] = too_long;
  std::vector<base::Expected<Item>> results(keys.size());
  const size_t count = get_some(keys, results);
  ASSERT_GT(count, 5u) << "three values, which are less than a MiB";
  EXPECT_LE((count - 2) * value.size(), Items::kFoundBytes);
  EXPECT_FALSE(results[1]->found());
  EXPECT_EQ(results[2].error().number, EINVAL);
  for (size_t i = 3; i < count; ++i) EXPECT_EQ(results[i]->value_bytes(), value.size()) << i;
  EXPECT_EQ(shared.counts()[Count::kGetHits], count - 2) << "what is looked up later is counted then";
}

TEST_F(ItemsTest, OfManyLargeValuesOneAtATimeHasMemory) {
  EXPECT_EQ(set("large", std::string(600'000, 'v')), Outcome::kDone);
  const std::vector<std::string_view> keys(5, "large");
  std::vector<uint64_t> reads;
  const auto use = [&](base::Expected<Item>& item) {
    EXPECT_TRUE(item && item->is_large());
    reads.push_back(store->counts().use.io_for(kv::IoFor::kGets).reads);
  };
  EXPECT_EQ(items.get_some(keys, use), 5u);
  for (size_t i = 1; i < reads.size(); ++i)
    EXPECT_EQ(reads[i], reads[i - 1] + 1) << "the first piece of each is read when it is used";
}

TEST_F(ItemsTest, WhatIsNoItemIsRefused) {
  kv::Session session;
  ASSERT_TRUE(session.open(*store));
  ASSERT_TRUE(session.put("key", bytes_of("\x7fnot an item")));
  ASSERT_TRUE(session.put("empty", {}));
  EXPECT_EQ(items.get("key").error().number, EBADMSG);
  EXPECT_EQ(items.get("empty").error().number, EBADMSG);
  EXPECT_EQ(items.touch("key", kNever).error().number, EBADMSG);
  EXPECT_EQ(set("key", "value"), Outcome::kDone);
  EXPECT_EQ(get("key"), "value");
  session.close();
}

TEST_F(ItemsTest, CountsOfWhoIsGoneStay) {
  get("key");
  {
    Items others;
    ASSERT_TRUE(others.open(shared));
    of(others.get("key"));
    EXPECT_EQ(shared.counts()[Count::kGetMisses], 2u);
    others.close();
  }
  EXPECT_EQ(shared.counts()[Count::kGetMisses], 2u);
  EXPECT_EQ(shared.counts()[Count::kGetHits], 0u);
}

// What a cache drops while somebody uses it counts as absent.
class CacheItemsTest : public ItemsTest {
 protected:
  static constexpr size_t kLargeBytes = 600 << 10;

  CacheItemsTest() : ItemsTest(*storage::make_memory_device(32 << 20)) {}
  void SetUp() override {
    ASSERT_TRUE(kv::Store::make(*device, {.segment_bytes = 1 << 20, .is_cache = true}));
    open();
  }
  void drop_all(Items& by) {
    const std::string value(kLargeBytes, 'o');
    for (int i = 0; i < 100; ++i) of(by.set("other" + std::to_string(i), bytes_of(value)));
  }
};

TEST_F(CacheItemsTest, BeforeItIsReadItIsAbsent) {
  set("large", std::string(kLargeBytes, 'l'));
  kv::Session session;
  ASSERT_TRUE(session.open(*store));
  kv::Found found = of(session.get("large"));
  ASSERT_TRUE(found.found());
  drop_all(items);
  const Item item = of(Item::of(session, std::move(found)));
  EXPECT_FALSE(item.found());
  session.close();
}

TEST_F(CacheItemsTest, WhatLeavesNoTraceKeepsNothing) {
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "key" + std::to_string(i);
    set(key, std::string(2000, 'v'));
    EXPECT_TRUE(of(items.look(key)).found());
    EXPECT_TRUE(of(items.fetch(key, {.leaves_no_trace = true})).item.found());
    EXPECT_EQ(of(items.expire(key, kNever, {.if_ends = true, .leaves_no_trace = true})).outcome,
              Outcome::kUnmet);
  }
  EXPECT_GT(store->counts().collected.dropped_records, 0u);
  EXPECT_EQ(store->counts().collected.kept_records, 0u);
}

TEST_F(CacheItemsTest, WhileItIsChangedItIsAnew) {
  set("large", std::string(kLargeBytes, 'l'));
  Items other;
  ASSERT_TRUE(other.open(shared));
  std::vector<bool> was_there;
  auto appends = [&](const Item& item) -> base::Expected<Change> {
    was_there.push_back(item.found());
    if (!item.found()) return Change::nothing(Outcome::kAbsent);
    drop_all(other);
    Change change = Change::value_of(item);
    change.add(Part::old(0, item.value_bytes()));
    return change;
  };
  EXPECT_EQ(of(items.update("large", appends)).outcome, Outcome::kAbsent);
  EXPECT_EQ(was_there, std::vector<bool>({true, false}));
  other.close();
}

}  // namespace
}  // namespace server
