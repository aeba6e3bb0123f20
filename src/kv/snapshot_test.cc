#include "kv/snapshot.h"

#include <thread>

#include "kv/media/clock.h"
#include "kv/testing/test_snapshot.h"

namespace kv {
namespace {

TEST_F(SnapshotTest, HoldsWhatWasThereWhileEverythingChanges) {
  int whole = 0;
  for (int i = 0; i < 3000; ++i) change(1500, 5000);
  for (int turn = 0; turn < 40; ++turn) {
    auto watched = watch();
    while (step(*watched))
      for (uint64_t changes = random() % 4; changes > 0; --changes) change(1500, 5000);
    if (!watched->has_ended) continue;
    ++whole;
    expect_whole(*watched);
    Snapshot::Entry entry;
    EXPECT_FALSE(*watched->snapshot.next(entry)) << "ends more than once";
  }
  EXPECT_GT(whole, 30);
  EXPECT_GT(store->counts().collected.victims, 50u);
  EXPECT_EQ(kept(), 0u);
  store->compact();
  store->verify();
}

TEST_F(SnapshotTest, SeveralAtATimeEachOfItsOwnMoment) {
  std::unique_ptr<Watched> open[Snapshots::kMax];
  int whole = 0;
  for (int i = 0; i < 2000; ++i) change(800, 5000);
  for (int turn = 0; turn < 60'000; ++turn) {
    if (random() % 4 == 0) change(800, 5000);
    auto& one = open[random() % std::size(open)];
    if (one == nullptr) {
      one = watch();
      EXPECT_EQ(one->expected.size(), store->counts().index.entries);
      continue;
    }
    if (step(*one)) continue;
    if (one->has_ended) {
      expect_whole(*one);
      ++whole;
    }
    one = nullptr;
  }
  EXPECT_GT(whole, 40);
  for (auto& one : open)
    if (one == nullptr) one = watch();
  Snapshot more;
  EXPECT_EQ(more.open(reader).error().number, EBUSY);
  for (auto& one : open) one = nullptr;
  ASSERT_TRUE(more.open(reader));
  more.close();
  EXPECT_EQ(kept(), 0u);
}

class LargerSnapshotTest : public SnapshotTest {
 protected:
  LargerSnapshotTest() : SnapshotTest(81 << 20) {}
};

TEST_F(LargerSnapshotTest, WhileTheIndexGrowsAndShrinks) {
  const auto put_one = [&](int i) {
    const std::string key = "key" + std::to_string(i), value = std::to_string(number++);
    ASSERT_EQ(put(key, value), Outcome::kDone);
    model[key] = value;
  };
  for (int i = 0; i < 20'000; ++i) put_one(i);
  auto small = watch();
  const uint64_t tables = store->counts().index.tables;
  for (int i = 0; i < 80'000; ++i) {
    if (i % 5 == 0) step(*small);
    put_one(i);
  }
  EXPECT_GT(store->counts().index.tables, tables + 1);
  while (step(*small)) {
  }
  ASSERT_TRUE(small->has_ended);
  expect_whole(*small);
  auto grown = watch();
  const uint64_t most = store->counts().index.tables;
  for (int i = 0; i < 79'000; ++i) {
    if (i % 2 == 0) step(*grown);
    ASSERT_EQ(remove("key" + std::to_string(i)), Outcome::kDone);
    model.erase("key" + std::to_string(i));
    if (i % 16 == 0) put_one(i % 1000);
  }
  EXPECT_LT(store->counts().index.tables, most);
  while (step(*grown)) {
  }
  ASSERT_TRUE(grown->has_ended);
  expect_whole(*grown);
}

TEST_F(LargerSnapshotTest, LargeValuesThatAreReplacedAndRemoved) {
  const uint64_t most = 6 * store->identity().geometry.value_bytes_max();
  uint64_t whole = 0;
  for (int i = 0; i < 30; ++i) change(20, most);
  for (int i = 0; i < 200; ++i) {
    const std::string key = "small" + std::to_string(i);
    put(key, key);
    model[key] = key;
  }
  for (int turn = 0; turn < 25; ++turn) {
    auto watched = watch();
    for (int steps = 0; step(*watched); ++steps)
      if (steps % 8 == 0) change(20, most);
    if (!watched->has_ended) continue;
    expect_whole(*watched);
    ++whole;
  }
  EXPECT_GT(whole, 15u);
  EXPECT_GT(store->counts().collected.victims, 50u);
  EXPECT_EQ(kept(), 0u);
  for (const auto& [key, value] : model) EXPECT_EQ(remove(key), Outcome::kDone);
  store->compact();
  EXPECT_EQ(store->counts().index.entries, 0u) << "no piece is left";
  EXPECT_LE(store->counts().log.live_bytes, store->counts().log.tombstone_bytes);
}

TEST_F(SnapshotTest, AnEntryOfALargeValueIsReadInPartsWhileItIsReplaced) {
  std::string value(3'000'000, '\0');
  for (char& byte : value) byte = static_cast<char>(random());
  put("key", value, {.flags = 9});
  Snapshot snapshot;
  ASSERT_TRUE(snapshot.open(reader));
  put("key", "small");
  Snapshot::Entry entry;
  ASSERT_TRUE(*snapshot.next(entry));
  EXPECT_EQ(entry.key, "key");
  EXPECT_TRUE(entry.is_large && entry.value.empty());
  EXPECT_EQ(entry.value_bytes, value.size());
  EXPECT_EQ(entry.flags, 9u);
  EXPECT_EQ(remove("key"), Outcome::kDone);
  store->compact();
  std::string part(100'000, '\0');
  for (uint64_t at = 0; at < value.size() + 1; at += part.size()) {
    const auto read = snapshot.read_value(at, std::as_writable_bytes(std::span(part)));
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_TRUE(part.substr(0, *read) == value.substr(at, part.size()));
  }
  EXPECT_FALSE(*snapshot.next(entry));
  store->compact();
  EXPECT_EQ(store->counts().index.entries, 0u);
  snapshot.close();
}

TEST_F(SnapshotTest, ClosedEarlyGivesEverythingBack) {
  for (int i = 0; i < 2000; ++i) change(800, 4000);
  put("large", std::string(3'000'000, 'l'));
  {
    auto watched = watch();
    ASSERT_TRUE(step(*watched));
    for (int i = 0; i < 1000; ++i) change(800, 4000);
    EXPECT_EQ(remove("large"), Outcome::kDone);
    EXPECT_GT(kept(), 3u);
    store->compact();
    EXPECT_GT(store->counts().log.live_bytes, 3'000'000u);
  }
  EXPECT_EQ(kept(), 0u);
  store->compact();
  uint64_t bytes = 0;
  for (const auto& [key, value] : model) bytes += value.size() + 600;
  EXPECT_LT(store->counts().log.live_bytes - store->counts().log.tombstone_bytes, bytes + (1 << 20));
  EXPECT_EQ(store->counts().index.entries, model.size());
  store->verify();
}

TEST_F(SnapshotTest, IsCancelledWhenItsRoomIsNeeded) {
  for (int i = 0; i < 2000; ++i) change(800, 30'000);
  auto old = watch(), young = watch();
  ASSERT_TRUE(step(*old));
  ASSERT_TRUE(step(*young));
  // What the snapshots keep and what is there now are too much together. No put fails, nor waits for a snapshot.
  for (int i = 0; i < 20'000; ++i) change(800, 30'000);
  for (auto* watched : {old.get(), young.get()}) {
    while (step(*watched)) {
    }
    EXPECT_FALSE(watched->has_ended);
    Snapshot::Entry entry;
    EXPECT_EQ(watched->snapshot.next(entry).error().number, ECANCELED) << "and stays so";
  }
  EXPECT_EQ(kept(), 0u);
  auto again = watch();
  while (step(*again)) {
  }
  EXPECT_TRUE(again->has_ended);
  expect_whole(*again);
}

TEST_F(SnapshotTest, LargeValuesThatItHoldsAreGivenUpForRoom) {
  auto watched = std::make_unique<Watched>();
  for (int i = 0; i < 4; ++i) put("key" + std::to_string(i), std::string(2'500'000, 'a'));
  ASSERT_TRUE(watched->snapshot.open(reader));
  ASSERT_TRUE(step(*watched));
  // Together with what was there before, they would exceed what may be live.
  for (int i = 0; i < 4; ++i)
    ASSERT_EQ(put("key" + std::to_string(i), std::string(2'500'000, 'b')), Outcome::kDone);
  while (step(*watched)) {
  }
  EXPECT_FALSE(watched->has_ended);
  EXPECT_EQ(get("key3"), std::string(2'500'000, 'b'));
}

TEST_F(SnapshotTest, WhatHasExpiredIsNotPartOfIt) {
  put("a", "now", {.expires_ms = now_ms() + 50});
  put("b", std::string(1'000'000, 'x'), {.expires_ms = now_ms() + 50});
  put("c", "later", {.expires_ms = now_ms() + 100'000});
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  Snapshot snapshot;
  ASSERT_TRUE(snapshot.open(reader));
  put("a", "new");
  put("b", "new");
  Snapshot::Entry entry;
  ASSERT_TRUE(*snapshot.next(entry));
  EXPECT_EQ(entry.key, "c");
  EXPECT_GT(entry.expires_ms, now_ms());
  EXPECT_FALSE(*snapshot.next(entry));
  snapshot.close();
}

}  // namespace
}  // namespace kv
