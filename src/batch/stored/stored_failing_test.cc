// Stored tables whose media fail, are full or damaged, or that are opened with less memory than they had.
#include "batch/stored/test_stored_tables.h"

namespace batch {
namespace {

TEST(StoredFailingTest, WhatCannotBeWrittenStaysAndIsWrittenLater) {
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
    // Writes until there is no room for more.
    for (int i = 0; i < 1000 && line.empty(); ++i) {
      before = number;
      line = upsert();
    }
    EXPECT_EQ(line, "cannot write");
    auto synced = tables.session->flush();
    ASSERT_FALSE(synced);
    EXPECT_STREQ(synced.error().message, "cannot write");
    // Old values can be read, even those that are not on the medium yet.
    Batch reads = {.code = {.action = Action::kRead}};
    for (uint64_t i = 0; i < before; ++i) reads.keys.push_back(number_key(i % 4000, 8));
    ASSERT_EQ(run(*tables.session, reads), "");
    for (uint64_t i = 0; i < std::min<uint64_t>(before, 500); ++i)
      EXPECT_EQ(reads.read[i], model[reads.keys[i]]);
    tables.device.fail(storage::FailDevice::Failing::kNothing, 0);
    number = before;
    while (upsert() != "") number = before;  // until the makers have noticed that the device works again
    for (int i = 0; i < 100; ++i) ASSERT_EQ(upsert(), "");
    EXPECT_EQ(content_of(*tables.session, 8), model);
    ASSERT_EQ(tables.close(), "");
    ASSERT_EQ(tables.open(), "");
    EXPECT_EQ(content_of(*tables.session, 8), model);
  }
}

TEST(StoredFailingTest, AFullStoreIsToldAndKeepsWhatItHas) {
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

TEST(StoredFailingTest, AFullStoreGoesOnWhenItIsLarger) {
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

TEST(StoredFailingTest, CheckpointsThatFailDoNotUseUpTheStore) {
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

// A table's changes had room when they were staged, but have none when the table is opened with less memory.
TEST(StoredFailingTest, ALogIsMadeAgainInLessMemory) {
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
  // Goes on until there have been checkpoints at which most of the changes still waited.
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

TEST(StoredFailingTest, ADamagedPageIsToldOfAndOthersAreRead) {
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
  // Flips a bit of each page in the first half of the used part.
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
