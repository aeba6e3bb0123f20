// What a stored table refuses: keys, options, and stores and logs that are another table's.
#include "batch/stored/test_stored_tables.h"

namespace batch {
namespace {

TEST(StoredRefusedTest, KeysOutsideTheKeySpaceAreRefusedAndNothingIsDone) {
  StoredOptions options = small_options();
  options.key_space = 100;
  Tables tables(options);
  ASSERT_EQ(tables.open(), "");
  Batch batch = {
      .code = {.action = Action::kUpsert}, .keys = {number_key(99, 8), number_key(100, 8)}, .given = {1, 2}};
  EXPECT_EQ(run(*tables.session, batch), "table: a key is not below the key space, 100");
  EXPECT_EQ(content_of(*tables.session, 8).size(), 0u);
}

TEST(StoredRefusedTest, OptionsThatMakeNoTableAreRefused) {
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

TEST(StoredRefusedTest, WhatIsNotThisTableIsRefused) {
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
  // The store has something else.
  auto access = *tables.store_.open_access();
  const std::vector<std::byte> text(2 * kPageBytes, std::byte{'x'});
  ASSERT_TRUE(access->write(0, text));
  EXPECT_EQ(tables.open(), "table: failing has content, and is not a table; name another file");
}

TEST(StoredRefusedTest, ATableOfAnotherFormatIsRefusedAndLeftAsItIs) {
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

TEST(StoredRefusedTest, ATableThatWasNotClosedNeedsItsLog) {
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
    // Another table does not accept the log either.
    Tables others(small_options());
    others.options_.log = &tables.log_device;
    EXPECT_EQ(others.open(), "table: failing is the log of another table, which was not closed");
  }
  ASSERT_EQ(tables.open(), "");
  EXPECT_EQ(content_of(*tables.session, 8), (Model{{number_key(1, 8), 1}}));
}

// The old table's records are still there, also from the position on at which the next table begins.
TEST(StoredRefusedTest, ALogThatAnotherTableWasDoneWithHasNothingForTheNextOne) {
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

TEST(StoredRefusedTest, ALogWithAFunctionThatIsMissingIsRefusedUntilItIsThere) {
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

}  // namespace
}  // namespace batch
