#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kv/testing/test_effort.h"
#include "kv/testing/written_medium.h"

namespace kv {
namespace {

constexpr uint32_t kSegments = 24;
constexpr uint32_t kRecords = 1800;  // of a segment

// Records of a log that a start goes through in several rounds and parts.
class RecoveryApplyTest : public testing::Test, protected WrittenMedium {
 protected:
  RecoveryApplyTest() : WrittenMedium(kSegments) {}

  // Writes them in this order, from the first segment on.
  void write_all(const std::vector<Written>& records) {
    for (uint32_t i = 0; i * kRecords < records.size(); ++i) {
      const auto begin = records.begin() + i * kRecords;
      sealed(i, 2 + i, {begin, std::min(begin + kRecords, records.end())});
    }
  }
  uint64_t address_of(size_t record) const {
    return identity.geometry.address(record / kRecords, 1 + static_cast<uint32_t>(record % kRecords));
  }
  // The index has exactly the newest record of each key, except tombstones, and the log knows how many are in each segment.
  void check(const std::vector<Written>& records) {
    std::map<std::string, size_t> newest;
    for (size_t i = 0; i < records.size(); ++i) {
      const auto [at, is_first] = newest.try_emplace(records[i].key, i);
      if (!is_first && records[i].sequence > records[at->second].sequence) at->second = i;
    }
    uint64_t entries = 0;
    std::vector<uint64_t> live(kSegments);
    for (const auto& [key, number] : newest) {
      const Location found = index->find_at(hash_key(identity.secret, key).low, address_of(number));
      const bool is_live = records[number].kind == RecordKind::kValue;
      ASSERT_EQ(found.found, is_live) << key;
      entries += is_live;
      if (is_live) ++live[number / kRecords];
    }
    for (size_t i = 0; i < records.size(); ++i)
      if (records[i].kind == RecordKind::kTombstone) ++live[i / kRecords];  // while it is in the log
    EXPECT_EQ(index->counts().entries, entries);
    for (uint32_t i = 0; i < kSegments; ++i) EXPECT_EQ(log.segment(i).live_grains.load(), live[i]) << i;
    index->verify();
  }
};

TEST_F(RecoveryApplyTest, OfAKeyTheNewestRecordCountsWhereverItIs) {
  const uint64_t seed = setting("SPILLWAY_TEST_SEED", 1);
  SCOPED_TRACE("SPILLWAY_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<Written> records;
  for (uint64_t sequence = 1; sequence <= kSegments * kRecords; ++sequence)
    records.push_back({"key" + std::to_string(random() % 15'000), sequence,
                       random() % 4 == 0 ? RecordKind::kTombstone : RecordKind::kValue});
  // Out of order, as the collector and several streams leave them, or worse.
  std::ranges::shuffle(records, random);
  write_all(records);
  EXPECT_EQ(start().replayed_records, records.size());
  check(records);
}

TEST_F(RecoveryApplyTest, AnOlderRecordThatComesLaterDoesNotCount) {
  std::vector<Written> records;
  for (uint64_t i = kSegments * kRecords; i > 0; --i)
    records.push_back(
        {"key" + std::to_string(i % 15'000), i, i % 7 == 0 ? RecordKind::kTombstone : RecordKind::kValue});
  write_all(records);
  start();
  check(records);
}

TEST_F(RecoveryApplyTest, OfACopyTheFirstOneStays) {
  std::vector<Written> records;
  for (const int pass : {0, 1})
    for (uint64_t i = 0; i < kSegments / 2 * kRecords; ++i)
      records.push_back({"key" + std::to_string((pass + i) % (kSegments / 2 * kRecords)), 0});
  for (Written& record : records) record.sequence = 1 + std::stoull(record.key.substr(3));
  write_all(records);
  start();
  check(records);
}

// A table has 32,768 slots.
TEST_F(RecoveryApplyTest, TheIndexIsAsLargeAsItsKeysNeed) {
  std::vector<Written> records;
  for (uint64_t i = 0; i < kSegments * kRecords; ++i)
    records.push_back({"key" + std::to_string(i % 14'000), 1 + i});
  write_all(records);
  start();
  check(records);
  EXPECT_EQ(index->counts().tables, 1u);
}

// It gets it while it is empty, so that nothing needs to be moved.
TEST_F(RecoveryApplyTest, TheIndexHasRoomForAllKeysAtOnce) {
  std::vector<Written> records;
  for (uint64_t i = 0; i < kSegments * kRecords; ++i) records.push_back({"key" + std::to_string(i), 1 + i});
  write_all(records);
  start();
  check(records);
  EXPECT_EQ(index->counts().tables, 2u);
  EXPECT_EQ(index->counts().regions_moved, kRegions);
}

// What a power cut may have taken is skipped even if the start that notices ends right after it has sealed what was open.
TEST_F(RecoveryApplyTest, TheNextStartSkipsWhatOneThatEndsEarlyHas) {
  open(0, 2, {{"key", 10}});
  start();
  const uint64_t last = log.last_sequence();
  EXPECT_GT(last, uint64_t{1} << 32);
  Log next_log;
  Index* next_index = nullptr;
  ASSERT_TRUE(next_log.open(identity, 1));
  ASSERT_TRUE(recover(*device, identity, next_log, next_index));
  EXPECT_GE(next_log.last_sequence(), last);
  next_index->close();
  next_log.close();
}

}  // namespace
}  // namespace kv
