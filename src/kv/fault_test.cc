// Stores on a device that fails: calls report it, nothing that was acknowledged is lost, reads go on, and afterwards all is as if there had been
// no failure; but after a failed flush nothing is written any more.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "kv/testing/test_store.h"
#include "storage/decorators/fault.h"
#include "storage/testing/test_fail_device.h"

namespace kv {
namespace {

constexpr uint64_t kBytes = 25 << 20;

using Texts = std::map<std::string, std::string>;
using Failing = storage::FailDevice::Failing;

class FaultTest : public testing::Test {
 protected:
  ~FaultTest() override {
    if (store != nullptr) close();
    device->close();
  }
  void SetUp() override { make(kBytes, 1 << 20); }
  void make(uint64_t bytes, uint64_t segment_bytes) {
    auto memory = storage::make_memory_device(bytes);
    ASSERT_TRUE(memory);
    device = new storage::FailDevice(*memory);
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = segment_bytes}));
    open();
  }
  void open(Durability durability = Durability::kNone, uint64_t checkpoint_records = 0) {
    auto opened = Store::open(*device, {.durability = durability,
                                        .batch_ns = 1'000'000,
                                        .stream_count = 1,
                                        .checkpoint_records = checkpoint_records});
    ASSERT_TRUE(opened) << opened.error().message;
    store = *opened;
    ASSERT_TRUE(session.open(*store));
  }
  base::Expected<void> close() {
    session.close();
    auto closed = store->close();
    store = nullptr;
    return closed;
  }
  // Changes some key. If that fails, it is not known whether the change was made.
  int change(uint64_t number) {
    const std::string key = "key" + std::to_string(random() % key_count);
    auto& values = possible.try_emplace(key, std::set<std::string>{""}).first->second;
    const bool is_remove = random() % 5 == 0 && !values.contains("");  // if it does, nothing might be written
    const std::string value = is_remove ? "" : std::to_string(number) + std::string(random() % 6000, 'v');
    auto done = is_remove ? session.remove(key) : session.put(key, bytes_of(value));
    if (done) values.clear();
    values.insert(value);
    return done ? 0 : done.error().number;
  }
  // Makes `count` changes that succeed.
  void work(int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(change(static_cast<uint64_t>(i)), 0) << i;
  }
  void expect_all() {
    for (const auto& [key, values] : possible) {
      auto found = session.get(key);
      ASSERT_TRUE(found) << key << ": " << found.error().message;
      ASSERT_TRUE(values.contains(std::string(found->found() ? text_of(found->value()) : ""))) << key;
    }
  }
  // Nothing is left of the failure.
  void expect_good() {
    device->fail(Failing::kNothing, 0);
    // The collector and the keeper try again in a moment.
    for (int tries = 0; !session.put("good", bytes_of("again")); ++tries) {
      ASSERT_LT(tries, 30'000) << "a millisecond each";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    work(12'000);
    expect_all();
    store->compact();
    store->verify();
    EXPECT_GT(store->counts().collected.victims, 10u);
    expect_all();
    ASSERT_TRUE(close());
    open();
    expect_all();
    store->verify();
  }

  storage::FailDevice* device = nullptr;
  Store* store = nullptr;
  Session session;
  uint64_t key_count = 700;
  std::mt19937_64 random{1};
  std::map<std::string, std::set<std::string>> possible;
};

// A file system that fills up, and has room again.
TEST_F(FaultTest, WritesThatFindNoSpace) {
  work(500);
  device->fail(Failing::kWrites, ENOSPC);
  // Even when they need segments that cannot be prepared.
  for (uint64_t i = 0; i < 2000; ++i) ASSERT_EQ(change(i), ENOSPC);
  expect_all();
  expect_good();
}

// Only after a failed flush does the store have to be opened again.
TEST_F(FaultTest, WhatToDoAboutAFullFileSystemIsSaid) {
  const auto ends_with = [](const auto& done, std::string_view end) {
    return !done && std::string_view(done.error().message).ends_with(end);
  };
  ASSERT_TRUE(close());
  open(Durability::kSync);
  device->fail(Failing::kWrites, ENOSPC);
  EXPECT_TRUE(ends_with(session.put("key", bytes_of("value")), "device; make room where its file is"));
  device->fail(Failing::kFlushes, ENOSPC);
  const std::string_view again = "device; make room where its file is, and open it again";
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ends_with(session.put("key", bytes_of("value")), again)) << i;
  device->fail(Failing::kNothing, 0);
}

TEST_F(FaultTest, WritesThatFail) {
  work(500);
  device->fail(Failing::kWrites, EIO);
  for (uint64_t i = 0; i < 2000; ++i) ASSERT_EQ(change(i), EIO);
  expect_all();
  expect_good();
}

// A victim is begun anew after some of its records were moved, or tombstones in it have ended.
TEST_F(FaultTest, CollectionThatFails) {
  ASSERT_TRUE(close());
  device->close();
  constexpr uint64_t kLarge = 97 << 20;
  make(kLarge, 4 << 20);  // more than is moved at once
  key_count = 12'000;
  for (uint64_t turn = 0; turn < 8; ++turn) {
    work(5000);
    const uint64_t moved = store->counts().collected.moved_records;
    device->fail(Failing::kWrites, EIO, 15 + 4 * turn);
    store->compact();
    device->fail(Failing::kNothing, 0);
    EXPECT_GT(store->counts().collected.moved_records, moved);
    const LogCounts counts = store->counts().log;
    EXPECT_LT(counts.live_bytes, kLarge);
    EXPECT_LT(counts.live_grains, kLarge / 512);
    EXPECT_LT(counts.tombstone_bytes, kLarge);
  }
  store->compact();
  const uint64_t tombstones = store->counts().log.tombstone_bytes;
  ASSERT_TRUE(close());
  open();
  EXPECT_EQ(store->counts().log.tombstone_bytes, tombstones) << "what was counted is what is there";
  expect_good();
}

// While segments are prepared, sealed, collected and given back.
TEST_F(FaultTest, WritesThatFailNowAndThen) {
  for (const int error : {EIO, ENOSPC}) {
    for (uint64_t turn = 0; turn < 40; ++turn) {
      device->fail(Failing::kWrites, error, 1 + random() % 60);
      int failures = 0;
      for (uint64_t i = 0; i < 300; ++i) failures += change(i) != 0;
      EXPECT_GT(failures, 0);
      expect_all();
      device->fail(Failing::kNothing, 0);
      for (uint64_t i = 0; i < 100; ++i) change(i);
    }
    expect_good();
  }
}

TEST_F(FaultTest, ReadsThatFail) {
  work(3000);
  device->fail(Failing::kReads, EIO);
  int failures = 0;
  for (int i = 0; i < 20; ++i) {
    auto found = session.get("key" + std::to_string(i));
    if (found) continue;
    EXPECT_EQ(found.error().number, EIO);
    ++failures;
  }
  EXPECT_GT(failures, 10) << "all but those that are not there";
  // Records that are there are replaced unread.
  for (uint64_t i = 0; i < 50; ++i) EXPECT_EQ(change(i), 0);
  device->fail(Failing::kNothing, 0);
  expect_all();
  expect_good();
}

// The key's record cannot be read: nothing is written in its place, and the pieces of the large value, which are written first, are not kept.
TEST_F(FaultTest, PiecesOfAValueThatIsNotPutAreGivenBack) {
  work(300);
  ASSERT_TRUE(session.put("key", bytes_of("short"), {}));
  const std::string large(700 << 10, 'l');
  const uint64_t before = store->counts().log.live_bytes;
  device->fail(Failing::kReads, EIO, 1, 1);
  auto put = session.put("key", bytes_of(large), {.when = When::kIfAbsent});
  ASSERT_FALSE(put);
  ASSERT_EQ(put.error().number, EBADMSG);
  // The collector takes them out of the index.
  for (int tries = 0; store->counts().log.live_bytes != before && tries < 20'000; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(store->counts().log.live_bytes, before);
  expect_good();
}

// The collector repeats a read that has failed once.
TEST_F(FaultTest, AReadThatFailsOnceCostsNothing) {
  int failed = 0;
  for (uint64_t every = 1; every <= 24; ++every) {
    work(1000);
    device->fail(Failing::kReads, EIO, every, 1);
    store->compact();
    failed += device->has_failed();
    device->fail(Failing::kNothing, 0);
    ASSERT_EQ(store->counts().collected.damaged_records, 0u) << "the read number " << every;
  }
  EXPECT_GT(failed, 12);
  expect_good();
}

// An error that does not concern a place of the medium never makes a record count as damaged, however often it occurs.
TEST_F(FaultTest, ReadsThatFailForTheProcess) {
  work(4000);
  device->fail(Failing::kReads, ENOMEM);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(store->compact());
  device->fail(Failing::kNothing, 0);
  const uint64_t victims = store->counts().collected.victims;
  EXPECT_TRUE(store->compact());
  EXPECT_GT(store->counts().collected.victims, victims);
  EXPECT_EQ(store->counts().collected.damaged_records, 0u);
  expect_good();
}

// What the collector again and again cannot read stays.
TEST_F(FaultTest, ReadsThatFailNowAndThen) {
  work(3000);
  for (uint64_t turn = 0; turn < 30; ++turn) {
    device->fail(Failing::kReads, EIO, 1 + random() % 40);
    for (uint64_t i = 0; i < 200; ++i) change(i);
    device->fail(Failing::kNothing, 0);
    expect_all();
  }
  ASSERT_TRUE(close());
  open();
  expect_good();
}

TEST_F(FaultTest, AFlushThatFailed) {
  for (const Durability durability : {Durability::kSync, Durability::kBatch, Durability::kNone}) {
    ASSERT_TRUE(close());
    open(durability, 300);
    work(1000);
    device->fail(Failing::kFlushes, EIO);
    // It is a put's flush, the keeper's, of a batch or a segment, the collector's, or a checkpoint's.
    uint64_t count = 0;
    while (change(count) == 0) ASSERT_LT(++count, 20'000u);
    device->fail(Failing::kNothing, 0);
    // Nobody knows what the device has lost.
    for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(change(i), EIO);
    expect_all();
    const auto closed = close();
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().number, EIO);
    open();
    expect_all();
  }
}

// A flush that fails while a segment is given back, or a checkpoint is taken, may lose anything that was written before.
TEST_F(FaultTest, EachFlushOfTheCollector) {
  for (uint64_t flush = 1; flush < 40; ++flush) {
    ASSERT_TRUE(close());
    open(Durability::kNone, 150);
    device->fail(Failing::kFlushes, EIO, flush, 1);
    uint64_t count = 0;
    while (change(count) == 0 && count < 4000) ++count;
    if (device->has_failed()) {
      for (int tries = 0; change(0) == 0; ++tries) {
        ASSERT_LT(tries, 30'000) << "flush " << flush << " was not minded";
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    device->fail(Failing::kNothing, 0);
    expect_all();
    static_cast<void>(close());
    open();
    expect_all();
  }
}

// Transfers that end early, or are torn, by the fault device that users have.
TEST_F(FaultTest, ShortAndTornTransfers) {
  ASSERT_TRUE(close());
  storage::FaultSchedule schedule;
  using Rule = storage::FaultRule;
  schedule.add({.operations = storage::operation_bit(storage::Operation::kWrite),
                .effect = Rule::Effect::kTorn,
                .when = Rule::When::kChance,
                .error = EIO,
                .n = 1,
                .m = 50});
  schedule.add({.operations = storage::operation_bit(storage::Operation::kRead) |
                              storage::operation_bit(storage::Operation::kWrite),
                .effect = Rule::Effect::kShort,
                .when = Rule::When::kChance,
                .n = 1,
                .m = 200});
  schedule.add({.effect = Rule::Effect::kSplit, .when = Rule::When::kChance, .n = 1, .m = 5});
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    schedule.seed = seed;
    auto lent = device->lend();
    auto faults = storage::make_fault_device(lent, schedule);
    ASSERT_TRUE(faults);
    auto opened = Store::open(**faults, {.durability = Durability::kNone, .stream_count = 2});
    if (opened) {
      store = *opened;
      ASSERT_TRUE(session.open(*store));
      int failures = 0;
      for (uint64_t i = 0; i < 4000; ++i) failures += change(i) != 0;
      EXPECT_GT(failures, 20);
      static_cast<void>(close());
    }
    (*faults)->close();
    open();
    expect_all();
    ASSERT_TRUE(close());
  }
  open();
  expect_good();
}

}  // namespace
}  // namespace kv
