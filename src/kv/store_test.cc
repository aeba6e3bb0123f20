#include "kv/store.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kv/index/entry.h"
#include "kv/multi_get.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_fail_device.h"
#include "task/test_tasks.h"

namespace kv {
namespace {

TEST_F(StoreTest, GivesBackWhatWasPut) {
  make();
  EXPECT_EQ(get("key"), "(none)");
  EXPECT_EQ(put("key", "value"), Outcome::kDone);
  EXPECT_EQ(get("key"), "value");
  EXPECT_EQ(put("key", "another"), Outcome::kDone);
  EXPECT_EQ(get("key"), "another");
  EXPECT_EQ(put("empty", ""), Outcome::kDone);
  EXPECT_EQ(get("empty"), "");
  EXPECT_EQ(remove("key"), Outcome::kDone);
  EXPECT_EQ(get("key"), "(none)");
  EXPECT_EQ(remove("key"), Outcome::kAbsent);
  const std::string long_key(kMaxKeyBytes, 'k'), long_value(256 << 10, 'v');
  EXPECT_EQ(put(long_key, long_value), Outcome::kDone);
  EXPECT_EQ(get(long_key), long_value);
}

TEST_F(StoreTest, RefusesWhatIsNoKeyOrValue) {
  make();
  EXPECT_EQ(session.get("").error().number, EINVAL);
  EXPECT_EQ(session.put(std::string(kMaxKeyBytes + 1, 'k'), {}).error().number, EINVAL);
  EXPECT_EQ(session.put("k", {}, {.expires_ms = uint64_t{1} << 48}).error().number, EINVAL);
  const Bytes too_long(static_cast<const std::byte*>(nullptr), kMaxValueBytes + 1);
  EXPECT_EQ(session.put("k", too_long).error().number, E2BIG);
}

TEST_F(StoreTest, PutsThatDependOnWhatIsThere) {
  make();
  EXPECT_EQ(put("key", "1", {.when = When::kIfPresent}), Outcome::kAbsent);
  EXPECT_EQ(put("key", "1", {.when = When::kIfVersion, .version = 1}), Outcome::kAbsent);
  EXPECT_EQ(put("key", "1", {.when = When::kIfAbsent}), Outcome::kDone);
  EXPECT_EQ(put("key", "2", {.when = When::kIfAbsent}), Outcome::kPresent);
  EXPECT_EQ(put("key", "3", {.when = When::kIfPresent}), Outcome::kDone);
  const uint64_t version = session.get("key")->version();
  EXPECT_EQ(put("key", "4", {.when = When::kIfVersion, .version = version + 1}), Outcome::kVersion);
  EXPECT_EQ(get("key"), "3");
  EXPECT_EQ(put("key", "4", {.when = When::kIfVersion, .version = version}), Outcome::kDone);
  EXPECT_EQ(get("key"), "4");
  EXPECT_EQ(session.remove("key", When::kIfVersion, version)->outcome, Outcome::kVersion);
}

TEST_F(StoreTest, WhatHasExpiredIsNotThere) {
  make();
  EXPECT_EQ(put("key", "1", {.expires_ms = 1}), Outcome::kDone);
  EXPECT_EQ(get("key"), "(none)");
  EXPECT_EQ(session.get("key")->value_bytes(), 0u);
  EXPECT_EQ(session.get("key")->version(), 0u);
  EXPECT_EQ(put("key", "2", {.when = When::kIfAbsent, .expires_ms = uint64_t{1} << 47, .flags = 9}),
            Outcome::kDone);
  EXPECT_EQ(get("key"), "2");
  EXPECT_EQ(session.get("key")->flags(), 9u);
}

TEST_F(StoreTest, IsTheSameAfterItWasClosed) {
  make();
  std::map<std::string, std::string> expected;
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "key" + std::to_string(random() % 3000);
    if (random() % 4 == 0) {
      EXPECT_EQ(remove(key), expected.erase(key) != 0 ? Outcome::kDone : Outcome::kAbsent);
    } else {
      expected[key] = std::string(random() % 3000, static_cast<char>('a' + i % 26));
      put(key, expected[key]);
    }
    if (i % 7000 == 6999) reopen();
  }
  const uint64_t live = store->counts().log.live_grains;
  reopen();
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_EQ(get(key), expected.contains(key) ? expected[key] : "(none)") << key;
  }
  EXPECT_EQ(store->counts().index.entries, expected.size());
  EXPECT_LE(store->counts().log.live_grains, live) << "tombstones of which nothing is known may have gone";
  EXPECT_EQ(store->recovery().passed_grains, 0u);
  put("key", "value");
  store->verify();
}

// In a store of many grains, addresses are long and tags short.
class LargeStore : public StoreTest {
 protected:
  LargeStore() : StoreTest(uint64_t{128} << 30) { device = failing = new storage::FailDevice(device); }
  void SetUp() override {
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 30}));
    open({.durability = Durability::kNone, .stream_count = 1});
    const unsigned told_by =
        kHomeBits + EntryFormat(store->identity().geometry.address_bits()).tag_bits() - 1;
    ASSERT_LE(told_by, 36u);
    std::map<uint64_t, std::string> keys;
    for (uint64_t i = 0; one.empty(); ++i) {
      ASSERT_LT(i, 10'000'000u);
      other = std::to_string(i);
      const uint64_t told = hash_key(store->identity().secret, other).low & ((uint64_t{1} << told_by) - 1);
      const auto [at, is_new] = keys.emplace(told, other);
      if (!is_new) one = at->second;
    }
  }

  storage::FailDevice* failing;
  std::string one, other;  // keys with the same tag
};

TEST_F(LargeStore, KeysWithTheSameTagAreToldApart) {
  ASSERT_TRUE(session.put(one, bytes_of("one")));
  EXPECT_FALSE(session.get(other)->found());
  EXPECT_EQ(session.remove(other)->outcome, Changed::Outcome::kAbsent);
  EXPECT_EQ(session.put(other, bytes_of("other"), {.when = When::kIfAbsent})->outcome,
            Changed::Outcome::kDone);
  EXPECT_EQ(text_of(session.get(one)->value()), "one");
  EXPECT_EQ(text_of(session.get(other)->value()), "other");
  EXPECT_EQ(session.remove(one)->outcome, Changed::Outcome::kDone);
  EXPECT_FALSE(session.get(one)->found());
  EXPECT_EQ(text_of(session.get(other)->value()), "other");
}

TEST_F(LargeStore, ADamagedRecordWithTheSameTagIsAnotherKeys) {
  ASSERT_TRUE(session.put(one, bytes_of("one")));
  ASSERT_TRUE(session.put(other, bytes_of("other")));
  // The first record of the first segment.
  alignas(4096) std::byte nothing[512] = {};
  Channel channel;
  ASSERT_TRUE(channel.open_for_threads(*device));
  ASSERT_EQ(channel.write(kSegmentsOffset + 512, nothing), 0);
  channel.close();
  EXPECT_EQ(session.get(one).error().number, EBADMSG);
  EXPECT_EQ(put(other, "new", {.when = When::kIfPresent}), Outcome::kDone);
  EXPECT_EQ(get(other), "new");
  EXPECT_EQ(put(other, "newer", {.when = When::kIfAbsent}), Outcome::kPresent);
  EXPECT_EQ(session.put(one, bytes_of("new"), {.when = When::kIfAbsent}).error().number, EBADMSG);
}

TEST_F(LargeStore, ARecordWithTheSameTagThatCannotBeReadIsAnotherKeys) {
  ASSERT_TRUE(session.put(one, bytes_of("one")));
  ASSERT_TRUE(session.put(other, bytes_of("other")));
  failing->fail(storage::FailDevice::Failing::kReads, EIO, 1, 1);
  EXPECT_EQ(get(other), "other");
  EXPECT_TRUE(failing->has_failed()) << "what was looked at first";
  failing->fail(storage::FailDevice::Failing::kReads, EIO, 1, 1);
  const std::string_view keys[] = {other};
  base::Expected<Found> found[1];
  MultiGet::get(session, keys, found);
  ASSERT_TRUE(found[0]) << found[0].error().message;
  EXPECT_EQ(text_of(found[0]->value()), "other");
  failing->fail(storage::FailDevice::Failing::kReads, EIO, 1, 1);
  EXPECT_EQ(session.get(one).error().number, EIO);
  failing->fail(storage::FailDevice::Failing::kNothing, 0);
  EXPECT_EQ(get(one), "one");
}

TEST_F(StoreTest, ThreadsThatPutTheSameKeys) {
  make();
  constexpr int kThreads = 4, kKeys = 20, kRounds = 3000;
  std::vector<std::thread> threads;
  std::atomic<int> wins{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Session own;
      ASSERT_TRUE(own.open(*store));
      std::mt19937_64 random(t);
      for (int i = 0; i < kRounds; ++i) {
        const std::string key = "key" + std::to_string(random() % kKeys);
        switch (random() % 4) {
          case 0: ASSERT_TRUE(own.put(key, bytes_of(key + "=" + std::string(random() % 2000, 'v')))); break;
          case 1: ASSERT_TRUE(own.remove(key)); break;
          case 2: {
            auto found = own.get(key);
            ASSERT_TRUE(found) << found.error().message;
            if (found->found()) ASSERT_EQ(text_of(found->value()).substr(0, key.size() + 1), key + "=");
            break;
          }
          case 3: {
            // Increments a counter by compare-and-swap of its version.
            for (bool done = false; !done;) {
              auto found = own.get("counter");
              ASSERT_TRUE(found);
              const uint64_t n = found->found() ? std::stoull(std::string(text_of(found->value()))) : 0;
              const PutOptions options =
                  found->found() ? PutOptions{.when = When::kIfVersion, .version = found->version()}
                                 : PutOptions{.when = When::kIfAbsent};
              auto put = own.put("counter", bytes_of(std::to_string(n + 1)), options);
              ASSERT_TRUE(put) << put.error().message;
              done = put->outcome == Outcome::kDone;
            }
            ++wins;
          }
        }
      }
      own.close();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(get("counter"), std::to_string(wins.load()));
  std::map<std::string, std::string> before;
  for (int i = 0; i < kKeys; ++i) before["key" + std::to_string(i)] = get("key" + std::to_string(i));
  reopen();
  EXPECT_EQ(get("counter"), std::to_string(wins.load()));
  for (const auto& [key, value] : before) EXPECT_EQ(get(key), value);
}

TEST_F(StoreTest, TasksShareASession) {
  make();
  session.close();
  task::Scheduler scheduler;
  ASSERT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
  auto main = [&] {
    ASSERT_TRUE(session.open(*store));
    std::vector<task::Task*> tasks;
    for (int t = 0; t < 32; ++t) {
      tasks.push_back(*task::spawn({.name = "user",
                                    .entry =
                                        [](void* self) {
                                          auto& test = *static_cast<StoreTest_TasksShareASession_Test*>(self);
                                          for (int i = 0; i < 100; ++i) {
                                            const std::string key = "key" + std::to_string(i % 10);
                                            EXPECT_TRUE(test.session.put(key, bytes_of(key)));
                                            EXPECT_EQ(test.get(key), key);
                                          }
                                        },
                                    .argument = this}));
    }
    for (task::Task* task : tasks) static_cast<void>(task::join(*task));
    session.close();
  };
  ASSERT_TRUE(scheduler.run(task::calls("main", main)));
  scheduler.close();
  ASSERT_TRUE(session.open(*store));
  EXPECT_EQ(store->counts().index.entries, 10u);
}

// The keeper is a plain thread, whoever opens the store.
TEST_F(StoreTest, ATaskMayOpenAndCloseIt) {
  ASSERT_TRUE(Store::make(*device, {}));
  task::Scheduler scheduler;
  ASSERT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
  auto main = [&] {
    for (int life = 0; life < 2; ++life) {
      open();
      if (life == 0) {
        EXPECT_EQ(put("key", "value"), Outcome::kDone);
      }
      EXPECT_EQ(get("key"), "value");
      close();
    }
  };
  ASSERT_TRUE(scheduler.run(task::calls("main", main)));
  scheduler.close();
}

}  // namespace
}  // namespace kv
