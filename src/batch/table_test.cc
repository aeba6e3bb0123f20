// A table does what a map does, with every engine, way of searching and shape.
#include "batch/table.h"

#include <gtest/gtest.h>
#include <string.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "batch/test_tables.h"

namespace batch {
namespace {

using Sizes = std::tuple<uint32_t, uint32_t, uint32_t>;  // bytes of a key, of a value, of a bucket

class TableModelTest : public testing::TestWithParam<std::tuple<Engine, Sizes>> {
 protected:
  Options options(uint64_t records, uint64_t key_space = 0) const {
    const auto& [engine, sizes] = GetParam();
    return {.shape = {.key_bytes = std::get<0>(sizes),
                      .value_bytes = std::get<1>(sizes),
                      .bucket_bytes = std::get<2>(sizes)},
            .records = records,
            .key_space = key_space,
            .engine = engine,
            .cache_bytes = 8 << 10,
            .staging_bytes = 64 << 10};
  }

  // Does random jobs, and compares with a map.
  void run(const Options& wanted, uint64_t numbers, int jobs) {
    Table table;
    auto opened = table.open(wanted);
    ASSERT_TRUE(opened) << opened.error().message;
    const Shape shape = table.options().shape;
    const bool stages = is_staging(table.engine());
    std::atomic<size_t> changed{0};
    size_t should_be_changed = 0, should_be_missed = 0;
    const uint8_t function = table.add_function({.function = add_first, .context = &changed});
    {
      Session session(table);
      std::map<std::string, std::string> model;
      std::mt19937_64 random(11);
      for (int i = 0; i < jobs; ++i) {
        static constexpr Action kActions[] = {Action::kUpsert, Action::kUpsert, Action::kUpsert,
                                              Action::kRead,   Action::kUpdate, Action::kChange,
                                              Action::kMerge,  Action::kRemove};
        const Action action = kActions[random() % std::size(kActions)];
        const bool asks = action == Action::kRead || random() % 4 == 0;
        const bool is_staged = stages && !asks;
        const size_t count = random() % 100;
        Keys keys(shape);
        std::vector<std::pair<std::string, std::string>> asked;
        for (size_t k = 0; k < count; ++k) {
          asked.emplace_back(bytes_of(random() % numbers, shape.key_bytes),
                             bytes_of(random(), shape.value_bytes));
          keys.add(asked.back().first, asked.back().second);
        }
        Job job = keys.job(action);
        job.code.function = function;
        if (!asks) job.outcomes = nullptr;
        ASSERT_EQ(session.run(job), Session::Ran::kAll);
        ASSERT_EQ(job.done_count, count);
        size_t absent = 0, inserted = 0, removed = 0;
        for (size_t k = 0; k < count; ++k) {
          const auto& [key, value] = asked[k];
          const auto found = model.find(key);
          if (found == model.end()) {
            const bool inserts = may_insert(action);
            if (asks) ASSERT_EQ(keys.outcome(k), inserts ? Outcome::kInserted : Outcome::kAbsent);
            ++(inserts ? inserted : absent);
            if (inserts) model[key] = value;
            continue;
          }
          if (asks) ASSERT_EQ(keys.outcome(k), Outcome::kDone);
          switch (action) {
            case Action::kRead: ASSERT_EQ(keys.read(k), found->second); break;
            case Action::kUpdate:
            case Action::kUpsert: found->second = value; break;
            case Action::kChange:
            case Action::kMerge:
              found->second[0] = static_cast<char>(found->second[0] + value[0]);
              ++should_be_changed;
              break;
            case Action::kRemove:
              model.erase(found);
              ++removed;
              break;
          }
        }
        if (is_staged) {
          should_be_missed += absent;
          continue;
        }
        ASSERT_EQ(job.absent_count, absent);
        ASSERT_EQ(job.inserted_count, inserted);
        ASSERT_EQ(job.removed_count, removed);
        if (stages) continue;
        ASSERT_EQ(changed.load(), should_be_changed);
        ASSERT_EQ(table.record_count(), model.size());
      }
      ASSERT_EQ(session.flush(), Session::Ran::kAll);
      EXPECT_EQ(changed.load(), should_be_changed);
      EXPECT_EQ(table.missed_count(), should_be_missed);
      EXPECT_EQ(table.record_count(), model.size());
      table.verify();
      std::map<std::string, std::string> seen;
      session.for_each([&](const std::byte* key, const std::byte* value) {
        const bool is_new = seen.emplace(std::string(reinterpret_cast<const char*>(key), shape.key_bytes),
                                         std::string(reinterpret_cast<const char*>(value), shape.value_bytes))
                                .second;
        EXPECT_TRUE(is_new);
        return true;
      });
      EXPECT_EQ(seen, model);
    }
  }
};
std::string name_of_case(const testing::TestParamInfo<std::tuple<Engine, Sizes>>& tested) {
  const auto& [engine, sizes] = tested.param;
  const auto& [key, value, bucket] = sizes;
  return name_of(engine) + std::string("_") + std::to_string(key) + "_" + std::to_string(value) + "_" +
         std::to_string(bucket);
}
INSTANTIATE_TEST_SUITE_P(
    All, TableModelTest,
    testing::Combine(testing::ValuesIn(kEngines),
                     testing::Values(Sizes{4, 4, 128}, Sizes{4, 4, 512}, Sizes{4, 12, 256}, Sizes{8, 8, 128},
                                     Sizes{8, 8, 512}, Sizes{8, 24, 256}, Sizes{16, 16, 512},
                                     Sizes{8, 56, 128}, Sizes{16, 48, 512}, Sizes{5, 4, 64}, Sizes{7, 3, 192},
                                     Sizes{12, 12, 320}, Sizes{16, 5, 448})),
    name_of_case);

TEST_P(TableModelTest, AnyKeys) { run(options(2000), 2000, 400); }
// It begins with a bucket or two for all keys.
TEST_P(TableModelTest, ATableThatGrows) { run(options(1), 3000, 400); }
class TableOfNumbersTest : public TableModelTest {};
INSTANTIATE_TEST_SUITE_P(All, TableOfNumbersTest,
                         testing::Combine(testing::ValuesIn(kEngines),
                                          testing::Values(Sizes{4, 4, 128}, Sizes{8, 8, 256}, Sizes{5, 4, 64},
                                                          Sizes{7, 30, 512})),
                         name_of_case);
TEST_P(TableOfNumbersTest, NumbersThatAreAllThere) { run(options(3000, 3000), 3000, 400); }
TEST_P(TableOfNumbersTest, NumbersThatAreFew) { run(options(500, 1 << 20), 1 << 20, 200); }
// All numbers belong to the first few of many buckets.
TEST_P(TableOfNumbersTest, NumbersThatAreNotSpread) { run(options(3000, 1 << 13), 1 << 10, 200); }

// Keys whose halves occur in other keys, too.
TEST_P(TableModelTest, LongKeysAreTheirWholeLength) {
  Table table;
  ASSERT_TRUE(table.open(options(1)));  // one home
  const Shape shape = table.options().shape;
  {
    Session session(table);
    Keys keys(shape);
    const std::string half(shape.key_bytes / 2, 'h'), other(shape.key_bytes - half.size(), 'o');
    const std::string a = half + other, b = half + std::string(other.size(), 'x'),
                      c = std::string(half.size(), 'x') + other;
    keys.add(a, bytes_of(1, shape.value_bytes));
    keys.add(b, bytes_of(2, shape.value_bytes));
    keys.add(c, bytes_of(3, shape.value_bytes));
    Job put = keys.job(Action::kUpsert);
    ASSERT_EQ(session.run(put), Session::Ran::kAll);
    EXPECT_EQ(put.inserted_count, 3u);
    Job read = keys.job(Action::kRead);
    ASSERT_EQ(session.run(read), Session::Ran::kAll);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(keys.read(i), bytes_of(i + 1, shape.value_bytes));
  }
  table.verify();
}

TEST(TableTest, AKeyOutsideTheSpaceStopsAllOfTheCall) {
  Table table;
  ASSERT_TRUE(table.open(numbers(100)));
  Session session(table);
  Keys keys(table.options().shape);
  for (const uint64_t number : {5, 99, 100, 7}) keys.add(bytes_of(number, 8));
  Job job = keys.job(Action::kUpsert);
  EXPECT_EQ(session.run(job), Session::Ran::kOutside);
  EXPECT_EQ(job.done_count, 2u);
  EXPECT_EQ(table.record_count(), 0u);
}

TEST(TableTest, NumbersThatAllFitNeverMakeItGrow) {
  for (const uint64_t count : {1, 7, 8, 9, 1000, 1023}) {
    Table table;
    ASSERT_TRUE(table.open(numbers(count)));
    EXPECT_EQ(table.bucket_count(), (count + 7) / 8 + Head::kMaxReach);
    {
      Session session(table);
      Keys keys(table.options().shape);
      for (uint64_t i = count; i-- > 0;) keys.add(bytes_of(i, 8), bytes_of(i * 3, 8));
      Job job = keys.job(Action::kUpsert);
      ASSERT_EQ(session.run(job), Session::Ran::kAll);
      EXPECT_EQ(job.inserted_count, count);
      // The buckets follow the order of the keys.
      const uint64_t span = (count - 1) / (table.bucket_count() - Head::kMaxReach) + 1;
      uint64_t last_bucket = 0, seen = 0;
      session.for_each([&](const std::byte* key, const std::byte*) {
        const uint64_t bucket = load_key(key, 8).low / span;
        EXPECT_GE(bucket, last_bucket);
        last_bucket = bucket;
        ++seen;
        return true;
      });
      EXPECT_EQ(seen, count);
    }
    EXPECT_EQ(table.growth_count(), 0u);
    table.verify();
  }
}

TEST(TableTest, OneThatMayNotGrowIsFull) {
  Options options = {.shape = {.key_bytes = 8, .value_bytes = 8}, .records = 100, .grows = false};
  Table table;
  ASSERT_TRUE(table.open(options));
  {
    Session session(table);
    Keys keys(table.options().shape);
    for (uint64_t i = 0; i < 10'000; ++i) keys.add(bytes_of(i, 8), bytes_of(~i, 8));
    Job job = keys.job(Action::kUpsert);
    EXPECT_EQ(session.run(job), Session::Ran::kFull);
    EXPECT_GE(job.done_count, 100u);
    EXPECT_LT(job.done_count, table.bucket_count() * table.options().shape.slots() + 1);
    EXPECT_EQ(job.inserted_count, job.done_count);
    const uint64_t there = job.done_count;
    Job read = keys.job(Action::kRead);
    EXPECT_EQ(session.run(read), Session::Ran::kAll);
    EXPECT_EQ(read.absent_count, 10'000 - there);
    for (uint64_t i = 0; i < there; ++i) ASSERT_EQ(keys.read(i), bytes_of(~i, 8));
  }
  table.verify();
}

TEST(TableTest, NumbersThatAreAllTheSameEndWithoutEndlessGrowth) {
  Options options = numbers(uint64_t{1} << 40);
  options.records = 1'000'000;
  Table table;
  ASSERT_TRUE(table.open(options));
  const uint64_t memory_bytes = table.memory_bytes();
  {
    Session session(table);
    Keys keys(table.options().shape);
    for (uint64_t i = 0; i < 10'000; ++i) keys.add(bytes_of(i, 8));  // in a key space of a million
    Job job = keys.job(Action::kUpsert);
    EXPECT_EQ(session.run(job), Session::Ran::kFull);
    EXPECT_EQ(job.done_count, 16 * 8u);
  }
  EXPECT_EQ(table.memory_bytes(), memory_bytes);
}

TEST(TableTest, MoreThanThereIsMemoryForIsAnError) {
  for (const uint64_t records : {uint64_t{1} << 50, uint64_t{860'000'000'000'000'000}, ~uint64_t{0}}) {
    Table table;
    auto opened = table.open({.shape = {.key_bytes = 8, .value_bytes = 8}, .records = records});
    ASSERT_FALSE(opened) << records;
    EXPECT_EQ(opened.error().number, ENOMEM);
  }
  // As many homes as records.
  Table table;
  EXPECT_FALSE(table.open(
      {.shape = {.key_bytes = 16, .value_bytes = 48, .bucket_bytes = 64}, .records = ~uint64_t{0}}));
}

TEST(TableTest, OneThatWasClosedIsOpenedEmpty) {
  Table table;
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(table.open(numbers(1000)));
    {
      Session session(table);
      Keys keys(table.options().shape);
      for (uint64_t i = 0; i < 100; ++i) keys.add(bytes_of(i, 8));
      Job job = keys.job(Action::kUpsert);
      ASSERT_EQ(session.run(job), Session::Ran::kAll);
      EXPECT_EQ(table.record_count(), 100u);
    }
    table.verify();
    table.close();
  }
}

TEST(TableTest, BucketsHaveSixteenRecordsUnlessTheyAreLarge) {
  const auto bucket_bytes = [](uint32_t key, uint32_t value) {
    Table table;
    EXPECT_TRUE(table.open({.shape = {.key_bytes = key, .value_bytes = value}, .records = 1}));
    return table.options().shape.bucket_bytes;
  };
  EXPECT_EQ(bucket_bytes(4, 4), 128u);
  EXPECT_EQ(bucket_bytes(8, 8), 256u);
  EXPECT_EQ(bucket_bytes(8, 12), 320u);
  EXPECT_EQ(bucket_bytes(16, 48), 512u);
}

TEST(TableTest, OptionsThatCannotBe) {
  const auto refuses = [](Options options, const char* text) {
    Table table;
    auto opened = table.open(options);
    ASSERT_FALSE(opened) << text;
    EXPECT_EQ(opened.error().number, EINVAL);
    EXPECT_STREQ(opened.error().message, text);
  };
  const Shape fine = {.key_bytes = 8, .value_bytes = 8};
  refuses({.shape = {.key_bytes = 3, .value_bytes = 8}, .records = 1}, "keys have 4 to 16 bytes, not 3");
  refuses({.shape = {.key_bytes = 17, .value_bytes = 8}, .records = 1}, "keys have 4 to 16 bytes, not 17");
  refuses({.shape = {.key_bytes = 8, .value_bytes = 57}, .records = 1},
          "a record has 8 to 64 bytes, of which one at least is its value's; not 8 and 57");
  refuses({.shape = {.key_bytes = 8}, .records = 1},
          "a record has 8 to 64 bytes, of which one at least is its value's; not 8 and 0");
  refuses({.shape = {.key_bytes = 4, .value_bytes = 3}, .records = 1},
          "a record has 8 to 64 bytes, of which one at least is its value's; not 4 and 3");
  refuses({.shape = {.key_bytes = 8, .value_bytes = 8, .bucket_bytes = 100}, .records = 1},
          "a bucket has a multiple of 64 bytes, up to 512, not 100");
  refuses({.shape = {.key_bytes = 8, .value_bytes = 8, .bucket_bytes = 576}, .records = 1},
          "a bucket has a multiple of 64 bytes, up to 512, not 576");
  refuses({.shape = fine, .records = 1, .cache_bucket_bytes = 0},
          "a cache-bucket has a multiple of 64 bytes, not 0");
  refuses({.shape = fine, .records = 1, .cache_bucket_bytes = 1000},
          "a cache-bucket has a multiple of 64 bytes, not 1000");
  refuses({.shape = fine}, "say how many records the table is made for");
  refuses({.shape = {.key_bytes = 12, .value_bytes = 8}, .records = 1, .key_space = 1},
          "keys that are numbers have up to 8 bytes, not 12");
  refuses({.shape = fine, .records = 1, .key_space = ~uint64_t{0}},
          "a key space has up to 4611686018427387904 numbers, not 18446744073709551615");
}

}  // namespace
}  // namespace batch
