// Stored tables compared with a model: jobs of all kinds, growth, starts, threads.
#include <atomic>
#include <thread>

#include "batch/spread.h"
#include "batch/stored/test_stored_tables.h"

namespace batch {
namespace {

struct Kind {
  uint32_t key_bytes;
  bool is_numbers;
  bool has_log;
  uint64_t keys;
};

class StoredModelTest : public testing::TestWithParam<Kind> {};

TEST_P(StoredModelTest, DoesWhatTheModelDoes) {
  const Kind kind = GetParam();
  StoredOptions options = small_options(kind.key_bytes);
  if (kind.is_numbers) options.key_space = kind.keys;
  Tables tables(options, kind.has_log);
  ASSERT_EQ(tables.open(), "");
  std::mt19937_64 random(kind.keys + kind.key_bytes);
  Model model;
  uint64_t regions_made = 0, checkpoints = 0;
  const auto count = [&] {
    const StoredStatistics statistics = tables.table->statistics();
    regions_made += statistics.regions_made;
    checkpoints += statistics.checkpoints;
  };
  const auto key = [&](std::mt19937_64& from) { return number_key(from() % kind.keys, kind.key_bytes); };
  for (int i = 0; i < 1500; ++i) {
    Batch batch = random_batch(random, 200, key);
    ASSERT_EQ(run(*tables.session, batch), "") << i;
    Batch expected = batch;
    make_in(model, expected);
    if (batch.code.action == Action::kRead) ASSERT_EQ(batch.read, expected.read) << i;
    if (batch.wants_outcomes) ASSERT_EQ(batch.outcomes, expected.outcomes) << i;
    if (i % 100 == 50) {
      auto flushed = tables.session->flush();
      ASSERT_TRUE(flushed) << flushed.error().message;
    }
    if (i % 100 == 70) {
      auto synced = tables.session->sync();
      ASSERT_TRUE(synced) << synced.error().message;
    }
    if (i % 300 == 299) {
      ASSERT_EQ(content_of(*tables.session, kind.key_bytes), model);
      count();
      ASSERT_EQ(tables.close(), "");
      ASSERT_EQ(tables.open(), "");
    }
  }
  ASSERT_EQ(content_of(*tables.session, kind.key_bytes), model);
  ASSERT_TRUE(tables.session->flush());
  const StoredStatistics statistics = tables.table->statistics();
  EXPECT_EQ(statistics.records, model.size());
  EXPECT_EQ(statistics.staged, 0u);
  // The table became larger than the memory for waiting changes, and than the regions with which it was made.
  count();
  EXPECT_GT(regions_made, 100u);
  EXPECT_GT(checkpoints, 10u);
  if (kind.keys > 5000) EXPECT_GT(statistics.regions, 8u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, StoredModelTest,
                         testing::Values(Kind{8, false, true, 12000}, Kind{8, false, false, 12000},
                                         Kind{4, false, true, 3000}, Kind{16, false, false, 8000},
                                         Kind{5, false, true, 8000}, Kind{8, true, true, 12000},
                                         Kind{4, true, false, 8000}));

TEST(StoredTest, RecordsOfAllSizes) {
  for (const auto& [key_bytes, value_bytes] :
       {std::pair(4u, 4u), std::pair(8u, 56u), std::pair(16u, 48u), std::pair(7u, 1u)}) {
    StoredOptions options = small_options(key_bytes);
    options.shape.value_bytes = value_bytes;
    Tables tables(options);
    tables.table = std::make_unique<StoredTable>();
    ASSERT_TRUE(tables.table->open(tables.store_, tables.options_));
    tables.session = std::make_unique<StoredSession>();
    ASSERT_TRUE(tables.session->open(*tables.table));
    std::string keys, values;
    constexpr size_t kCount = 3000;
    for (size_t i = 0; i < kCount; ++i) {
      keys += number_key(i, key_bytes);
      values += std::string(value_bytes, static_cast<char>('a' + i % 26));
    }
    Job upserts{.code = {.action = Action::kUpsert},
                .count = kCount,
                .keys = reinterpret_cast<const std::byte*>(keys.data()),
                .given = reinterpret_cast<const std::byte*>(values.data())};
    ASSERT_TRUE(tables.session->run(upserts));
    ASSERT_TRUE(tables.session->flush());
    std::string read(values.size(), 0);
    Job reads{.code = {.action = Action::kRead},
              .count = kCount,
              .keys = upserts.keys,
              .read = reinterpret_cast<std::byte*>(read.data())};
    ASSERT_TRUE(tables.session->run(reads));
    EXPECT_EQ(read, values);
    EXPECT_EQ(reads.absent_count, 0u);
  }
}

TEST(StoredTest, OwnFunctionsSeeWhatIsStagedAndWhatIsNot) {
  Tables tables(small_options());
  ASSERT_EQ(tables.open(), "");
  Batch first = {.code = {.action = Action::kUpsert}, .keys = {number_key(1, 8)}, .given = {10}};
  ASSERT_EQ(run(*tables.session, first), "");
  ASSERT_TRUE(tables.session->flush());
  Batch second = {.code = {.action = Action::kMerge}, .keys = {number_key(1, 8)}, .given = {5}};
  ASSERT_EQ(run(*tables.session, second), "");
  const Change twice = {.function = [](void*, void* value, const void*) {
    const uint64_t number = 2 * number_of(static_cast<std::byte*>(value));
    memcpy(value, &number, 8);
  }};
  const std::string keys = number_key(1, 8) + number_key(2, 8);
  const uint64_t given[2] = {0, 3};
  Job job{.code = {.action = Action::kMerge},
          .count = 2,
          .keys = reinterpret_cast<const std::byte*>(keys.data()),
          .given = reinterpret_cast<const std::byte*>(given),
          .own_function = &twice};
  ASSERT_TRUE(tables.session->run(job));
  EXPECT_EQ(job.inserted_count, 1u);
  EXPECT_EQ(content_of(*tables.session, 8), (Model{{number_key(1, 8), 30}, {number_key(2, 8), 3}}));
}

// Each key has a sum, to which all threads add, and a number for each thread, which only grows.
TEST(StoredTest, ThreadsLoseNothingAndReadWhatTheyWrote) {
  constexpr uint64_t kThreads = 4, kKeys = 3000, kRounds = 300, kGroup = 50;
  StoredOptions options = small_options();
  options.makers = 2;
  Tables tables(options);
  ASSERT_EQ(tables.open(), "");
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      StoredSession session;
      ASSERT_TRUE(session.open(*tables.table));
      std::mt19937_64 random(t);
      std::map<uint64_t, uint64_t> own;
      for (uint64_t round = 0; round < kRounds; ++round) {
        Batch sums = {.code = {.action = Action::kMerge}, .wants_outcomes = round % 8 == 0};
        Batch mine = {.code = {.action = Action::kUpsert}};
        for (uint64_t i = 0; i < kGroup; ++i) {
          sums.keys.push_back(number_key(random() % kKeys, 8));
          sums.given.push_back(1);
          const uint64_t key = (t + 1) << 32 | random() % kKeys;
          own[key] = round * kGroup + i;
          mine.keys.push_back(number_key(key, 8));
          mine.given.push_back(own[key]);
        }
        ASSERT_EQ(run(session, sums), "");
        ASSERT_EQ(run(session, mine), "");
        if (round % 16 == 5) ASSERT_TRUE(session.sync());
        if (round % 32 == 7) ASSERT_TRUE(session.flush());
        Batch reads = {.code = {.action = Action::kRead}};
        std::vector<uint64_t> expected;
        for (const auto& [key, value] : own)
          if (random() % 16 == 0) {
            reads.keys.push_back(number_key(key, 8));
            expected.push_back(value);
          }
        ASSERT_EQ(run(session, reads), "");
        ASSERT_EQ(reads.read, expected);
      }
    });
  for (auto& thread : threads) thread.join();
  uint64_t sum = 0;
  for (const auto& [key, value] : content_of(*tables.session, 8))
    if (number_of(reinterpret_cast<const std::byte*>(key.data())) >> 32 == 0) sum += value;
  EXPECT_EQ(sum, kThreads * kRounds * kGroup);
  EXPECT_GT(tables.table->statistics().regions_made, 100u);
  EXPECT_EQ(tables.close(), "");
}

// The largest number of makers in the smallest possible store.
TEST(StoredTest, ManyMakersInASmallStore) {
  StoredOptions options = small_options();
  options.makers = 16;
  Tables tables(options, true, StoredTable::store_bytes_for(options.shape, options.records, 2));
  ASSERT_EQ(tables.open(), "");
  std::mt19937_64 random(3);
  Model model;
  const auto key = [](std::mt19937_64& from) { return number_key(from() % 1000, 8); };
  for (int i = 0; i < 600; ++i) {
    Batch batch = random_batch(random, 200, key);
    ASSERT_EQ(run(*tables.session, batch), "") << i;
    make_in(model, batch);
    if (i % 50 == 0) {
      auto flushed = tables.session->flush();
      ASSERT_TRUE(flushed) << flushed.error().message;
    }
  }
  EXPECT_EQ(content_of(*tables.session, 8), model);
}

// One thread changes a key all the time; flush and sync of another thread end nevertheless.
TEST(StoredTest, AFlushEndsWhileOthersChangeWhatItMakes) {
  Tables tables(small_options(), false);
  ASSERT_EQ(tables.open(), "");
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> changes{0};
  std::thread writer([&] {
    StoredSession session;
    ASSERT_TRUE(session.open(*tables.table));
    while (!ends) {
      Batch batch = {.code = {.action = Action::kMerge}, .keys = {number_key(1, 8)}, .given = {1}};
      ASSERT_EQ(run(session, batch), "");
      ++changes;
    }
  });
  while (changes == 0) std::this_thread::yield();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(tables.session->flush());
    ASSERT_TRUE(tables.session->sync());
  }
  ends = true;
  writer.join();
  EXPECT_EQ(content_of(*tables.session, 8), (Model{{number_key(1, 8), changes.load()}}));
}

// Numbers that are not spread over their key space: that some have no room is reported once, and everything else goes on.
TEST(StoredTest, KeysThatAreTooNearEachOtherAreDropped) {
  StoredOptions options = small_options();
  options.key_space = Spread::kMaxKeySpace;
  Tables tables(options);
  ASSERT_EQ(tables.open(), "");
  Model model;
  std::mt19937_64 random(4);
  const auto add = [&](uint64_t count, auto key) {
    Batch batch = {.code = {.action = Action::kUpsert}};
    for (uint64_t i = 0; i < count; ++i) {
      batch.keys.push_back(number_key(key(i), 8));
      batch.given.push_back(i);
    }
    ASSERT_EQ(run(*tables.session, batch), "");
    make_in(model, batch);
  };
  add(1000, [&](uint64_t) { return random() % Spread::kMaxKeySpace; });
  add(300, [](uint64_t i) { return i; });
  ASSERT_TRUE(tables.session->flush());
  add(2000, [](uint64_t i) { return 1000 + i; });
  auto flushed = tables.session->flush();
  ASSERT_FALSE(flushed);
  EXPECT_STREQ(flushed.error().message,
               "table: some records have no room: too many keys are near each other");
  EXPECT_TRUE(tables.session->flush());
  EXPECT_GT(tables.table->statistics().dropped, 0u);
  add(1000, [&](uint64_t) { return random() % Spread::kMaxKeySpace; });
  ASSERT_TRUE(tables.session->flush());
  // Dropped changes make neither close() fail nor the replay of the log.
  add(2000, [](uint64_t i) { return 1000 + i; });
  ASSERT_EQ(tables.close(), "");
  ASSERT_EQ(tables.open(), "");
  add(2000, [](uint64_t i) { return 1000 + i; });
  ASSERT_TRUE(tables.session->sync());
  tables.device.fail(storage::FailDevice::Failing::kWrites, EIO);
  EXPECT_NE(tables.close(), "");
  tables.device.fail(storage::FailDevice::Failing::kNothing, 0);
  ASSERT_EQ(tables.open(), "");
  const Model found = content_of(*tables.session, 8);
  for (const auto& [key, value] : found) EXPECT_EQ(model.at(key), value);
  // The keys that were there before are not missing, nor are those that are spread.
  uint64_t missing = 0;
  for (const auto& [key, value] : model)
    if (!found.contains(key)) {
      ++missing;
      const uint64_t number = number_of(reinterpret_cast<const std::byte*>(key.data()));
      EXPECT_TRUE(number >= 1000 && number < 3000) << number;
    }
  EXPECT_GT(missing, 0u);
  EXPECT_LE(missing, 2000u);
}

// If a region's keys lie in small clusters, it has to be cut again and again to separate them: into more parts than there are chunks.
TEST(StoredTest, ARegionBecomesMorePartsThanThereAreChunks) {
  StoredOptions options = small_options();
  options.records = 1;
  options.key_space = uint64_t{1} << 33;
  Tables tables(options, false);
  ASSERT_EQ(tables.open(), "");
  ASSERT_EQ(tables.table->statistics().regions, 1u);
  // All keys come at once, in clusters of a few more records than fit into a slot.
  Batch batch = {.code = {.action = Action::kUpsert}};
  for (uint64_t cluster = 0; cluster < 6; ++cluster)
    for (uint64_t i = 0; i < 520; ++i) {
      batch.keys.push_back(number_key((cluster << 30 | uint64_t{1} << 29) + 200 + i, 8));
      batch.given.push_back(i);
    }
  ASSERT_EQ(run(*tables.session, batch), "");
  Model model;
  make_in(model, batch);
  auto flushed = tables.session->flush();
  ASSERT_TRUE(flushed) << flushed.error().message;
  const StoredStatistics statistics = tables.table->statistics();
  EXPECT_GT(statistics.regions, options.staging_bytes / 512);  // the number of chunks
  EXPECT_EQ(statistics.records, model.size());
  EXPECT_EQ(content_of(*tables.session, 8), model);
}

}  // namespace
}  // namespace batch
