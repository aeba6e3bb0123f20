// Several threads at once: no change is lost, each thread sees its own changes, and the table grows meanwhile.
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "batch/table.h"

namespace batch {
namespace {

constexpr uint32_t kThreads = 4;

// Parameters: the engine, and the size of a value. Records of 24 bytes cross the boundaries of cache lines.
class TableThreadsTest : public testing::TestWithParam<std::tuple<Engine, uint32_t>> {
 protected:
  static Engine engine() { return std::get<0>(GetParam()); }
  static uint32_t words() { return std::get<1>(GetParam()) / sizeof(uint64_t); }

  Options options(uint64_t records, uint64_t key_space = 0) const {
    return {.shape = {.key_bytes = 8, .value_bytes = std::get<1>(GetParam()), .bucket_bytes = 384},
            .records = records,
            .key_space = key_space,
            .engine = engine(),
            .cache_bytes = 64 << 10,
            .staging_bytes = 64 << 10};
  }

  template <class Work>
  void run(Work work) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { work(i); });
    for (std::thread& thread : threads) thread.join();
  }

  // Each value repeats its first word. `values` has one word for each key, and is extended here to as many words as the values have.
  static Job job(Action action, std::vector<uint64_t>& keys, std::vector<uint64_t>& values) {
    values.resize(keys.size());
    std::vector<uint64_t> all;
    for (const uint64_t value : values) all.insert(all.end(), words(), value);
    values = std::move(all);
    return {.code = {action},
            .count = keys.size(),
            .keys = reinterpret_cast<const std::byte*>(keys.data()),
            .given = reinterpret_cast<const std::byte*>(values.data()),
            .read = reinterpret_cast<std::byte*>(values.data())};
  }
  static uint64_t value_at(const std::vector<uint64_t>& values, size_t i) {
    for (uint32_t word = 1; word < words(); ++word)
      EXPECT_EQ(values[i * words() + word], values[i * words()]);
    return values[i * words()];
  }

  Table table;
};
std::string name_of_case(const testing::TestParamInfo<std::tuple<Engine, uint32_t>>& tested) {
  return name_of(std::get<0>(tested.param)) + std::string("_") + std::to_string(std::get<1>(tested.param));
}
INSTANTIATE_TEST_SUITE_P(All, TableThreadsTest,
                         testing::Combine(testing::ValuesIn(kEngines), testing::Values(8, 16)), name_of_case);

// All threads add to all keys: the sums are right, and so is the count of changes.
TEST_P(TableThreadsTest, NoChangeIsLost) {
  constexpr uint64_t kKeys = 512, kJobs = 400, kEach = 64;
  ASSERT_TRUE(table.open(options(kKeys, kKeys)));
  const uint8_t function = table.add_function({.function = [](void*, void* value, const void* given) {
    for (size_t at = 0; at < words() * sizeof(uint64_t); at += sizeof(uint64_t)) {
      uint64_t sum, by;
      memcpy(&sum, static_cast<char*>(value) + at, sizeof sum);
      memcpy(&by, static_cast<const char*>(given) + at, sizeof by);
      sum += by;
      memcpy(static_cast<char*>(value) + at, &sum, sizeof sum);
    }
  }});
  {
    Session session(table);
    std::vector<uint64_t> keys, values;
    for (uint64_t i = 0; i < kKeys; ++i) keys.push_back(i);
    values.assign(kKeys, 0);
    Job all = job(Action::kUpsert, keys, values);
    ASSERT_EQ(session.run(all), Session::Ran::kAll);
  }
  std::atomic<uint64_t> total{0};
  run([&](uint32_t thread) {
    Session session(table);
    std::mt19937_64 random(thread);
    uint64_t added = 0;
    for (uint64_t i = 0; i < kJobs; ++i) {
      std::vector<uint64_t> keys, values;
      for (uint64_t k = 0; k < kEach; ++k) {
        keys.push_back(random() % kKeys);
        values.push_back(random() % 100);
        added += values.back();
      }
      Job adds = job(Action::kChange, keys, values);
      adds.code.function = function;
      ASSERT_EQ(session.run(adds), Session::Ran::kAll);
    }
    total += added;
  });
  Session session(table);
  ASSERT_EQ(session.flush(), Session::Ran::kAll);
  uint64_t sum = 0;
  session.for_each([&](const std::byte*, const std::byte* value) {
    uint64_t one;
    memcpy(&one, value, sizeof one);
    sum += one;
    return true;
  });
  EXPECT_EQ(sum, total.load());
  EXPECT_EQ(table.record_count(), kKeys);
}

// Each thread has keys of its own, in the same buckets as those of others, in a table that grows: it reads what it wrote last.
TEST_P(TableThreadsTest, EachReadsWhatItWroteWhileTheTableGrows) {
  constexpr uint64_t kKeysEach = 20'000, kJobs = 1500;
  ASSERT_TRUE(table.open(options(100)));
  std::atomic<uint64_t> there{0};
  run([&](uint32_t thread) {
    Session session(table);
    std::mt19937_64 random(thread);
    std::vector<uint64_t> last(kKeysEach);  // the last values written; 0: the key does not exist
    for (uint64_t i = 0; i < kJobs; ++i) {
      std::vector<uint64_t> keys, values, numbers;
      const size_t count = 1 + random() % 64;
      const uint64_t first = random() % kKeysEach;
      for (size_t k = 0; k < count; ++k) {
        numbers.push_back((first + k) % kKeysEach);
        keys.push_back(numbers.back() * kThreads + thread);
        values.push_back(i << 8 | (k + 1));
      }
      const uint64_t what = random() % 4;
      if (what == 0) {
        Job read = job(Action::kRead, keys, values);
        std::vector<Outcome> outcomes(count);
        read.outcomes = outcomes.data();
        ASSERT_EQ(session.run(read), Session::Ran::kAll);
        for (size_t k = 0; k < count; ++k) {
          ASSERT_EQ(outcomes[k], last[numbers[k]] == 0 ? Outcome::kAbsent : Outcome::kDone);
          if (last[numbers[k]] != 0) ASSERT_EQ(value_at(values, k), last[numbers[k]]);
        }
        continue;
      }
      Job change = job(what == 1 ? Action::kRemove : Action::kUpsert, keys, values);
      ASSERT_EQ(session.run(change), Session::Ran::kAll);
      for (size_t k = 0; k < count; ++k) last[numbers[k]] = what == 1 ? 0 : value_at(values, k);
    }
    for (const uint64_t value : last) there += value != 0;
    ASSERT_EQ(session.flush(), Session::Ran::kAll);
  });
  table.verify();
  EXPECT_EQ(table.record_count(), there.load());
  EXPECT_GE(table.growth_count(), 5u);
}

// Two writers take turns: a call that begins after another's has returned counts as later, whatever each has staged. Others read meanwhile, which makes
// staged changes: nobody ever reads an older value after a newer one.
TEST_P(TableThreadsTest, WhoComesLaterChangesLater) {
  constexpr uint64_t kKeys = 1000, kRounds = 8000, kWriters = 2;
  ASSERT_TRUE(table.open(options(kKeys)));
  std::vector<uint64_t> last(kKeys);  // used by the thread whose turn it is
  std::atomic<uint64_t> turn{0};
  run([&](uint32_t thread) {
    Session session(table);
    std::mt19937_64 random(thread);
    std::vector<uint64_t> seen(kKeys);
    const auto random_keys = [&] {
      std::vector<uint64_t> keys;
      for (uint64_t k = 1 + random() % 20; k > 0; --k) keys.push_back(random() % kKeys);
      return keys;
    };
    while (thread >= kWriters && turn.load(std::memory_order_relaxed) < kRounds) {
      std::vector<uint64_t> keys = random_keys(), values;
      Job read = job(Action::kRead, keys, values);
      EXPECT_EQ(session.run(read), Session::Ran::kAll);
      for (size_t k = 0; k < keys.size(); ++k) {
        EXPECT_GE(value_at(values, k), seen[keys[k]]);
        seen[keys[k]] = value_at(values, k);
      }
      std::this_thread::yield();  // leaves the CPU to the writers
    }
    for (uint64_t round = thread; thread < kWriters && round < kRounds; round += kWriters) {
      std::vector<uint64_t> keys = random_keys(), values;
      for (size_t k = 0; k < keys.size(); ++k) values.push_back(round * 100 + k + 1);
      const bool reads = random() % 8 == 0;
      Job asked = job(reads ? Action::kRead : Action::kUpsert, keys, values);
      while (turn.load(std::memory_order_acquire) != round) std::this_thread::yield();
      std::vector<Outcome> outcomes(keys.size());
      if (reads) asked.outcomes = outcomes.data();
      EXPECT_EQ(session.run(asked), Session::Ran::kAll);
      for (size_t k = 0; k < keys.size(); ++k) {
        if (reads)
          EXPECT_EQ(outcomes[k] == Outcome::kAbsent ? 0 : value_at(values, k), last[keys[k]])
              << "round " << round;
        else
          last[keys[k]] = value_at(values, k);
      }
      turn.store(round + 1, std::memory_order_release);
    }
  });
  Session session(table);
  ASSERT_EQ(session.flush(), Session::Ran::kAll);
  uint64_t seen = 0;
  session.for_each([&](const std::byte* key, const std::byte* value) {
    EXPECT_EQ(load_key(value, 8).low, last[load_key(key, 8).low]);
    ++seen;
    return true;
  });
  EXPECT_EQ(seen, kKeys - static_cast<uint64_t>(std::ranges::count(last, uint64_t{0})));
  EXPECT_GT(seen, kKeys / 2);
  table.verify();
}

// The table changes to each engine in turn while threads work: no change is lost, and each thread reads what it wrote.
TEST_P(TableThreadsTest, EnginesChangeUnderLoad) {
  constexpr uint64_t kKeysEach = 5000;
  ASSERT_TRUE(table.open(options(kKeysEach)));
  std::atomic<bool> is_over{false};
  std::atomic<uint32_t> begun{0};
  run([&](uint32_t thread) {
    Session session(table);
    if (thread == 0) {
      while (begun < kThreads - 1) std::this_thread::yield();
      for (int round = 0; round < 100; ++round)
        ASSERT_TRUE(table.use(session, kEngines[static_cast<size_t>(round) % std::size(kEngines)]));
      ASSERT_TRUE(table.use(session, engine()));
      is_over = true;
      return;
    }
    std::mt19937_64 random(thread);
    std::vector<uint64_t> last(kKeysEach);
    ++begun;
    for (uint64_t i = 1; i == 1 || !is_over.load(std::memory_order_relaxed); ++i) {
      std::vector<uint64_t> keys, values, numbers;
      const uint64_t first = random() % kKeysEach;
      for (size_t k = 0; k < 40; ++k) {
        numbers.push_back((first + k) % kKeysEach);
        keys.push_back(numbers.back() * kThreads + thread);
        values.push_back(i);
      }
      Job change = job(Action::kUpsert, keys, values);
      ASSERT_EQ(session.run(change), Session::Ran::kAll);
      for (const uint64_t number : numbers) last[number] = i;
      if (i % 8 != 0) continue;
      Job read = job(Action::kRead, keys, values);
      ASSERT_EQ(session.run(read), Session::Ran::kAll);
      for (size_t k = 0; k < keys.size(); ++k) ASSERT_EQ(value_at(values, k), last[numbers[k]]);
    }
    std::vector<uint64_t> keys, values;
    for (uint64_t number = 0; number < kKeysEach; ++number) keys.push_back(number * kThreads + thread);
    Job read = job(Action::kRead, keys, values);
    ASSERT_EQ(session.run(read), Session::Ran::kAll);
    for (size_t k = 0; k < kKeysEach; ++k) EXPECT_EQ(value_at(values, k), last[k]);
  });
  EXPECT_EQ(table.engine(), engine());
  Session session(table);
  ASSERT_EQ(session.flush(), Session::Ran::kAll);
  table.verify();
}

// One thread goes through all records while others change them: it sees each record that exists all the time exactly once.
TEST_P(TableThreadsTest, WhatIsThereAllTheTimeIsSeenOnce) {
  constexpr uint64_t kKeys = 4096;
  ASSERT_TRUE(table.open(options(kKeys)));
  std::vector<uint64_t> stay, values;
  for (uint64_t i = 0; i < kKeys; i += 2) stay.push_back(i);
  {
    Session session(table);
    Job all = job(Action::kUpsert, stay, values);
    ASSERT_EQ(session.run(all), Session::Ran::kAll);
    ASSERT_EQ(session.flush(), Session::Ran::kAll);
  }
  std::atomic<bool> is_over{false};
  std::atomic<uint32_t> begun{0};
  run([&](uint32_t thread) {
    Session session(table);
    if (thread == 0) {
      while (begun < kThreads - 1) std::this_thread::yield();
      for (int round = 0; round < 200; ++round) {
        std::vector<uint32_t> seen(kKeys);
        session.for_each(
            [&](const std::byte* key, const std::byte*) { return ++seen[load_key(key, 8).low], true; });
        for (const uint64_t key : stay) EXPECT_EQ(seen[key], 1u) << key;
      }
      is_over = true;
      return;
    }
    std::mt19937_64 random(thread);
    ++begun;
    while (!is_over.load(std::memory_order_relaxed)) {
      std::vector<uint64_t> keys, given;
      for (int k = 0; k < 32; ++k) keys.push_back(random() % kKeys | 1);
      Job change = job(random() % 2 == 0 ? Action::kUpsert : Action::kRemove, keys, given);
      ASSERT_EQ(session.run(change), Session::Ran::kAll);
    }
    ASSERT_EQ(session.flush(), Session::Ran::kAll);
  });
  table.verify();
}

}  // namespace
}  // namespace batch
