// Stored tables beside a model of them: jobs of all kinds, growth, starts, threads, and what goes wrong.
#include <atomic>
#include <thread>

#include "batch/spread.h"
#include "batch/stored/test_store.h"

namespace batch {
namespace {

constexpr uint64_t kStoreBytes = 8 << 20, kLogBytes = 256 << 10;

std::string number_key(uint64_t number, uint32_t bytes) {
  std::string key(bytes, 0);
  memcpy(key.data(), &number, std::min<size_t>(bytes, sizeof number));
  if (bytes > 8) key[bytes - 1] = static_cast<char>(number * 7);
  return key;
}

// A table in memory that fails when it is told to, with a log, or without.
class Tables {
 public:
  explicit Tables(const StoredOptions& options, bool has_log = true, uint64_t store_bytes = kStoreBytes,
                  uint64_t log_bytes = kLogBytes)
      : device(*new storage::FailDevice(*storage::make_memory_device(store_bytes))),
        log_device(*new storage::FailDevice(*storage::make_memory_device(log_bytes))),
        options_(options),
        store_(device) {
    if (has_log) options_.log = &log_device;
  }
  ~Tables() {
    close();
    device.close();
    log_device.close();
  }

  std::string open() {
    table = std::make_unique<StoredTable>();
    if (auto opened = table->open(store_, options_); !opened) return opened.error().message;
    add_test_functions(*table);
    session = std::make_unique<StoredSession>();
    auto opened = session->open(*table);
    return opened ? "" : opened.error().message;
  }
  std::string close() {
    session.reset();
    if (table == nullptr) return "";
    auto closed = table->close();
    table.reset();
    return closed ? "" : closed.error().message;
  }

  storage::FailDevice& device;
  storage::FailDevice& log_device;
  StoredOptions options_;
  DeviceStore store_;
  std::unique_ptr<StoredTable> table;
  std::unique_ptr<StoredSession> session;
};

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
  // It was larger than what may wait, and than the slots that it was made with.
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

// ---- Threads

// Each key has a sum, which all add to, and a number of each thread's own, which becomes larger only.
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

// ---- What goes wrong

TEST(StoredTest, KeysOutsideTheKeySpaceAreRefusedAndNothingIsDone) {
  StoredOptions options = small_options();
  options.key_space = 100;
  Tables tables(options);
  ASSERT_EQ(tables.open(), "");
  Batch batch = {
      .code = {.action = Action::kUpsert}, .keys = {number_key(99, 8), number_key(100, 8)}, .given = {1, 2}};
  EXPECT_EQ(run(*tables.session, batch), "table: a key is not below the key space, 100");
  EXPECT_EQ(content_of(*tables.session, 8).size(), 0u);
}

TEST(StoredTest, OptionsThatMakeNoTableAreRefused) {
  const auto refused = [](auto change) {
    StoredOptions options = small_options();
    change(options);
    return Tables(options, false).open();
  };
  EXPECT_EQ(refused([](StoredOptions& o) { o.shape.key_bytes = 3; }), "keys have 4 to 16 bytes, not 3");
  EXPECT_EQ(refused([](StoredOptions& o) { o.shape.value_bytes = 57; }),
            "a record has 8 to 64 bytes, of which one at least is its value's; not 8 and 57");
  EXPECT_EQ(refused([](StoredOptions& o) { o.records = 0; }), "say how many records the table is made for");
  EXPECT_EQ(refused([](StoredOptions& o) { o.makers = 0; }), "a table has 1 to 64 threads, not 0");
  EXPECT_EQ(refused([](StoredOptions& o) { o.slot_pages = 3; }),
            "a slot has 2 to 64 pages, a power of two, not 3");
  EXPECT_EQ(refused([](StoredOptions& o) { o.key_space = ~uint64_t{0}; }),
            "a key space has up to 4611686018427387904 numbers, not 18446744073709551615");
  EXPECT_EQ(refused([](StoredOptions& o) { o.staging_bytes = 100; }),
            "what is staged takes 16384 bytes at least, not 100");
  EXPECT_EQ(refused([](StoredOptions& o) { o.records = 1 << 20; }),
            "table: failing has 8388608 bytes; 1048576 records take 37814272");
}

TEST(StoredTest, WhatIsNotThisTableIsRefused) {
  Tables tables(small_options());
  ASSERT_EQ(tables.open(), "");
  Batch batch = {.code = {.action = Action::kUpsert}, .keys = {number_key(1, 8)}, .given = {1}};
  ASSERT_EQ(run(*tables.session, batch), "");
  ASSERT_EQ(tables.close(), "");
  StoredOptions options = small_options(4);
  StoredTable other;
  auto opened = other.open(tables.store_, options);
  ASSERT_FALSE(opened);
  EXPECT_STREQ(opened.error().message,
               "table: failing has keys of 8 bytes, values of 8 and the key space 0; not 4, 8 and 0");
  // Something else.
  auto access = *tables.store_.open_access();
  const std::vector<std::byte> text(2 * kPageBytes, std::byte{'x'});
  ASSERT_TRUE(access->write(0, text));
  EXPECT_EQ(tables.open(), "table: failing has content, and is no table; name another file");
}

TEST(StoredTest, ATableOfAnotherFormatIsRefusedAndLeftAsItIs) {
  Tables tables(small_options(), false);
  ASSERT_EQ(tables.open(), "");
  Batch batch = {.code = {.action = Action::kUpsert}, .keys = {number_key(1, 8)}, .given = {1}};
  ASSERT_EQ(run(*tables.session, batch), "");
  ASSERT_EQ(tables.close(), "");
  auto access = *tables.store_.open_access();
  std::vector<std::byte> pages(2 * kPageBytes), after(2 * kPageBytes);
  const BucketStore::Piece before_piece = {.offset = 0, .to = pages},
                           after_piece = {.offset = 0, .to = after};
  ASSERT_TRUE(access->read({&before_piece, 1}));
  for (uint64_t i = 0; i < 2; ++i) {
    Superblock block;
    memcpy(&block, pages.data() + i * kPageBytes, sizeof block);
    if (!block.is_sealed()) continue;
    block.version = 2;
    block.seal();
    memcpy(pages.data() + i * kPageBytes, &block, sizeof block);
  }
  ASSERT_TRUE(access->write(0, pages));
  EXPECT_EQ(tables.open(), "table: failing has format 2; this is for 1");
  ASSERT_TRUE(access->read({&after_piece, 1}));
  EXPECT_EQ(after, pages);
}

TEST(StoredTest, ATableThatWasNotClosedNeedsItsLog) {
  Tables tables(small_options());
  ASSERT_EQ(tables.open(), "");
  Batch batch = {.code = {.action = Action::kUpsert}, .keys = {number_key(1, 8)}, .given = {1}};
  ASSERT_EQ(run(*tables.session, batch), "");
  {
    auto synced = tables.session->sync();
    ASSERT_TRUE(synced) << synced.error().message;
  }
  // It is left as a process that is killed leaves it.
  tables.device.fail(storage::FailDevice::Failing::kWrites, EIO);
  tables.log_device.fail(storage::FailDevice::Failing::kWrites, EIO);
  EXPECT_NE(tables.close(), "");
  tables.device.fail(storage::FailDevice::Failing::kNothing, 0);
  tables.log_device.fail(storage::FailDevice::Failing::kNothing, 0);
  {
    StoredTable without;
    auto opened = without.open(tables.store_, small_options());
    ASSERT_FALSE(opened);
    EXPECT_STREQ(opened.error().message,
                 "table: failing was not closed, and its log has changes that are not in it; name the log");
  }
  {
    storage::Device* const empty = *storage::make_memory_device(kLogBytes);
    StoredOptions options = small_options();
    options.log = empty;
    StoredTable other;
    auto opened = other.open(tables.store_, options);
    ASSERT_FALSE(opened);
    EXPECT_STREQ(opened.error().message,
                 "table: failing was not closed, and memory:256K is not its log; name that");
    empty->close();
  }
  {
    // Another table does not take the log either.
    Tables others(small_options());
    others.options_.log = &tables.log_device;
    EXPECT_EQ(others.open(), "table: failing is the log of another table, which was not closed");
  }
  ASSERT_EQ(tables.open(), "");
  EXPECT_EQ(content_of(*tables.session, 8), (Model{{number_key(1, 8), 1}}));
}

// Its records are there still, from the position on that the next table begins with, too.
TEST(StoredTest, ALogThatAnotherTableWasDoneWithHasNothingForTheNextOne) {
  Tables first(small_options()), second(small_options());
  ASSERT_EQ(first.open(), "");
  Batch batch = {.code = {.action = Action::kUpsert}, .keys = {number_key(1, 8)}, .given = {1}};
  ASSERT_EQ(run(*first.session, batch), "");
  ASSERT_TRUE(first.session->sync());
  ASSERT_EQ(first.close(), "");
  second.options_.log = &first.log_device;
  ASSERT_EQ(second.open(), "");
  // It is left as a process that is killed leaves it.
  second.device.fail(storage::FailDevice::Failing::kWrites, EIO);
  EXPECT_NE(second.close(), "");
  second.device.fail(storage::FailDevice::Failing::kNothing, 0);
  ASSERT_EQ(second.open(), "");
  EXPECT_EQ(content_of(*second.session, 8), Model());
  EXPECT_EQ(second.close(), "");
}

TEST(StoredTest, ALogWithAFunctionThatIsMissingIsRefusedUntilItIsThere) {
  Tables tables(small_options());
  ASSERT_EQ(tables.open(), "");
  Batch batch = {.code = {.action = Action::kMerge, .function = 1}, .keys = {number_key(1, 8)}, .given = {7}};
  ASSERT_EQ(run(*tables.session, batch), "");
  {
    auto synced = tables.session->sync();
    ASSERT_TRUE(synced) << synced.error().message;
  }
  tables.device.fail(storage::FailDevice::Failing::kWrites, EIO);
  EXPECT_NE(tables.close(), "");
  tables.device.fail(storage::FailDevice::Failing::kNothing, 0);
  {
    StoredTable table;
    ASSERT_TRUE(table.open(tables.store_, tables.options_));
    StoredSession session;
    auto opened = session.open(table);
    ASSERT_FALSE(opened);
    EXPECT_STREQ(opened.error().message,
                 "table: the log failing has changes by the function number 1; add so many functions before "
                 "the first session is opened");
    EXPECT_TRUE(table.close());
  }
  ASSERT_EQ(tables.open(), "");
  EXPECT_EQ(content_of(*tables.session, 8), (Model{{number_key(1, 8), 7}}));
}

TEST(StoredTest, WhatCannotBeWrittenStaysAndIsWrittenLater) {
  for (const bool has_log : {false, true}) {
    StoredOptions options = small_options();
    options.staging_bytes = 16 << 10;
    Tables tables(options, has_log);
    ASSERT_EQ(tables.open(), "");
    Model model;
    uint64_t number = 0;
    const auto upsert = [&] {
      Batch batch = {.code = {.action = Action::kUpsert}};
      for (int i = 0; i < 100; ++i, ++number) {
        batch.keys.push_back(number_key(number % 4000, 8));
        batch.given.push_back(number);
      }
      const std::string line = run(*tables.session, batch);
      if (line.empty()) make_in(model, batch);
      return line;
    };
    for (int i = 0; i < 10; ++i) ASSERT_EQ(upsert(), "");
    tables.device.fail(storage::FailDevice::Failing::kWrites, EIO);
    std::string line;
    uint64_t before = 0;
    // Until there is no room for more.
    for (int i = 0; i < 1000 && line.empty(); ++i) {
      before = number;
      line = upsert();
    }
    EXPECT_EQ(line, "cannot write");
    auto synced = tables.session->flush();
    ASSERT_FALSE(synced);
    EXPECT_STREQ(synced.error().message, "cannot write");
    // What was there is read, if it is not on the medium yet, too.
    Batch reads = {.code = {.action = Action::kRead}};
    for (uint64_t i = 0; i < before; ++i) reads.keys.push_back(number_key(i % 4000, 8));
    ASSERT_EQ(run(*tables.session, reads), "");
    for (uint64_t i = 0; i < std::min<uint64_t>(before, 500); ++i)
      EXPECT_EQ(reads.read[i], model[reads.keys[i]]);
    tables.device.fail(storage::FailDevice::Failing::kNothing, 0);
    number = before;
    while (upsert() != "") number = before;  // until the makers have seen that it works again
    for (int i = 0; i < 100; ++i) ASSERT_EQ(upsert(), "");
    EXPECT_EQ(content_of(*tables.session, 8), model);
    ASSERT_EQ(tables.close(), "");
    ASSERT_EQ(tables.open(), "");
    EXPECT_EQ(content_of(*tables.session, 8), model);
  }
}

TEST(StoredTest, AFullStoreIsToldAndKeepsWhatItHas) {
  StoredOptions options = small_options();
  Tables tables(options, false, StoredTable::store_bytes_for(options.shape, options.records, 2) + (64 << 10));
  ASSERT_EQ(tables.open(), "");
  Model model;
  std::string line;
  for (uint64_t number = 0; line.empty() && number < 1'000'000;) {
    Batch batch = {.code = {.action = Action::kUpsert}};
    for (int i = 0; i < 100; ++i, ++number) {
      batch.keys.push_back(number_key(number, 8));
      batch.given.push_back(number);
    }
    line = run(*tables.session, batch);
    if (line.empty()) make_in(model, batch);
  }
  EXPECT_NE(line.find("table: no room left in failing, which has "), std::string::npos) << line;
  Batch reads = {.code = {.action = Action::kRead}};
  std::vector<uint64_t> expected;
  for (const auto& [key, value] : model) {
    reads.keys.push_back(key);
    expected.push_back(value);
  }
  ASSERT_EQ(run(*tables.session, reads), "");
  EXPECT_EQ(reads.read, expected);
}

TEST(StoredTest, AFullStoreGoesOnWhenItIsLarger) {
  const StoredOptions options = small_options();
  const uint64_t bytes = StoredTable::store_bytes_for(options.shape, options.records, 2) + (64 << 10);
  storage::Device* const large = *storage::make_memory_device(kStoreBytes);
  Model model;
  {
    DeviceStore store(*large, bytes);
    StoredTable table;
    ASSERT_TRUE(table.open(store, options));
    StoredSession session;
    ASSERT_TRUE(session.open(table));
    for (uint64_t number = 0; number < 1'000'000;) {
      Batch batch = {.code = {.action = Action::kUpsert}};
      for (int i = 0; i < 100; ++i, ++number) {
        batch.keys.push_back(number_key(number, 8));
        batch.given.push_back(number);
      }
      if (run(session, batch) != "") break;
      make_in(model, batch);
      if (!session.sync()) break;
    }
    EXPECT_FALSE(session.sync());
    static_cast<void>(table.close());
  }
  DeviceStore store(*large);
  StoredTable table;
  ASSERT_TRUE(table.open(store, options));
  {
    StoredSession session;
    ASSERT_TRUE(session.open(table));
    Batch batch = {.code = {.action = Action::kUpsert}};
    for (const auto& [key, value] : model) {
      batch.keys.push_back(key);
      batch.given.push_back(value);
    }
    ASSERT_EQ(run(session, batch), "");
    ASSERT_TRUE(session.sync());
    EXPECT_EQ(content_of(session, 8), model);
  }
  EXPECT_TRUE(table.close());
  large->close();
}

// As many makers as may be, in as small a store as may be.
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

// One thread changes a key all the time: another one's flush and sync end nevertheless.
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

TEST(StoredTest, CheckpointsThatFailDoNotUseUpTheStore) {
  Tables tables(small_options(), false);
  ASSERT_EQ(tables.open(), "");
  Batch batch = {.code = {.action = Action::kUpsert}};
  for (uint64_t i = 0; i < 500; ++i) {
    batch.keys.push_back(number_key(i, 8));
    batch.given.push_back(i);
  }
  ASSERT_EQ(run(*tables.session, batch), "");
  ASSERT_TRUE(tables.session->flush());
  tables.device.fail(storage::FailDevice::Failing::kWrites, ENOSPC);
  for (int i = 0; i < 3000; ++i) ASSERT_FALSE(tables.session->sync());
  tables.device.fail(storage::FailDevice::Failing::kNothing, 0);
  auto synced = tables.session->sync();
  EXPECT_TRUE(synced) << synced.error().message;
}

// Numbers that are not spread over the space that they are declared for: those that have no room are told of, once, and all else goes on.
TEST(StoredTest, KeysThatAreTooNearEachOtherAreDropped) {
  StoredOptions options = small_options();
  options.key_space = Spread::kKeySpaceMax;
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
  add(1000, [&](uint64_t) { return random() % Spread::kKeySpaceMax; });
  add(300, [](uint64_t i) { return i; });
  ASSERT_TRUE(tables.session->flush());
  add(2000, [](uint64_t i) { return 1000 + i; });
  auto flushed = tables.session->flush();
  ASSERT_FALSE(flushed);
  EXPECT_STREQ(flushed.error().message,
               "table: some records have no room: too many keys are near each other");
  EXPECT_TRUE(tables.session->flush());
  EXPECT_GT(tables.table->statistics().dropped, 0u);
  add(1000, [&](uint64_t) { return random() % Spread::kKeySpaceMax; });
  ASSERT_TRUE(tables.session->flush());
  // Neither does a table fail to close by that, nor to make again what its log has.
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
  // All that were there before, and those that are spread.
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

// The parts of a region whose keys lie in clusters are as many as it takes to come down to each: more than there are chunks.
TEST(StoredTest, ARegionBecomesMorePartsThanThereAreChunks) {
  StoredOptions options = small_options();
  options.records = 1;
  options.key_space = uint64_t{1} << 33;
  Tables tables(options, false);
  ASSERT_EQ(tables.open(), "");
  ASSERT_EQ(tables.table->statistics().regions, 1u);
  // All at once, in clusters of a few more than a slot holds.
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
  EXPECT_GT(statistics.regions, options.staging_bytes / 512);  // the chunks
  EXPECT_EQ(statistics.records, model.size());
  EXPECT_EQ(content_of(*tables.session, 8), model);
}

// Of a table whose changes had room, and have not when it is opened with less.
TEST(StoredTest, ALogIsMadeAgainInLessMemory) {
  StoredOptions options = small_options();
  options.staging_bytes = 128 << 10;
  Tables tables(options, true, kStoreBytes, 4 << 20);
  ASSERT_EQ(tables.open(), "");
  std::mt19937_64 random(6);
  Model model;
  const auto key = [](std::mt19937_64& from) { return number_key(from() % 3000, 8); };
  const auto change = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Batch batch = random_batch(random, 100, key);
      ASSERT_EQ(run(*tables.session, batch), "");
      make_in(model, batch);
    }
  };
  // Until there have been checkpoints, while most of what came before them waited.
  while (tables.table->statistics().checkpoints < 6) change(3);
  ASSERT_TRUE(tables.session->sync());
  ASSERT_GT(tables.table->statistics().staged, 1'000u);
  tables.device.fail(storage::FailDevice::Failing::kWrites, EIO);
  EXPECT_NE(tables.close(), "");
  tables.device.fail(storage::FailDevice::Failing::kNothing, 0);
  tables.options_.staging_bytes = 16 << 10;
  ASSERT_EQ(tables.open(), "");
  EXPECT_EQ(content_of(*tables.session, 8), model);
}

TEST(StoredTest, ADamagedPageIsToldOfAndOthersAreRead) {
  Tables tables(small_options(), false);
  ASSERT_EQ(tables.open(), "");
  Batch batch = {.code = {.action = Action::kUpsert}};
  for (uint64_t i = 0; i < 1000; ++i) {
    batch.keys.push_back(number_key(i, 8));
    batch.given.push_back(i);
  }
  ASSERT_EQ(run(*tables.session, batch), "");
  {
    auto synced = tables.session->sync();
    ASSERT_TRUE(synced) << synced.error().message;
  }
  // A bit of each page in the first half of what is used.
  const StoredStatistics statistics = tables.table->statistics();
  auto access = *tables.store_.open_access();
  std::vector<std::byte> page(kPageBytes);
  for (uint64_t at = 2; at < statistics.slots_used; ++at) {
    const BucketStore::Piece piece = {.offset = at * kPageBytes, .to = page};
    ASSERT_TRUE(access->read({&piece, 1}));
    page[1000] ^= std::byte{4};
    ASSERT_TRUE(access->write(at * kPageBytes, page));
  }
  uint64_t damaged = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    Batch read = {.code = {.action = Action::kRead}, .keys = {number_key(i, 8)}};
    if (const std::string line = run(*tables.session, read); line.empty()) {
      EXPECT_EQ(read.read[0], i);
    } else {
      EXPECT_NE(line.find("table: the page of failing at offset "), std::string::npos) << line;
      ++damaged;
    }
  }
  EXPECT_GT(damaged, 50u);
  EXPECT_LT(damaged, 950u);
}

}  // namespace
}  // namespace batch
