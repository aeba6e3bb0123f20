#include "kv/calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/statistics.h"
#include "kv/multi_get.h"
#include "kv/snapshot.h"
#include "kv/testing/gate_device.h"
#include "kv/testing/test_store.h"
#include "task/test_tasks.h"

namespace kv {
namespace {

using std::chrono_literals::operator""ms;

class CallsTest : public StoreTest {
 protected:
  UseCounts use() { return store->counts().use; }
  uint64_t count(CallKind call) { return use().latency(call).count; }
};

TEST_F(CallsTest, EachCallCountsOnceHoweverItEnds) {
  make();
  EXPECT_EQ(use().latency(CallKind::kGet).max_ns, 0u);
  put("key", "value");
  put("key", "other", {.when = When::kIfAbsent});
  get("key");
  get("none");
  EXPECT_FALSE(session.get(""));
  EXPECT_FALSE(session.put("", bytes_of("value")));
  remove("key");
  remove("key");
  put("key", "value");
  const std::string_view keys[] = {"key", "none", "", "key"};
  std::vector<base::Expected<Found>> found(std::size(keys));
  MultiGet::get(session, keys, found);
  const std::vector<std::string_view> many(MultiGet::kGroup + 1, "none");
  std::vector<base::Expected<Found>> none(many.size());
  MultiGet::get(session, many, none);
  EXPECT_EQ(count(CallKind::kPut), 4u);
  EXPECT_EQ(count(CallKind::kGet), 3u);
  EXPECT_EQ(count(CallKind::kRemove), 2u);
  EXPECT_EQ(count(CallKind::kGetMany), 3u) << "one for each group";
  EXPECT_EQ(count(CallKind::kSyncFlush), 0u);
  const UseCounts all = use();
  EXPECT_EQ(all.asked_keys, 3 + std::size(keys) + many.size());
  EXPECT_EQ(all.put_bytes, 2 * 8u) << "of puts that were done";
  EXPECT_EQ(all.got_bytes, 3 * 8u) << "of keys that were found";
  for (CallKind call : {CallKind::kPut, CallKind::kGet, CallKind::kRemove, CallKind::kGetMany}) {
    const Latency& latency = all.latency(call);
    EXPECT_GT(latency.p50_ns, 0u);
    EXPECT_LE(latency.p50_ns, latency.p99_ns);
    EXPECT_LE(latency.p99_ns, latency.p999_ns);
    EXPECT_LE(latency.p999_ns, latency.max_ns);
    EXPECT_LE(latency.mean_ns, latency.max_ns);
  }
}

TEST_F(CallsTest, ALargeValueIsOnePut) {
  make();
  const std::string large(3'000'000, 'l');
  put("large", large);
  ValueWriter writer;
  ASSERT_TRUE(writer.open(session, "parts"));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer.append(bytes_of(large).first(1'000'000)));
  ASSERT_TRUE(writer.commit());
  ASSERT_TRUE(writer.open(session, "small"));
  ASSERT_TRUE(writer.append(bytes_of("12345")));
  ASSERT_TRUE(writer.commit());
  EXPECT_EQ(count(CallKind::kPut), 3u);
  EXPECT_EQ(use().put_bytes, 2 * 3'000'005u + 10);
  EXPECT_EQ(use().got_bytes, 0u);
  auto found = session.get("large");
  ASSERT_TRUE(found && found->is_large());
  EXPECT_EQ(use().got_bytes, 5u) << "what was read, and that is the key";
  EXPECT_EQ(whole_value(session, *found), large);
  EXPECT_EQ(use().got_bytes, 3'000'005u);
  EXPECT_EQ(count(CallKind::kGet), 1u);
}

TEST_F(CallsTest, FlushesOfSyncPutsAreTimed) {
  make();
  close();
  open({.durability = Durability::kSync});
  for (int i = 0; i < 5; ++i) put("key", "value");
  EXPECT_EQ(count(CallKind::kSyncFlush), 5u);
  EXPECT_EQ(use().io_for(IoFor::kChanges).flushes, 5u);
}

TEST_F(CallsTest, IosAreWhatTheyAreFor) {
  make();
  constexpr int kKeys = 100;
  for (int i = 0; i < kKeys; ++i) put("key" + std::to_string(i), std::string(700, 'v'));
  UseCounts before = use();
  EXPECT_EQ(before.io_for(IoFor::kChanges).writes, 100u);
  EXPECT_EQ(before.io_for(IoFor::kChanges).written_bytes, 100 * 1024u);
  EXPECT_EQ(before.io_for(IoFor::kGets).reads, 0u);
  EXPECT_GE(before.write_amplification(), 100 * 1024 / (100 * 705.0));
  EXPECT_GE(before.writes_per_change(), 1);
  for (int i = 0; i < kKeys; ++i) get("key" + std::to_string(i));
  EXPECT_EQ(use().io_for(IoFor::kGets).reads, 100u);
  EXPECT_EQ(use().io_for(IoFor::kGets).read_bytes, 100 * 1024u);
  EXPECT_EQ(use().reads_per_get(), 1);
  get("none");
  EXPECT_LT(use().reads_per_get(), 1);
  const std::vector<std::string_view> keys = {"key0", "key1", "key2"};
  std::vector<base::Expected<Found>> found(keys.size());
  MultiGet::get(session, keys, found);
  EXPECT_EQ(use().io_for(IoFor::kGets).reads, 103u);
  EXPECT_EQ(use().io_for(IoFor::kChanges).reads, before.io_for(IoFor::kChanges).reads);
  remove("key0");
  EXPECT_GT(use().io_for(IoFor::kChanges).reads, before.io_for(IoFor::kChanges).reads);
  EXPECT_EQ(use().io_for(IoFor::kSnapshots).reads, 0u);
  Snapshot snapshot;
  ASSERT_TRUE(snapshot.open(session));
  for (Snapshot::Entry entry; *snapshot.next(entry);) {
  }
  snapshot.close();
  EXPECT_EQ(use().io_for(IoFor::kSnapshots).reads, 99u);
  EXPECT_EQ(use().io_for(IoFor::kGets).reads, 103u);
}

TEST_F(CallsTest, CollectionAndCheckpointsAreToldApart) {
  make({.segment_bytes = 1 << 20});
  close();
  open({.durability = Durability::kNone, .stream_count = 1, .checkpoint_records = 3000});
  for (int i = 0; i < 20'000; ++i) put("key" + std::to_string(i % 500 * (i % 3)), std::string(2000, 'v'));
  store->compact();
  const StoreCounts counts = store->counts();
  const UseCounts& all = counts.use;
  ASSERT_GT(counts.collected.moved_bytes, 0u);
  ASSERT_GT(counts.collected.checkpoints, 0u);
  EXPECT_GE(all.io_for(IoFor::kCollection).written_bytes, counts.collected.moved_bytes);
  EXPECT_GE(all.io_for(IoFor::kCollection).read_bytes, counts.collected.read_bytes);
  EXPECT_GE(all.io_for(IoFor::kCheckpoints).written_bytes, counts.collected.checkpoint_bytes);
  EXPECT_LE(all.io_for(IoFor::kCheckpoints).written_bytes,
            counts.collected.checkpoint_bytes + (counts.collected.checkpoints << 20));
  EXPECT_GT(all.io_for(IoFor::kKeeper).written_bytes, 0u);
}

// What the devices count, which know nothing about the store.
struct DeviceIo {
  static DeviceIo now() {
    const auto& all = base::statistics;
    return {all.storage_reads.get(), all.storage_read_bytes.get(), all.storage_writes.get(),
            all.storage_write_bytes.get()};
  }
  bool operator==(const DeviceIo&) const = default;
  uint64_t reads, read_bytes, writes, write_bytes;
};

// Both counts, once nothing has happened for a while.
std::pair<DeviceIo, IoCounts> settled(Store& store) {
  for (;;) {
    const DeviceIo device = DeviceIo::now();
    std::this_thread::sleep_for(50ms);
    const IoCounts counts = store.counts().use.all_io();
    if (DeviceIo::now() == device) return {device, counts};
  }
}

TEST_F(CallsTest, AllThatIsReadAndWrittenIsCounted) {
  make({.segment_bytes = 1 << 20});
  close();
  open({.durability = Durability::kNone, .stream_count = 2, .checkpoint_records = 3000});
  const auto [device, counts] = settled(*store);
  for (int i = 0; i < 20'000; ++i) put("key" + std::to_string(i % 500 * (i % 3)), std::string(2000, 'v'));
  for (int i = 0; i < 500; ++i) get("key" + std::to_string(i));
  put("large", std::string(2'000'000, 'l'));
  get("large");
  remove("large");
  store->compact();
  const auto [device_then, counts_then] = settled(*store);
  ASSERT_GT(store->counts().collected.victims, 0u);
  EXPECT_EQ(counts_then.reads - counts.reads, device_then.reads - device.reads);
  EXPECT_EQ(counts_then.read_bytes - counts.read_bytes, device_then.read_bytes - device.read_bytes);
  EXPECT_EQ(counts_then.writes - counts.writes, device_then.writes - device.writes);
  EXPECT_EQ(counts_then.written_bytes - counts.written_bytes, device_then.write_bytes - device.write_bytes);
}

TEST_F(CallsTest, OfTasksToo) {
  make();
  put("key", std::string(700, 'v'));
  task::Scheduler scheduler;
  ASSERT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
  auto main = [&] {
    Session own;
    ASSERT_TRUE(own.open(*store));
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(own.get("key"));
    const std::string_view keys[] = {"key", "key"};
    base::Expected<Found> found[2];
    MultiGet::get(own, keys, found);
    for (auto& one : found) one = Found();
    ASSERT_TRUE(own.put("key", bytes_of(std::string(700, 'w'))));
    own.close();
  };
  ASSERT_TRUE(scheduler.run(task::calls("main", main)));
  scheduler.close();
  EXPECT_EQ(count(CallKind::kGet), 10u);
  EXPECT_EQ(use().io_for(IoFor::kGets).reads, 12u);
  EXPECT_EQ(use().io_for(IoFor::kChanges).writes, 2u);
  EXPECT_EQ(use().io_for(IoFor::kChanges).reads, 1u)
      << "what was there is looked at while it is written over";
}

TEST_F(CallsTest, WhatClosedSessionsHaveCountedStays) {
  make();
  for (int i = 1; i <= 3; ++i) {
    Session own;
    ASSERT_TRUE(own.open(*store));
    ASSERT_TRUE(own.put("key", bytes_of("value")));
    ASSERT_TRUE(own.get("key"));
    EXPECT_EQ(count(CallKind::kPut), static_cast<uint64_t>(i));
    own.close();
    EXPECT_EQ(count(CallKind::kPut), static_cast<uint64_t>(i));
    EXPECT_EQ(count(CallKind::kGet), static_cast<uint64_t>(i));
    EXPECT_EQ(use().io_for(IoFor::kGets).reads, static_cast<uint64_t>(i));
    EXPECT_EQ(use().put_bytes, 8u * static_cast<uint64_t>(i));
    EXPECT_GT(use().latency(CallKind::kPut).max_ns, 0u);
  }
  get("key");
  for (int i = 0; i < 2; ++i) {
    session.close();
    ASSERT_TRUE(session.open(*store));
  }
  EXPECT_EQ(use().io_for(IoFor::kGets).reads, 4u) << "once, though the session is the same object";
  EXPECT_EQ(count(CallKind::kGet), 4u);
  reopen();
  EXPECT_EQ(count(CallKind::kPut), 0u) << "since it was opened";
}

TEST_F(CallsTest, CountsWhileSessionsComeAndGo) {
  make();
  put("key", "value");
  constexpr uint64_t kThreads = 3, kRounds = 40, kCalls = 50;
  std::atomic<uint64_t> left{kThreads};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (uint64_t round = 0; round < kRounds; ++round) {
        Session own;
        ASSERT_TRUE(own.open(*store));
        for (uint64_t i = 0; i < kCalls; ++i) ASSERT_TRUE(own.get("key"));
        own.close();
      }
      --left;
    });
  UseCounts before;
  while (left > 0) {
    const UseCounts now = use();
    EXPECT_GE(now.latency(CallKind::kGet).count, before.latency(CallKind::kGet).count);
    EXPECT_GE(now.io_for(IoFor::kGets).reads, before.io_for(IoFor::kGets).reads);
    EXPECT_GE(now.got_bytes, before.got_bytes);
    before = now;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count(CallKind::kGet), kThreads * kRounds * kCalls);
  EXPECT_EQ(use().asked_keys, kThreads * kRounds * kCalls);
  EXPECT_EQ(use().io_for(IoFor::kGets).reads, kThreads * kRounds * kCalls);
  EXPECT_EQ(use().got_bytes, 8 * kThreads * kRounds * kCalls);
}

TEST(CallsOnAGate, ACallTakesAsLongAsItsCallerWaits) {
  auto* const device = new GateDevice(64 << 20);
  ASSERT_TRUE(Store::make(*device, {}));
  Store* const store = *Store::open(*device, {.durability = Durability::kNone});
  Session session;
  ASSERT_TRUE(session.open(*store));
  ASSERT_TRUE(session.put("key", bytes_of("value")));
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(session.get("key"));
  std::thread reader([&] {
    device->hold_next_read();
    ASSERT_TRUE(session.get("key"));
  });
  device->wait_until_held();
  EXPECT_EQ(store->counts().use.latency(CallKind::kGet).count, 9u) << "one that has not ended";
  std::this_thread::sleep_for(20ms);
  device->let_through();
  reader.join();
  const Latency latency = store->counts().use.latency(CallKind::kGet);
  EXPECT_EQ(latency.count, 10u);
  EXPECT_GE(latency.max_ns, 20'000'000u);
  EXPECT_EQ(latency.p99_ns, latency.max_ns);
  EXPECT_GE(latency.mean_ns, 2'000'000u);
  EXPECT_EQ(latency.sum_ns / latency.count, latency.mean_ns);
  session.close();
  ASSERT_TRUE(store->close());
  device->close();
}

}  // namespace
}  // namespace kv
