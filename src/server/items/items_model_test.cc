// Random calls on few keys, compared with a model: values, flags, expiry, cas, marks; while the clock moves, all is flushed, and the store is
// closed and opened again.
//
// A seed that fails: SPILLWAY_TEST_SEED=n SPILLWAY_TEST_ROUNDS=1. Longer: SPILLWAY_TEST_ROUNDS=100.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kv/testing/test_effort.h"
#include "server/items/items.h"
#include "server/items/numbers.h"
#include "server/items/test_items.h"
#include "server/resp/numbers.h"

namespace server {
namespace {

struct ModelItem {
  std::string value = {};
  uint32_t flags = 0;
  uint64_t expires_ms = kNever;
  Marks marks = {};
  uint64_t cas = 0;
};

class ItemsModelTest : public ItemsTest {
 protected:
  static constexpr uint64_t kMaxValue = 5000;

  void run(uint64_t seed) {
    random.seed(seed);
    options.value_bytes_max = kMaxValue;
    reopen();
    ASSERT_TRUE(items.flush());
    model.clear();
    flush_at_ms = 0;
    const int calls = static_cast<int>(6000 / kv::kEffortParts);
    for (int i = 0; i < calls && !HasFailure(); ++i) {
      call();
      if (pick(400) == 0) reopen();
      if (pick(40) == 0) compare_all();
    }
    compare_all();
  }

 private:
  uint64_t pick(uint64_t below) { return random() % below; }
  bool flip() { return pick(2) == 0; }
  std::string some_key() { return std::string("key") + static_cast<char>('0' + pick(6)); }
  uint64_t some_expiry() { return flip() ? kNever : now_ms() + pick(30) - 3; }
  std::optional<uint64_t> some_cas(const ModelItem* item) {
    const uint64_t kind = pick(4);
    if (kind == 0 && item != nullptr) return item->cas;
    return kind == 1 ? std::optional(pick(1000)) : std::nullopt;
  }
  std::string some_value() {
    if (pick(3) == 0) return std::to_string(static_cast<int64_t>(random()) >> pick(64));
    if (pick(3) == 0) return std::to_string(random());
    return std::string(pick(10) == 0 ? pick(kMaxValue + 100) : pick(20), static_cast<char>('a' + pick(26)));
  }

  void settle() {
    if (flush_at_ms != 0 && flush_at_ms <= now_ms()) {
      model.clear();
      flush_at_ms = 0;
    }
  }
  ModelItem* find(const std::string& key) {
    settle();
    const auto at = model.find(key);
    if (at == model.end()) return nullptr;
    if (at->second.expires_ms != kNever && at->second.expires_ms <= now_ms()) {
      model.erase(at);
      return nullptr;
    }
    return &at->second;
  }
  // What has been changed has a cas that nothing had before.
  void changed(const std::string& key, const ModelItem& item, uint64_t cas, uint64_t own_cas = 0) {
    if (own_cas != 0)
      EXPECT_EQ(cas, own_cas);
    else
      EXPECT_TRUE(versions.insert(cas).second) << cas;
    model[key] = item;
    model[key].cas = cas;
  }
  void compare(const std::string& key, Item item) {
    const ModelItem* const expected = find(key);
    ASSERT_EQ(item.found(), expected != nullptr) << key;
    if (expected == nullptr) return;
    EXPECT_EQ(whole_value(items, item), expected->value) << key;
    EXPECT_EQ(item.flags(), expected->flags) << key;
    EXPECT_EQ(item.expires_ms(), expected->expires_ms) << key;
    EXPECT_EQ(item.marks(), expected->marks) << key;
    EXPECT_EQ(item.cas(), expected->cas) << key;
  }
  void compare_all() {
    std::vector<std::string> keys;
    for (char c = '0'; c < '6'; ++c) keys.push_back(std::string("key") + c);
    const std::vector<std::string_view> asked(keys.begin(), keys.end());
    std::vector<base::Expected<Item>> results(keys.size());
    get_all(asked, results);
    for (size_t i = 0; i < keys.size(); ++i) compare(keys[i], of(std::move(results[i])));
  }

  void call() {
    if (pick(4) == 0) clock.move(static_cast<int64_t>(pick(5)));
    switch (pick(12)) {
      case 0:
      case 1:
      case 2: return call_set(some_key());
      case 3: return call_remove(some_key());
      case 4: return call_expire(some_key());
      case 5: return call_add(some_key());
      case 6: return call_add_integer(some_key());
      case 7: return call_set_range(some_key());
      case 8: return call_fetch(some_key());
      case 9: return call_invalidate(some_key());
      case 10: return call_flush();
      default: {
        const std::string key = some_key();
        return compare(key, of(items.get(key)));
      }
    }
  }

  void call_set(const std::string& key) {
    ModelItem* const is = find(key);
    const std::string value = some_value();
    SetOptions set_options = {.mode = static_cast<Mode>(pick(5)),
                              .flags = static_cast<uint32_t>(random()),
                              .expires_ms = some_expiry(),
                              .keeps_expiry = pick(4) == 0,
                              .takes_lower_cas = flip(),
                              .own_cas = pick(8) == 0 ? 1 + pick(1000) : 0};
    const Mode mode = set_options.mode;
    const bool joins = mode == Mode::kAppend || mode == Mode::kPrepend;
    if (mode != Mode::kAdd) set_options.cas = some_cas(is);
    if (joins && flip()) set_options.makes_until_ms = some_expiry();
    Item before;
    const bool asks = flip();
    const Done done = of(items.set(key, bytes_of(value), set_options, asks ? &before : nullptr));
    ModelItem next = {.value = value, .flags = set_options.flags, .expires_ms = set_options.expires_ms};
    Outcome outcome = Outcome::kDone;
    if (is == nullptr) {
      const bool is_new = joins ? set_options.makes_until_ms.has_value()
                                : mode == Mode::kAdd || (mode == Mode::kSet && !set_options.cas);
      if (!is_new) outcome = Outcome::kAbsent;
      if (joins && is_new) next.expires_ms = *set_options.makes_until_ms;
    } else {
      const auto cas = set_options.cas;
      const bool is_other = cas && *cas != is->cas;
      const bool is_lower = is_other && *cas != 0 && *cas < is->cas;
      const bool takes = is_lower && set_options.takes_lower_cas && !joins;
      if (mode == Mode::kAdd)
        outcome = Outcome::kPresent;
      else if (is_other && !takes)
        outcome = Outcome::kOtherCas;
      else if (joins)
        next = {.value = mode == Mode::kAppend ? is->value + value : value + is->value,
                .flags = is->flags,
                .expires_ms = is->expires_ms};
      if (takes) next.marks = {.is_stale = true, .is_claimed = is->marks.is_claimed};
      if (takes || (set_options.keeps_expiry && !joins)) next.expires_ms = is->expires_ms;
    }
    if (next.value.size() > kMaxValue && (outcome == Outcome::kDone || is_blind(set_options, asks)))
      outcome = Outcome::kTooLong;
    ASSERT_EQ(done.outcome, outcome) << key;
    if (asks && is != nullptr) EXPECT_EQ(whole_value(items, before), is->value);
    if (asks) EXPECT_EQ(before.found(), is != nullptr);
    if (outcome == Outcome::kDone) changed(key, next, done.cas, set_options.own_cas);
  }
  // Such a set checks the value's length before anything else.
  static bool is_blind(const SetOptions& set_options, bool asks) {
    return !asks && set_options.mode == Mode::kAdd;
  }

  void call_remove(const std::string& key) {
    ModelItem* const is = find(key);
    const auto cas = some_cas(is);
    const Done done = of(items.remove(key, cas));
    const bool is_other = is != nullptr && cas && *cas != is->cas;
    ASSERT_EQ(done.outcome, is == nullptr ? Outcome::kAbsent
                            : is_other    ? Outcome::kOtherCas
                                          : Outcome::kDone);
    if (done.outcome == Outcome::kDone) model.erase(key);
  }

  void call_expire(const std::string& key) {
    ModelItem* const is = find(key);
    const uint64_t expires_ms = some_expiry();
    const ExpireOptions options = {.if_never = pick(5) == 0,
                                   .if_ends = pick(5) == 0,
                                   .if_later = pick(5) == 0,
                                   .if_sooner = pick(5) == 0};
    const Done done = of(items.expire(key, expires_ms, options));
    if (is == nullptr) {
      ASSERT_EQ(done.outcome, Outcome::kAbsent);
      return;
    }
    constexpr uint64_t kEver = ~uint64_t{0};
    const uint64_t now = is->expires_ms == kNever ? kEver : is->expires_ms;
    const uint64_t next = expires_ms == kNever ? kEver : expires_ms;
    const bool is_met = (!options.if_never || now == kEver) && (!options.if_ends || now != kEver) &&
                        (!options.if_later || next > now) && (!options.if_sooner || next < now);
    ASSERT_EQ(done.outcome, is_met ? Outcome::kDone : Outcome::kUnmet);
    EXPECT_EQ(done.cas, is->cas);
    if (is_met) is->expires_ms = expires_ms;
  }

  void call_add(const std::string& key) {
    ModelItem* const is = find(key);
    AddOptions add = {.delta = random() >> pick(64), .is_decrease = flip(), .cas = some_cas(is).value_or(0)};
    if (flip()) add.initial = random() >> pick(64);
    add.initial_expires_ms = some_expiry();
    if (pick(4) == 0) add.expires_ms = some_expiry();
    const Added<uint64_t> added = of(items.add(key, add));
    if (is == nullptr) {
      ASSERT_EQ(added.outcome, add.initial ? Outcome::kDone : Outcome::kAbsent);
      if (!add.initial) return;
      EXPECT_EQ(added.number, *add.initial);
      changed(key, {.value = std::to_string(*add.initial), .expires_ms = add.initial_expires_ms}, added.cas);
      return;
    }
    const std::optional<uint64_t> number = unsigned_of_value(is->value);
    const bool is_other = add.cas != 0 && add.cas != is->cas;
    ASSERT_EQ(added.outcome, is->value.empty() ? Outcome::kNotNumber
                             : is_other        ? Outcome::kOtherCas
                             : !number         ? Outcome::kNotNumber
                                               : Outcome::kDone);
    if (added.outcome != Outcome::kDone) return;
    const uint64_t sum = !add.is_decrease      ? *number + add.delta
                         : add.delta > *number ? 0
                                               : *number - add.delta;
    EXPECT_EQ(added.number, sum);
    ModelItem next = *is;
    next.value = std::to_string(sum);
    if (next.value.size() < is->value.size()) next.value.resize(is->value.size(), ' ');
    if (add.expires_ms) next.expires_ms = *add.expires_ms;
    changed(key, next, added.cas);
  }

  void call_add_integer(const std::string& key) {
    ModelItem* const is = find(key);
    const int64_t delta = static_cast<int64_t>(random()) >> pick(64);
    const Added<int64_t> added = of(items.add_integer(key, delta));
    const std::optional<int64_t> number = is != nullptr ? resp::parse_integer(is->value) : 0;
    int64_t sum = 0;
    const bool is_over = number && __builtin_add_overflow(*number, delta, &sum);
    ASSERT_EQ(added.outcome, !number ? Outcome::kNotNumber : is_over ? Outcome::kOverflow : Outcome::kDone);
    if (added.outcome != Outcome::kDone) return;
    EXPECT_EQ(added.number, sum);
    ModelItem next = is != nullptr ? *is : ModelItem();
    next.value = std::to_string(sum);
    changed(key, next, added.cas);
  }

  void call_set_range(const std::string& key) {
    ModelItem* const is = find(key);
    const std::string bytes = some_value();
    const uint64_t offset = pick(10) == 0 ? pick(kMaxValue + 10) : pick(30);
    const Done done = of(items.set_range(key, offset, bytes_of(bytes)));
    ModelItem next = is != nullptr ? *is : ModelItem();
    if (bytes.empty()) {
      EXPECT_EQ(done.value_bytes, next.value.size());
      return;
    }
    if (next.value.size() < offset + bytes.size()) next.value.resize(offset + bytes.size(), '\0');
    next.value.replace(offset, bytes.size(), bytes);
    ASSERT_EQ(done.outcome, next.value.size() > kMaxValue ? Outcome::kTooLong : Outcome::kDone);
    if (done.outcome != Outcome::kDone) return;
    EXPECT_EQ(done.value_bytes, next.value.size());
    changed(key, next, done.cas);
  }

  void call_fetch(const std::string& key) {
    ModelItem* const is = find(key);
    FetchOptions fetch = {.own_cas = flip() ? 1 + pick(1000) : 0,
                          .claims_before_ms = flip() ? now_ms() + pick(30) : 0,
                          .claims_stale = flip()};
    if (flip()) fetch.expires_ms = some_expiry();
    if (flip()) fetch.makes_until_ms = some_expiry();
    Fetched fetched = of(items.fetch(key, fetch));
    ASSERT_EQ(fetched.item.found(), is != nullptr);
    if (is == nullptr) {
      EXPECT_EQ(fetched.is_made, fetch.makes_until_ms.has_value());
      EXPECT_EQ(fetched.has_claimed, fetched.is_made);
      if (fetched.is_made)
        changed(key, {.expires_ms = *fetch.makes_until_ms, .marks = {.is_claimed = true}}, fetched.cas,
                fetch.own_cas);
      return;
    }
    const bool ends_soon = is->expires_ms != kNever && is->expires_ms < fetch.claims_before_ms;
    const bool claims = !is->marks.is_claimed && (ends_soon || (fetch.claims_stale && is->marks.is_stale));
    EXPECT_EQ(fetched.has_claimed, claims);
    EXPECT_EQ(fetched.item.marks(), is->marks);
    EXPECT_EQ(whole_value(items, fetched.item), is->value);
    EXPECT_EQ(fetched.cas, is->cas);
    if (claims) is->marks.is_claimed = true;
    if (fetch.expires_ms) is->expires_ms = *fetch.expires_ms;
    EXPECT_EQ(fetched.expires_ms, is->expires_ms);
  }

  void call_invalidate(const std::string& key) {
    ModelItem* const is = find(key);
    InvalidateOptions invalidate = {.cas = some_cas(is), .makes_stale = flip(), .empties = flip()};
    if (flip()) invalidate.expires_ms = some_expiry();
    const Done done = of(items.invalidate(key, invalidate));
    const bool is_other = is != nullptr && invalidate.cas && *invalidate.cas != is->cas;
    ASSERT_EQ(done.outcome, is == nullptr ? Outcome::kAbsent
                            : is_other    ? Outcome::kOtherCas
                                          : Outcome::kDone);
    if (done.outcome != Outcome::kDone) return;
    ModelItem next = *is;
    if (invalidate.empties) next = {};
    if (invalidate.expires_ms) next.expires_ms = *invalidate.expires_ms;
    next.marks = {.is_stale = invalidate.makes_stale};
    changed(key, next, done.cas);
  }

  void call_flush() {
    settle();
    const uint64_t kind = pick(10);
    if (kind == 0) {
      EXPECT_TRUE(items.flush());
      model.clear();
      flush_at_ms = 0;
    } else if (kind == 1) {
      flush_at_ms = now_ms() + 1 + pick(40);
      EXPECT_TRUE(items.flush_at(flush_at_ms));
    }
  }

  std::mt19937_64 random;
  std::map<std::string, ModelItem> model;
  uint64_t flush_at_ms = 0;
  std::set<uint64_t> versions;
};

TEST_F(ItemsModelTest, CallsDoWhatTheModelDoes) {
  const uint64_t rounds = kv::setting("SPILLWAY_TEST_ROUNDS", 4),
                 first = kv::setting("SPILLWAY_TEST_SEED", 1);
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    SCOPED_TRACE("SPILLWAY_TEST_SEED=" + std::to_string(seed));
    run(seed);
  }
  store->verify();
}

}  // namespace
}  // namespace server
