#include "kv/collection/collector.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "kv/media/clock.h"
#include "kv/testing/life.h"
#include "kv/testing/store_image.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

constexpr uint64_t kBytes = 25 << 20;  // 24 segments of 1 MiB

class CollectorTest : public StoreTest {
 protected:
  CollectorTest() : StoreTest(kBytes) {}
  void SetUp() override { make({.segment_bytes = 1 << 20}); }

  // Puts this many bytes in all, in small values of a few keys. `expected` gets the last value of each key.
  void overwrite(uint64_t bytes, int keys, std::map<std::string, std::string>& expected, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (uint64_t done = 0; done < bytes;) {
      const std::string key = "key" + std::to_string(random() % static_cast<uint64_t>(keys));
      std::string value(random() % 6000, static_cast<char>('a' + random() % 26));
      value += "#" + std::to_string(done);
      ASSERT_EQ(put(key, value), Outcome::kDone);
      done += value.size();
      expected[key] = value;
    }
  }
  void expect_all(const std::map<std::string, std::string>& expected, int keys) {
    for (int i = 0; i < keys; ++i) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_EQ(get(key), expected.contains(key) ? expected.at(key) : "(none)") << key;
    }
  }
};

TEST_F(CollectorTest, AStoreIsWrittenManyTimesOver) {
  std::map<std::string, std::string> expected;
  for (uint64_t turn = 0; turn < 3; ++turn) {
    overwrite(3 * kBytes, 2000, expected, turn);
    expect_all(expected, 2000);
    EXPECT_GT(store->counts().collected.victims, 30u);
    reopen();
    expect_all(expected, 2000);
    EXPECT_EQ(store->counts().index.entries, expected.size());
  }
  store->compact();
  expect_all(expected, 2000);
  store->verify();
}

TEST_F(CollectorTest, AFullStoreSaysSoGoesOnReadingAndHasRoomAgain) {
  int count = 0;
  base::Expected<Changed> done;
  do done = session.put("key" + std::to_string(count++), bytes_of(std::string(100'000, 'v')));
  while (done && count < 1000);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().number, ENOSPC);
  // 24 segments less 10 % are 21; what the collector needs in a small store is taken off that, too.
  EXPECT_GT(count, 150);
  for (int i = 0; i < count - 1; ++i) ASSERT_EQ(get("key" + std::to_string(i)), std::string(100'000, 'v'));
  EXPECT_EQ(get("key" + std::to_string(count - 1)), "(none)");
  EXPECT_EQ(session.put("key0", {}).error().number, ENOSPC);
  // How much fits depends on what segments lose at their ends, which varies.
  const int most = count - count / 10;
  for (int i = most; i < count - 1; ++i) EXPECT_EQ(remove("key" + std::to_string(i)), Outcome::kDone);
  for (int turn = 0; turn < 10; ++turn) {
    for (int i = turn % 2; i < most; i += 2) EXPECT_EQ(remove("key" + std::to_string(i)), Outcome::kDone);
    for (int i = turn % 2; i < most; i += 2)
      ASSERT_EQ(put("key" + std::to_string(i), std::string(100'000, static_cast<char>('a' + turn))),
                Outcome::kDone);
  }
  reopen();
  EXPECT_EQ(get("key0"), std::string(100'000, 'a' + 8));
  EXPECT_EQ(get("key1"), std::string(100'000, 'a' + 9));
  store->compact();
  store->verify();
}

// What was removed stays removed, but tombstones do not stay for ever, whatever lies in the oldest segments.
TEST_F(CollectorTest, TombstonesEndWhenNoOlderCopyIsLeft) {
  std::map<std::string, std::string> expected;
  overwrite(40 << 20, 2500, expected, 1);  // 8 MiB that are not touched again
  const uint64_t entries = store->counts().index.entries;
  constexpr int kTurns = 150'000, kGrains = 24 * 2048;
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::string key = "job" + std::to_string(turn);
    ASSERT_EQ(put(key, "work"), Outcome::kDone);
    ASSERT_EQ(remove(key), Outcome::kDone);
  }
  EXPECT_GT(store->counts().collected.ended_tombstones, static_cast<uint64_t>(kTurns - kGrains));
  EXPECT_EQ(store->counts().index.entries, entries);
  for (int turn = 0; turn < 2; ++turn) {
    reopen();
    EXPECT_EQ(store->counts().index.entries, entries);
    expect_all(expected, 2500);
    store->compact();
  }
  store->verify();
}

TEST_F(CollectorTest, WhatHasExpiredMakesRoomAndDoesNotComeBack) {
  Clock clock;
  clock.stop();
  const StoreOptions options = {.durability = Durability::kNone, .stream_count = 2, .clock = &clock};
  close();
  open(options);
  const uint64_t soon = clock.now_ms() + 300;
  // Older values without an expiry, which the expired ones must go on hiding: too few for their segment to be collected.
  for (int i = 0; i < 20; ++i) put("key" + std::to_string(i), "old");
  for (int i = 0; i < 10; ++i) put("stays" + std::to_string(i), std::string(100'000, 's'));
  int count = 0;
  while (
      session.put("key" + std::to_string(count), bytes_of(std::string(100'000, 'v')), {.expires_ms = soon}))
    ++count;
  ASSERT_GT(count, 100);
  clock.move(300);
  for (int i = 0; i < 150; ++i)
    ASSERT_EQ(put("new" + std::to_string(i), std::string(100'000, 'n')), Outcome::kDone) << i;
  EXPECT_GT(store->counts().collected.expired_records, 50u);
  for (int i = 0; i < count; ++i) ASSERT_EQ(get("key" + std::to_string(i)), "(none)") << i;
  close();
  open(options);
  for (int i = 0; i < count; ++i) ASSERT_EQ(get("key" + std::to_string(i)), "(none)") << i;
  EXPECT_EQ(get("new149"), std::string(100'000, 'n'));
  close();
}

TEST_F(CollectorTest, ADamagedRecordStaysWhereItIs) {
  std::map<std::string, std::string> expected;
  overwrite(6 << 20, 300, expected, 1);
  ASSERT_TRUE(expected.contains("key7"));
  // Damages one byte of the record.
  reopen();  // sealed
  Channel channel;
  ASSERT_TRUE(channel.open_for_threads(*device));
  // Finds the record by its bytes.
  alignas(4096) std::byte block[4096];
  bool is_found = false;
  for (uint64_t at = kSegmentsOffset; at + 4096 <= kBytes && !is_found; at += 512) {
    ASSERT_EQ(channel.read(at, std::span(block, 4096)), 0);
    RecordHeader header;
    memcpy(&header, block, sizeof header);
    is_found = header.key_bytes() == 4 && memcmp(block + sizeof header, "key7", 4) == 0 &&
               header.sequence() == session.get("key7")->version();
    if (!is_found) continue;
    block[60] ^= std::byte{1};
    ASSERT_EQ(channel.write(at, std::span(block, 512)), 0);
  }
  ASSERT_TRUE(is_found);
  channel.close();
  EXPECT_EQ(session.get("key7").error().number, EBADMSG);
  std::map<std::string, std::string> others;
  std::mt19937_64 random(2);
  for (int i = 0; i < 30'000; ++i) {
    const std::string key = "key" + std::to_string(100 + random() % 200);
    others[key] = std::string(random() % 4000, 'x');
    ASSERT_EQ(put(key, others[key]), Outcome::kDone);
  }
  EXPECT_GT(store->counts().collected.victims, 50u);
  store->compact();  // the damaged record's segment, too, has something to gain
  EXPECT_GT(store->counts().collected.damaged_records, 0u);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(session.get("key7").error().number, EBADMSG) << "and neither gone nor an older one";
    for (const auto& [key, value] : others) ASSERT_EQ(get(key), value);
    reopen();
  }
  // A new value ends it.
  EXPECT_EQ(put("key7", "new"), Outcome::kDone);
  EXPECT_EQ(get("key7"), "new");
  store->verify();
}

// Many threads in a store that is being collected all the time: a reader never finds a value of another key.
TEST_F(CollectorTest, ReadersNeverSeeWhatIsBeingWrittenOver) {
  constexpr int kThreads = 4, kKeys = 600;
  std::vector<std::thread> threads;
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> found_count{0};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Session own;
      ASSERT_TRUE(own.open(*store));
      std::mt19937_64 random(static_cast<uint64_t>(t));
      for (uint64_t i = 0; !ends; ++i) {
        const std::string key = "key" + std::to_string(random() % kKeys);
        if (t % 2 == 0) {
          std::string value = key + "=" + std::string(random() % 20'000, static_cast<char>('a' + i % 26));
          auto done = own.put(key, bytes_of(value));
          ASSERT_TRUE(done) << done.error().message;
          if (random() % 8 == 0) ASSERT_TRUE(own.remove(key));
        } else {
          auto found = own.get(key);
          ASSERT_TRUE(found) << found.error().message;
          found_count += found->found();
          if (found->found()) ASSERT_EQ(text_of(found->value()).substr(0, key.size() + 1), key + "=");
        }
      }
      own.close();
    });
  while ((store->counts().collected.victims < 200 || found_count < 100) && !HasFailure())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ends = true;
  for (auto& thread : threads) thread.join();
  store->compact();
  store->verify();
}

TEST(AllWantedTest, IsForAsLongAsAnyoneWantsIt) {
  Life life(empty_medium(test_identity(kSegments)));
  life.put("key");
  life.seal();
  bool did = false;
  {
    const Collector::AllWanted all(life.collector);
    {
      const Collector::AllWanted other(life.collector);
    }
    ASSERT_EQ(life.collector.step(did).error, 0);
    EXPECT_TRUE(did);
    EXPECT_EQ(life.log.counts().emptied_segments, 1u);
  }
  EXPECT_FALSE(life.collector.wants_all());
}

// Signals arrive in the middle of steps.
TEST(CompactTest, HandlersOfSignalsDoNotEndIt) {
  auto* const device = new CallingDevice(std::vector<std::byte>(kBytes));
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  const StoreOptions options = {.durability = Durability::kNone, .stream_count = 1};
  Store* store = *Store::open(*device, options);
  Session session;
  ASSERT_TRUE(session.open(*store));
  ASSERT_TRUE(session.put("stays", bytes_of("here")));
  for (int i = 0; i < 600; ++i)
    ASSERT_TRUE(session.put("key" + std::to_string(i % 10), bytes_of(std::string(6000, 'v'))));
  session.close();
  ASSERT_TRUE(store->close());
  const StoreImage image(device->medium());
  const uint64_t footer = image.last_grain_of(image.newest("stays")->segment);
  store = *Store::open(*device, options);

  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  const pthread_t self = pthread_self();
  std::atomic<bool> was_interrupted{false};
  device->call_at_read(footer, [&] {
    for (int i = 0; i < 20; ++i) {
      pthread_kill(self, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    was_interrupted = true;
  });
  EXPECT_TRUE(store->compact());
  EXPECT_TRUE(was_interrupted);
  EXPECT_GT(store->counts().collected.victims, 0u);
  EXPECT_TRUE(store->close());
  sigaction(SIGUSR1, &before, nullptr);
  device->close();
}

}  // namespace
}  // namespace kv
