#include "kv/multi_put.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kv/testing/store_image.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_cut_device.h"
#include "storage/testing/test_fail_device.h"
#include "task/test_tasks.h"

namespace kv {
namespace {

struct Pair {
  std::string key, value;
};

std::vector<base::Expected<Changed>> put_all(Session& session, const std::vector<Pair>& pairs,
                                             uint64_t expires_ms = 0, uint32_t flags = 0) {
  std::vector<MultiPut::Put> puts;
  for (const auto& [key, value] : pairs)
    puts.push_back({.key = key, .value = bytes_of(value), .expires_ms = expires_ms, .flags = flags});
  std::vector<base::Expected<Changed>> results(puts.size());
  MultiPut::put(session, puts, results);
  return results;
}

class MultiPutTest : public StoreTest {
 protected:
  void expect_all(const std::map<std::string, std::string>& model) {
    for (const auto& [key, value] : model) ASSERT_EQ(get(key), value) << key;
  }
};

TEST_F(MultiPutTest, NoneAndOne) {
  make();
  MultiPut::put(session, {}, {});
  const auto results = put_all(session, {{"key", "value"}}, 0, 7);
  ASSERT_TRUE(results[0]);
  EXPECT_EQ(results[0]->outcome, Outcome::kDone);
  auto found = session.get("key");
  EXPECT_EQ(text_of(found->value()), "value");
  EXPECT_EQ(found->version(), results[0]->version);
  EXPECT_EQ(found->flags(), 7u);
}

TEST_F(MultiPutTest, ManyAreWrittenTogether) {
  make();
  reopen();
  std::vector<Pair> pairs;
  std::map<std::string, std::string> model;
  for (int i = 0; i < 200; ++i) {
    pairs.push_back({"key" + std::to_string(i), "value " + std::to_string(i * i)});
    model[pairs.back().key] = pairs.back().value;
  }
  for (const auto& result : put_all(session, pairs)) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::kDone);
  }
  expect_all(model);
  const UseCounts use = store->counts().use;
  // Four groups; one of them may have come to a segment's end.
  EXPECT_LE(use.io_for(IoFor::kChanges).writes, 5u);
  EXPECT_EQ(use.latency(CallKind::kPutMany).count, 4u);
  EXPECT_EQ(use.put_many_keys, 200u);
  store->verify();
  reopen();
  expect_all(model);
}

TEST_F(MultiPutTest, VersionsRiseAndTheLastOfAKeyStays) {
  make();
  std::vector<Pair> pairs;
  for (int i = 0; i < 40; ++i) pairs.push_back({"key" + std::to_string(i % 7), std::to_string(i)});
  const auto results = put_all(session, pairs);
  for (size_t i = 1; i < results.size(); ++i) ASSERT_GT(results[i]->version, results[i - 1]->version);
  for (int i = 33; i < 40; ++i) EXPECT_EQ(get("key" + std::to_string(i % 7)), std::to_string(i));
  store->verify();
  reopen();
  for (int i = 33; i < 40; ++i) EXPECT_EQ(get("key" + std::to_string(i % 7)), std::to_string(i));
}

TEST_F(MultiPutTest, EachIsForItself) {
  make();
  const std::string large(3 << 20, 'l');
  const auto results = put_all(session, {{"first", "1"},
                                         {"", "no key"},
                                         {std::string(kMaxKeyBytes + 1, 'k'), "too long"},
                                         {"large", large},
                                         {"empty", ""},
                                         {"last", "2"}});
  EXPECT_TRUE(results[0]);
  EXPECT_EQ(results[1].error().number, EINVAL);
  EXPECT_EQ(results[2].error().number, EINVAL);
  for (const size_t i : {3, 4, 5}) EXPECT_TRUE(results[i]);
  EXPECT_EQ(get("first"), "1");
  EXPECT_EQ(get("large"), large);
  EXPECT_EQ(get("empty"), "");
  EXPECT_EQ(get("last"), "2");
  EXPECT_EQ(put_all(session, {{"key", "v"}}, uint64_t{1} << 48)[0].error().number, EINVAL);
}

TEST_F(MultiPutTest, WhatIsReplacedIsReleased) {
  make();
  const std::string large(3 << 20, 'l');
  std::vector<Pair> pairs;
  for (int i = 0; i < 5; ++i) pairs.push_back({"key" + std::to_string(i), i % 2 == 0 ? large : "small"});
  put_all(session, pairs);
  for (Pair& pair : pairs) pair.value = "other";
  put_all(session, pairs);
  ASSERT_TRUE(store->compact());
  EXPECT_LT(store->counts().log.live_bytes, 100u << 10);
  for (const Pair& pair : pairs) EXPECT_EQ(get(pair.key), "other");
  store->verify();
}

TEST_F(MultiPutTest, GroupsOfLongRecords) {
  make();
  std::vector<Pair> pairs;
  for (int i = 0; i < 30; ++i) pairs.push_back({"key" + std::to_string(i), std::string(200'000, 'a')});
  for (const auto& result : put_all(session, pairs)) ASSERT_TRUE(result) << result.error().message;
  for (const Pair& pair : pairs) EXPECT_EQ(get(pair.key).size(), 200'000u);
}

TEST_F(MultiPutTest, OfAStoreThatIsReadOnly) {
  make();
  close();
  open({.read_only = true});
  for (const auto& result : put_all(session, {{"a", "1"}, {"b", "2"}}))
    EXPECT_EQ(result.error().number, EROFS);
}

TEST_F(MultiPutTest, ExpiryIsKept) {
  make();
  const uint64_t ends_ms = now_ms() + 30;
  put_all(session, {{"a", "1"}, {"b", "2"}}, ends_ms);
  while (now_ms() <= ends_ms) std::this_thread::yield();
  EXPECT_EQ(get("a"), "(none)");
  EXPECT_EQ(get("b"), "(none)");
}

// Puts of the same few keys, by threads and by tasks, some of which put one key at a time.
TEST_F(MultiPutTest, ManyAtTheSameTime) {
  make({.segment_bytes = 1 << 20});
  constexpr int kThreads = 3, kRounds = 300;
  const auto work = [](Session& own, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Pair> pairs;
      for (uint64_t i = 1 + random() % 30; i > 0; --i) {
        const std::string key = "key" + std::to_string(random() % 40);
        pairs.push_back({key, key + " of " + std::to_string(seed) + std::string(random() % 2000, '.')});
      }
      if (random() % 4 == 0) {
        EXPECT_TRUE(own.put(pairs[0].key, bytes_of(pairs[0].value)));
        continue;
      }
      for (const auto& result : put_all(own, pairs)) EXPECT_TRUE(result) << result.error().message;
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Session own;
      ASSERT_TRUE(own.open(*store));
      work(own, t);
      own.close();
    });
  task::Scheduler scheduler;
  ASSERT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
  auto tasks = [&] {
    Session own;
    ASSERT_TRUE(own.open(*store));
    auto one = [&] { work(own, 77); };
    auto other = [&] { work(own, 78); };
    task::Task& first = task::start("puts", one);
    task::Task& second = task::start("puts", other);
    task::join(first);
    task::join(second);
    own.close();
  };
  ASSERT_TRUE(scheduler.run(task::calls("main", tasks)));
  scheduler.close();
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 40; ++i) {
    const std::string key = "key" + std::to_string(i);
    EXPECT_TRUE(get(key).starts_with(key + " of ")) << get(key);
  }
  store->verify();
}

// What no longer fits is refused; what was acknowledged is there.
TEST_F(MultiPutTest, UntilTheStoreIsFull) {
  make({.segment_bytes = 1 << 20});
  std::map<std::string, std::string> model;
  bool is_full = false;
  for (int at = 0; !is_full; at += 50) {
    ASSERT_LT(at, 1'000'000);
    std::vector<Pair> pairs;
    for (int i = at; i < at + 50; ++i) pairs.push_back({"key" + std::to_string(i), std::string(3000, 'v')});
    const auto results = put_all(session, pairs);
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (results[i]) {
        model[pairs[i].key] = pairs[i].value;
        continue;
      }
      ASSERT_EQ(results[i].error().number, ENOSPC) << results[i].error().message;
      is_full = true;
    }
  }
  expect_all(model);
  store->verify();
}

class MultiPutFaultTest : public testing::Test, protected StoreInUse {
 protected:
  using Failing = storage::FailDevice::Failing;
  ~MultiPutFaultTest() override { device->close(); }
  void open(Durability durability) {
    device = new storage::FailDevice(*storage::make_memory_device(32 << 20));
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    StoreInUse::open(*device, {.durability = durability, .stream_count = 1});
  }
  storage::FailDevice* device = nullptr;
};

TEST_F(MultiPutFaultTest, WhatIsNotWrittenIsNotThere) {
  open(Durability::kNone);
  put_all(session, {{"a", "old"}});
  device->fail(Failing::kWrites, EIO);
  for (const auto& result : put_all(session, {{"a", "new"}, {"b", "new"}}))
    EXPECT_EQ(result.error().number, EIO);
  device->fail(Failing::kNothing, 0);
  EXPECT_EQ(text_of(session.get("a")->value()), "old");
  EXPECT_FALSE(session.get("b")->found());
  for (const auto& result : put_all(session, {{"a", "new"}, {"b", "new"}})) EXPECT_TRUE(result);
  EXPECT_EQ(text_of(session.get("a")->value()), "new");
  close();
}

TEST_F(MultiPutFaultTest, AFlushThatFailsIsToldToAll) {
  open(Durability::kSync);
  put_all(session, {{"a", "old"}});
  device->fail(Failing::kFlushes, EIO);
  for (const auto& result : put_all(session, {{"a", "new"}, {"b", "new"}}))
    EXPECT_EQ(result.error().number, EIO);
  device->fail(Failing::kNothing, 0);
  EXPECT_EQ(text_of(session.get("a")->value()), "old");
  EXPECT_FALSE(put_all(session, {{"c", "more"}})[0]);  // nothing is written any more
  session.close();
  EXPECT_FALSE(store->close());
}

// The records, of a grain each, are one write, which fails at a place in the middle.
TEST(MultiPutPlaceTest, APlaceThatIsNotWrittenToIsOnesTroubleAlone) {
  auto* const device = new storage::CutDevice(std::vector<std::byte>(32 << 20), 0);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  Store* const store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 1});
  Session session;
  ASSERT_TRUE(session.open(*store));
  ASSERT_TRUE(session.put("first", bytes_of("value")));
  const StoreImage image(device->medium(1, 100));
  constexpr size_t kBad = 5;
  device->fail_writes(image.newest("first")->offset + (1 + kBad) * 512, 512);
  std::vector<Pair> pairs;
  for (int i = 0; i < 20; ++i) pairs.push_back({"key" + std::to_string(i), "value"});
  const auto results = put_all(session, pairs);
  EXPECT_EQ(device->refused_writes(), 2u) << "with the others, and alone";
  for (size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(results[i].has_value(), i != kBad) << i;
    EXPECT_EQ(session.get(pairs[i].key)->found(), i != kBad) << i;
  }
  session.close();
  ASSERT_TRUE(store->close());
  device->close();
}

}  // namespace
}  // namespace kv
