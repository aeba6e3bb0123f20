// Staged changes: when they are made, what happens to those without room, and what budgets are too small.
#include "batch/staging.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "batch/test_tables.h"

namespace batch {
namespace {

constexpr Engine kStagingEngines[] = {Engine::kCacheBuckets, Engine::kDecoupled, Engine::kPartitioned};

size_t seen_by(Session& session) {
  size_t count = 0;
  session.for_each([&](const std::byte*, const std::byte*) { return ++count, true; });
  return count;
}

TEST(StagingTest, WhatIsStagedIsMadeAfterSoManyChanges) {
  for (const Engine engine : kStagingEngines) {
    Options options = numbers(1000, engine);
    options.stale_changes_max = 100;
    Table table;
    ASSERT_TRUE(table.open(options));
    Session session(table);
    Keys keys(table.options().shape);
    for (uint64_t i = 0; i < 60; ++i) keys.add(bytes_of(i * 16, 8));
    Job job = keys.job(Action::kUpsert);
    job.outcomes = nullptr;
    ASSERT_EQ(session.run(job), Session::Ran::kAll);
    EXPECT_EQ(seen_by(session), 0u) << name_of(engine);
    ASSERT_EQ(session.run(job), Session::Ran::kAll);
    EXPECT_EQ(seen_by(session), 60u) << name_of(engine);
  }
}

TEST(StagingTest, MoreSessionsThanMayStageAreTold) {
  Options options = numbers(1000, Engine::kPartitioned);
  options.staging_bytes = 64 << 10;
  Table table;
  ASSERT_TRUE(table.open(options));
  Keys keys(table.options().shape);
  keys.add(bytes_of(7, 8), bytes_of(9, 8));
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 257; ++i) {
    sessions.push_back(std::make_unique<Session>(table));
    Job job = keys.job(Action::kUpsert);
    job.outcomes = nullptr;
    ASSERT_EQ(sessions.back()->run(job), i < 256 ? Session::Ran::kAll : Session::Ran::kNoMemory) << i;
  }
  // A closed session leaves its area to others.
  sessions.erase(sessions.begin());
  Job job = keys.job(Action::kUpsert);
  job.outcomes = nullptr;
  EXPECT_EQ(sessions.back()->run(job), Session::Ran::kAll);
  EXPECT_EQ(sessions.back()->flush(), Session::Ran::kAll);
  EXPECT_EQ(table.record_count(), 1u);
}

TEST(StagingTest, LessThanStagingTakesIsRefused) {
  const auto refuses = [](Options options, const char* text) {
    Table table;
    auto opened = table.open(options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().number, EINVAL);
    EXPECT_STREQ(opened.error().message, text);
    // The same for a table that already has another engine: it keeps that one.
    options.engine = Engine::kDirect;
    const Engine engine = options.cache_bytes < 1024 ? Engine::kCacheBuckets : Engine::kPartitioned;
    ASSERT_TRUE(table.open(options));
    Session session(table);
    auto used = table.use(session, engine);
    ASSERT_FALSE(used);
    EXPECT_STREQ(used.error().message, text);
    EXPECT_EQ(table.engine(), Engine::kDirect);
  };
  Options options = numbers(1000, Engine::kCacheBuckets);
  options.cache_bytes = 1000;
  refuses(options, "cache-buckets take 1096 bytes each, and there are only 1000");
  options = numbers(1000, Engine::kPartitioned);
  options.staging_bytes = 65'535;
  refuses(options, "what a session stages takes 65536 bytes at least, not 65535");
}

// Makes changes of the numbers [begin, end), without asking for outcomes.
Session::Ran stage(Session& session, const Table& table, Action action, uint64_t begin, uint64_t end) {
  Keys keys(table.options().shape);
  for (uint64_t i = begin; i < end; ++i) keys.add(bytes_of(i, 8), bytes_of(i + 1, 8));
  Job job = keys.job(action);
  job.outcomes = nullptr;
  const Session::Ran ran = session.run(job);
  if (ran == Session::Ran::kAll) EXPECT_EQ(job.done_count, end - begin);
  return ran;
}

// Changes of records that do not exist are counted when they are made.
TEST(StagingTest, ACacheBucketIsEmptiedWhenItIsFull) {
  for (const uint32_t bucket_bytes : {64, 128, 1024}) {
    Options options = numbers(1 << 20, Engine::kCacheBuckets);
    options.cache_bucket_bytes = bucket_bytes;
    Table table;
    ASSERT_TRUE(table.open(options));
    Session session(table);
    const uint64_t most = bucket_bytes / options.shape.record_bytes();
    for (uint64_t i = 0; i < most; ++i) {
      EXPECT_EQ(table.missed_count(), 0u) << bucket_bytes;
      EXPECT_EQ(stage(session, table, Action::kUpdate, 0, 1), Session::Ran::kAll);
    }
    EXPECT_EQ(table.missed_count(), most) << bucket_bytes;
  }
}

// A table that may not grow, for numbers that are not spread: neighbouring numbers share room for 128 records.
Options crowded(Engine engine) {
  Options options = numbers(uint64_t{1} << 40, engine);
  options.records = 1'000'000;
  options.grows = false;
  return options;
}

// A table that may not grow gets more changes than it has room for: those without room are dropped and counted, and all others are made.
TEST(StagingTest, WhatHasNoRoomIsDroppedAndTold) {
  for (const Engine engine : kStagingEngines) {
    Table table;
    ASSERT_TRUE(table.open(crowded(engine)));
    Session session(table);
    constexpr uint64_t kRoom = 16 * 8;  // in a home, and in the buckets after it
    bool is_told = false;
    for (uint64_t i = 0; i < 1000; i += 100)
      is_told |= stage(session, table, Action::kUpsert, i, i + 100) == Session::Ran::kFull;
    is_told |= session.flush() == Session::Ran::kFull;
    EXPECT_TRUE(is_told) << name_of(engine);
    EXPECT_EQ(table.record_count(), kRoom) << name_of(engine);
    EXPECT_EQ(table.dropped_count(), 1000 - kRoom) << name_of(engine);
    // The table goes on as before.
    EXPECT_EQ(session.flush(), Session::Ran::kAll);
    EXPECT_EQ(stage(session, table, Action::kRemove, 0, kRoom), Session::Ran::kAll);
    EXPECT_EQ(stage(session, table, Action::kUpsert, 0, 50), Session::Ran::kAll);
    EXPECT_EQ(session.flush(), Session::Ran::kAll);
    EXPECT_EQ(table.record_count(), 50u) << name_of(engine);
    table.verify();
  }
}

// Most of what a growing table will have is staged: one part of the table is full before others have anything.
TEST(StagingTest, ATableGrowsForWhatIsStaged) {
  for (const Engine engine : kStagingEngines) {
    constexpr uint64_t kKeys = 700'000;
    Table table;
    ASSERT_TRUE(table.open({.shape = {.key_bytes = 8, .value_bytes = 8},
                            .records = 300'000,
                            .engine = engine,
                            .cache_bytes = 16 << 20,
                            .staging_bytes = 16 << 20}));
    Session session(table);
    for (uint64_t i = 0; i < kKeys; i += 1000)
      ASSERT_EQ(stage(session, table, Action::kUpsert, i, i + 1000), Session::Ran::kAll);
    EXPECT_EQ(session.flush(), Session::Ran::kAll) << name_of(engine);
    EXPECT_EQ(table.dropped_count(), 0u) << name_of(engine);
    EXPECT_EQ(table.record_count(), kKeys) << name_of(engine);
    EXPECT_GT(table.growth_count(), 0u) << name_of(engine);
    table.verify();
  }
}

// One place in a table that grows stays full; all other changes find room.
TEST(StagingTest, OnlyWhatHasNoRoomIsDropped) {
  for (const Engine engine : kStagingEngines) {
    Options options = numbers(uint64_t{1} << 40, engine);
    options.records = 2000;
    Table table;
    ASSERT_TRUE(table.open(options));
    Session session(table);
    constexpr uint64_t kApart = (uint64_t{1} << 40) / 4000;
    for (uint64_t i = 0; i < 4000; i += 100) {
      Keys keys(table.options().shape);
      for (uint64_t k = i; k < i + 100; ++k) {
        keys.add(bytes_of(k * kApart, 8));
        if (k % 20 == 0) keys.add(bytes_of(kApart * 7 + 1 + k, 8));  // neighbours, which no growth separates
      }
      Job job = keys.job(Action::kUpsert);
      job.outcomes = nullptr;
      session.run(job);
    }
    session.flush();
    EXPECT_GT(table.dropped_count(), 0u) << name_of(engine);
    EXPECT_EQ(table.record_count() + table.dropped_count(), 4200u) << name_of(engine);
    EXPECT_GE(table.record_count(), 4000u) << name_of(engine);
    table.verify();
  }
}

// A reader gets its answer even if a staged change that it has to make first has no room.
TEST(StagingTest, WhoReadsGoesOnWhereSomethingHasNoRoom) {
  for (const Engine engine : kStagingEngines) {
    Table table;
    ASSERT_TRUE(table.open(crowded(engine)));
    Session session(table);
    for (uint64_t i = 0; i < 140; i += 10) stage(session, table, Action::kUpsert, i, i + 10);
    Keys keys(table.options().shape);
    keys.add(bytes_of(3, 8));
    keys.add(bytes_of(139, 8));
    Job job = keys.job(Action::kRead);
    session.run(job);
    EXPECT_EQ(job.done_count, 2u);
    EXPECT_EQ(keys.outcome(0), Outcome::kDone) << name_of(engine);
    EXPECT_EQ(keys.read(0), bytes_of(4, 8));
    EXPECT_EQ(keys.outcome(1), Outcome::kAbsent) << name_of(engine);
    EXPECT_EQ(table.dropped_count(), 12u) << name_of(engine);
  }
}

TEST(StagingTest, WhatIsStagedIsMadeAfterAWhile) {
  for (const Engine engine : kStagingEngines) {
    Options options = numbers(1000, engine);
    options.stale_ms_max = 50;
    Table table;
    ASSERT_TRUE(table.open(options));
    Session session(table);
    ASSERT_EQ(stage(session, table, Action::kUpsert, 0, 3), Session::Ran::kAll);
    // The thread opens a session of its own, maybe later than this.
    for (int waits = 0; seen_by(session) < 3 && waits < 6000; ++waits)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(seen_by(session), 3u) << name_of(engine);
  }
}

// A function that a job brings along is called at once, after the staged changes of the key are made.
TEST(StagingTest, AFunctionOfTheJobsOwnIsNotStaged) {
  for (const Engine engine : kEngines) {
    Table table;
    ASSERT_TRUE(table.open(numbers(100, engine)));
    Session session(table);
    ASSERT_EQ(stage(session, table, Action::kUpsert, 7, 8), Session::Ran::kAll);
    size_t calls = 0;
    const Change twice = {.function =
                              [](void* context, void* value, const void*) {
                                uint64_t number;
                                memcpy(&number, value, sizeof number);
                                number *= 2;
                                memcpy(value, &number, sizeof number);
                                ++*static_cast<size_t*>(context);
                              },
                          .context = &calls};
    Keys keys(table.options().shape);
    keys.add(bytes_of(7, 8));
    keys.add(bytes_of(8, 8));
    Job job = keys.job(Action::kChange);
    job.outcomes = nullptr;
    job.own_function = &twice;
    ASSERT_EQ(session.run(job), Session::Ran::kAll);
    EXPECT_EQ(calls, 1u) << name_of(engine);
    EXPECT_EQ(job.absent_count, 1u);
    Keys asked(table.options().shape);
    asked.add(bytes_of(7, 8));
    Job read = asked.job(Action::kRead);
    ASSERT_EQ(session.run(read), Session::Ran::kAll);
    EXPECT_EQ(asked.read(0), bytes_of(16, 8)) << name_of(engine);
  }
}

TEST(StagingTest, FlushersShareTheRegions) {
  for (const uint32_t flushers : {1u, 2u, 3u, 64u}) {
    Options options = numbers(100'000, Engine::kDecoupled);
    options.flushers = flushers;
    options.cache_bytes = 32 << 10;
    Table table;
    ASSERT_TRUE(table.open(options));
    Session session(table);
    for (uint64_t i = 0; i < 100'000; i += 500)
      ASSERT_EQ(stage(session, table, Action::kUpsert, i, i + 500), Session::Ran::kAll);
    ASSERT_EQ(session.flush(), Session::Ran::kAll);
    EXPECT_EQ(seen_by(session), 100'000u);
    table.verify();
  }
}

}  // namespace
}  // namespace batch
