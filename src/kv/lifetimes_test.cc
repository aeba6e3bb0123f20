// Records that have ended although nobody has removed them: by the store's clock, or below its floor.
#include "kv/media/lifetimes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kv/multi_get.h"
#include "kv/snapshot.h"
#include "kv/testing/test_store.h"

namespace kv {
namespace {

constexpr uint64_t kBytes = 64 << 20;

class LifetimesTest : public StoreTest {
 protected:
  LifetimesTest() : StoreTest(kBytes) { clock.stop(); }
  void SetUp() override {
    auto made = Store::make(*device, {.segment_bytes = 1 << 20});
    ASSERT_TRUE(made) << made.error().message;
    open();
  }
  void open() { StoreTest::open({.durability = Durability::kNone, .stream_count = 2, .clock = &clock}); }
  uint64_t version_of(const std::string& key) { return session.get(key)->version(); }
  // What a get of many keys finds, and what a snapshot does.
  std::vector<std::string> found_by_all(const std::string& key) {
    const std::string_view keys[] = {key};
    base::Expected<Found> results[1];
    MultiGet::get(session, keys, results);
    EXPECT_TRUE(results[0]);
    std::vector<std::string> found = {
        get(key), std::string(results[0]->found() ? text_of(results[0]->value()) : "(none)")};
    Snapshot snapshot;
    EXPECT_TRUE(snapshot.open(session));
    found.push_back("(none)");
    for (Snapshot::Entry entry; *snapshot.next(entry);)
      if (entry.key == key) found.back() = text_of(entry.value);
    return found;
  }
  void expect_everywhere(const std::string& key, const std::string& value) {
    EXPECT_EQ(found_by_all(key), std::vector<std::string>(3, value)) << key;
  }
  // Puts keys until there is no room.
  int fill(size_t value_bytes) {
    int count = 0;
    while (session.put("filler" + std::to_string(count), bytes_of(std::string(value_bytes, 'f')))) ++count;
    return count;
  }

  Clock clock;
};

TEST(ClockTest, StandsUntilItIsMoved) {
  Clock clock;
  const uint64_t before = now_ms();
  EXPECT_GE(clock.now_ms(), before);
  clock.move(1'000'000);
  EXPECT_GE(clock.now_ms(), before + 1'000'000);
  clock.move(-2'000'000);
  EXPECT_LT(clock.now_ms(), before + 1'000'000);
  clock.stop();
  const uint64_t stands = clock.now_ms();
  clock.move(5);
  EXPECT_EQ(clock.now_ms(), stands + 5);
  clock.move(-7);
  EXPECT_EQ(clock.now_ms(), stands - 2);
}

TEST_F(LifetimesTest, ExpiryGoesByTheStoresClock) {
  const uint64_t now = clock.now_ms();
  put("key", "value", {.expires_ms = now + 10});
  put("stays", "value");
  clock.move(9);
  expect_everywhere("key", "value");
  EXPECT_EQ(put("key", "other", {.when = When::kIfAbsent}), Outcome::kPresent);
  clock.move(1);
  expect_everywhere("key", "(none)");
  expect_everywhere("stays", "value");
  EXPECT_EQ(put("key", "other", {.when = When::kIfPresent}), Outcome::kAbsent);
  EXPECT_EQ(remove("key"), Outcome::kAbsent);
  clock.move(-1);
  expect_everywhere("key", "value");
  EXPECT_EQ(&store->clock(), &clock);
}

TEST_F(LifetimesTest, WhatIsBelowTheFloorIsNotThere) {
  put("a", "1");
  put("b", "1");
  put("c", "1");
  const uint64_t a = version_of("a");
  put("mark", "");
  put("later", "1");
  const uint64_t mark = version_of("mark");
  store->forget_below(mark);
  EXPECT_EQ(store->floor(), mark);
  for (const char* key : {"a", "b", "c"}) expect_everywhere(key, "(none)");
  expect_everywhere("mark", "");
  expect_everywhere("later", "1");
  EXPECT_EQ(put("a", "2", {.when = When::kIfPresent}), Outcome::kAbsent);
  EXPECT_EQ(put("a", "2", {.when = When::kIfVersion, .version = a}), Outcome::kAbsent);
  EXPECT_EQ(remove("b"), Outcome::kAbsent);
  EXPECT_EQ(put("a", "2", {.when = When::kIfAbsent}), Outcome::kDone);
  EXPECT_EQ(put("b", "2"), Outcome::kDone);
  expect_everywhere("a", "2");
  expect_everywhere("b", "2");
  store->forget_below(mark - 1);
  EXPECT_EQ(store->floor(), mark) << "it only rises";
  // The store does not save its floor.
  close();
  open();
  EXPECT_EQ(store->floor(), 0u);
  expect_everywhere("a", "2");
  expect_everywhere("c", "1");
  store->forget_below(mark);
  expect_everywhere("c", "(none)");
}

// Even of values that take no more room than their tombstones.
TEST_F(LifetimesTest, AFullStoreOfSmallValuesHasRoomForWhatComesAfterTheFloor) {
  const int count = fill(100);
  ASSERT_GT(count, 50'000);
  for (int turn = 0; turn < 3; ++turn) {
    store->forget_below(store->counts().log.sequence + 1);
    for (int i = 0; i < count / 2; ++i)
      ASSERT_EQ(put("new" + std::to_string(i), std::string(100, 'n')), Outcome::kDone)
          << i << " of " << count;
    EXPECT_EQ(get("filler7"), "(none)");
    EXPECT_EQ(get("new7"), std::string(100, 'n'));
  }
  store->verify();
}

TEST_F(LifetimesTest, AFullStoreHasRoomForWhatComesAfterTheFloor) {
  // Old values of the first keys, which must stay hidden, and a large value.
  for (int i = 0; i < 20; ++i) put("filler" + std::to_string(i), "old");
  const std::string large(700'000, 'l');
  ASSERT_EQ(put("large", large), Outcome::kDone);
  const int count = fill(50'000);
  ASSERT_GT(count, 500);
  EXPECT_EQ(session.put("key", bytes_of(std::string(50'000, 'k'))).error().number, ENOSPC);
  const uint64_t last = store->counts().log.sequence;
  store->forget_below(last + 1);
  EXPECT_EQ(get("large"), "(none)");
  const int new_count = count * 9 / 10;
  for (int i = 0; i < new_count; ++i)
    ASSERT_EQ(put("new" + std::to_string(i), std::string(50'000, 'n')), Outcome::kDone)
        << i << " of " << count;
  EXPECT_GT(store->counts().collected.expired_records, static_cast<uint64_t>(count) / 2);
  for (int i = 0; i < count; ++i) ASSERT_EQ(get("filler" + std::to_string(i)), "(none)") << i;
  for (int i = 0; i < new_count; ++i) ASSERT_EQ(get("new" + std::to_string(i)).size(), 50'000u) << i;
  // What has been collected does not come back, and nothing that was forgotten does once the floor is known.
  close();
  open();
  store->forget_below(last + 1);
  for (int i = 0; i < count; ++i) ASSERT_EQ(get("filler" + std::to_string(i)), "(none)") << i;
  for (int i = 0; i < new_count; ++i) ASSERT_EQ(get("new" + std::to_string(i)).size(), 50'000u) << i;
  store->verify();
}

// The pieces were written before the floor, and the head after it: the value is there, whole.
TEST_F(LifetimesTest, PiecesBelowTheFloorLiveAsLongAsTheirHead) {
  const std::string value(3 << 20, 'p');
  ValueWriter writer;
  ASSERT_TRUE(writer.open(session, "large"));
  ASSERT_TRUE(writer.append(bytes_of(value).first(2 << 20)));
  put("mark", "");
  const uint64_t mark = version_of("mark");
  ASSERT_TRUE(writer.append(bytes_of(value).subspan(2 << 20)));
  ASSERT_EQ(writer.commit()->outcome, Outcome::kDone);
  store->forget_below(mark);
  ASSERT_TRUE(get("large") == value);
  fill(50'000);
  store->forget_below(mark);
  EXPECT_TRUE(store->compact());
  EXPECT_TRUE(get("large") == value);
  // But no longer than that.
  const uint64_t live = store->counts().log.live_grains;
  store->forget_below(store->counts().log.sequence + 1);
  EXPECT_EQ(get("large"), "(none)");
  for (int i = 0; i < 600; ++i) ASSERT_EQ(put("new", std::string(50'000, 'n')), Outcome::kDone) << i;
  EXPECT_LT(store->counts().log.live_grains, live);
  store->verify();
}

}  // namespace
}  // namespace kv
