// The batched update table from C++ and from many threads: types, functions, exceptions.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "spillway/batch.hpp"

namespace {

using spillway::BatchError;
using spillway::BatchOptions;

struct Pair {
  uint64_t high, low;
};

class BatchTableTest : public testing::TestWithParam<const char*> {
 protected:
  static BatchOptions options(uint64_t records) {
    BatchOptions all;
    all.records = records;
    all.engine = GetParam();
    all.staging_bytes = 1 << 20;
    return all;
  }
  static bool may_stage() {
    const std::string name = GetParam();
    return name == "auto" || name == "cache_buckets" || name == "decoupled" || name == "partitioned";
  }
};
INSTANTIATE_TEST_SUITE_P(All, BatchTableTest,
                         testing::Values("auto", "linear", "direct", "prefetch", "tagged", "cache_buckets",
                                         "decoupled", "partitioned"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(BatchTableTest, CallsOfKeysAndOfContainers) {
  spillway::BatchTable<uint32_t, Pair> table(options(100));
  const auto add = table.add_function([](Pair& value, const Pair& given) {
    value.high += given.high;
    value.low += given.low;
  });
  auto session = table.session();
  EXPECT_FALSE(session.read(7));
  session.upsert(7, {1, 2});
  session.update(7, add, {10, 20});
  session.merge(7, add, {100, 200});
  session.merge(8, add, {5, 6});
  ASSERT_TRUE(session.read(7));
  EXPECT_EQ(session.read(7)->high, 111u);
  EXPECT_EQ(session.read(7)->low, 222u);
  EXPECT_EQ(session.read(8)->low, 6u);
  EXPECT_TRUE(session.modify(8, [](Pair& value) { value.low *= 7; }));
  EXPECT_FALSE(session.modify(9, [](Pair& value) { value.low *= 7; }));
  EXPECT_EQ(session.read(8)->low, 42u);
  session.update(8, {3, 4});
  EXPECT_EQ(session.read(8)->low, 4u);
  session.remove(7);
  EXPECT_FALSE(session.read(7));

  const std::vector<uint32_t> keys = {20, 21, 22};
  const std::vector<Pair> values = {{1, 1}, {2, 2}, {3, 3}};
  const size_t inserted = session.upsert(keys, values).inserted;
  if (!may_stage()) EXPECT_EQ(inserted, 3u);
  session.update(keys, values);
  session.update(keys, add, values);
  session.merge(keys, add, values);
  std::vector<Pair> read(3);
  std::vector<bool> found;
  const uint32_t asked[] = {20, 99, 22};
  EXPECT_EQ(session.read(asked, read.data(), 3, &found).absent, 1u);
  EXPECT_EQ(found, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(read[0].low, 3u);
  EXPECT_EQ(read[2].low, 9u);
  session.flush();
  std::map<uint32_t, uint64_t> seen;
  EXPECT_TRUE(session.for_each([&](uint32_t key, const Pair& value) { return seen[key] = value.low, true; }));
  EXPECT_EQ(seen, (std::map<uint32_t, uint64_t>{{8, 4}, {20, 3}, {21, 6}, {22, 9}}));
  EXPECT_FALSE(session.for_each([](uint32_t, const Pair&) { return false; }));
  EXPECT_THROW(session.upsert(keys, std::vector<Pair>(2)), BatchError);
}

// Threads add to the counts of the same keys, each in calls of its own: no addition is lost.
TEST_P(BatchTableTest, ThreadsCountTheSameKeys) {
  constexpr uint64_t kKeys = 5000, kCalls = 300, kGroup = 200, kThreads = 4;
  spillway::BatchTable<uint64_t, uint64_t> table(options(100));  // it grows
  const auto add = table.add_function([](uint64_t& value, uint64_t given) { value += given; });
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      auto session = table.session();
      std::mt19937_64 random(t);
      std::vector<uint64_t> keys(kGroup), ones(kGroup, 1);
      for (uint64_t call = 0; call < kCalls; ++call) {
        for (uint64_t& key : keys) key = random() % kKeys;
        session.merge(keys, add, ones);
      }
    });
  for (std::thread& thread : threads) thread.join();
  auto session = table.session();
  session.flush();
  uint64_t sum = 0;
  session.for_each([&](uint64_t, uint64_t value) { return sum += value, true; });
  EXPECT_EQ(sum, kThreads * kCalls * kGroup);
}

// A function that throws changes nothing; the exception comes out of a call, and all other changes are made.
TEST_P(BatchTableTest, WhatFunctionsThrowComesOutOfACall) {
  spillway::BatchTable<uint64_t, uint64_t> table(options(1000));
  const auto add_less_than_ten = table.add_function([](uint64_t& value, uint64_t given) {
    value += given;
    if (value >= 10) throw std::out_of_range("ten or more");
  });
  auto session = table.session();
  const std::vector<uint64_t> keys = {1, 2, 3, 4}, values = {1, 2, 3, 4}, sevens(4, 7);
  session.upsert(keys, values);
  EXPECT_THROW(
      {
        session.update(keys, add_less_than_ten, sevens);
        session.flush();
      },
      std::out_of_range);
  session.flush();  // throws no second time
  EXPECT_EQ(session.read(1), 8u);
  EXPECT_EQ(session.read(2), 9u);
  EXPECT_EQ(session.read(3), 3u);
  EXPECT_EQ(session.read(4), 4u);
  EXPECT_THROW(session.modify(1,
                              [](uint64_t& value) {
                                value = 0;
                                throw std::runtime_error("no");
                              }),
               std::runtime_error);
  EXPECT_EQ(session.read(1), 8u);
  EXPECT_THROW(session.for_each([](uint64_t, uint64_t) -> bool { throw std::logic_error("no"); }),
               std::logic_error);
  session.upsert(5, 5);
  EXPECT_EQ(session.read(5), 5u);
}

TEST(BatchErrorsTest, HaveTheirLineAndStatus) {
  BatchOptions options;
  options.records = 10;
  options.engine = "fast";
  try {
    spillway::BatchTable<uint64_t, uint64_t> table(options);
    FAIL();
  } catch (const BatchError& error) {
    EXPECT_EQ(error.status(), SPILLWAY_BATCH_INVALID);
    EXPECT_NE(std::string(error.what()).find("there is no engine fast"), std::string::npos);
  }
  options.engine = "direct";
  options.key_space = 10;
  spillway::BatchTable<uint64_t, uint64_t> table(options);
  auto session = table.session();
  EXPECT_THROW(session.upsert(10, 1), BatchError);
  EXPECT_THROW(table.add_function([](uint64_t&, uint64_t) {}), BatchError);
}

}  // namespace
