// Victims that cannot be read whole, and failures while the collector has little room: it keeps room to go on.
#include "kv/testing/life.h"

namespace kv {
namespace {

// Nine of sixteen segments are full of records of one grain, some of which are removed; a place in the second half of each cannot be read.
class CollectorDamageTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t i = 0; i < 9 * 2000; ++i) {
      addresses.push_back(life.put("key" + std::to_string(i)).address);
      if (i % 1000 == 0) life.keep();
    }
    life.seal();
    for (uint32_t i = 0; i < addresses.size(); i += 16) life.remove("key" + std::to_string(i), addresses[i]);
    life.seal();
  }
  // Collects until no more can be done.
  static void collect(Life& life) {
    for (int i = 0; i < 300; ++i) {
      static_cast<void>(life.empty_one());
      life.keep();
      ASSERT_GE(life.log.counts().free_segments + life.log.counts().emptied_segments, 1u) << i;
    }
  }

  Life life{empty_medium(test_identity(kSegments))};
  std::vector<uint64_t> addresses;
};

TEST_F(CollectorDamageTest, LeavesTheCollectorRoomToGoOn) {
  std::vector<std::byte> medium = life.device->medium();
  for (int lives = 0; lives < 4; ++lives) {
    Life damaged(std::move(medium));
    damaged.keep();
    damaged.device->fail_reads(&damaged.identity.geometry, 3 * damaged.identity.geometry.segment_bytes / 4);
    ASSERT_NO_FATAL_FAILURE(collect(damaged));
    EXPECT_GT(damaged.collector.counts().damaged_records, 0u);
    medium = damaged.device->medium();
  }
  Life good(std::move(medium));
  good.keep();
  ASSERT_NO_FATAL_FAILURE(collect(good));
  EXPECT_GT(good.collector.counts().victims, 5u);
  EXPECT_EQ(good.collector.counts().damaged_records, 0u);
  medium = good.device->medium();
  for (uint32_t i = 0; i < addresses.size(); ++i) {
    const std::string key = "key" + std::to_string(i);
    const Location at = good.index->find(hash_key(good.identity.secret, key).low);
    ASSERT_EQ(at.found, i % 16 != 0) << key;
    if (!at.found) continue;
    const Geometry& geometry = good.identity.geometry;
    const Segment& segment = good.log.segment(geometry.segment_of(at.address));
    Record record;
    ASSERT_EQ(read_record(good.identity.secret, segment.generation,
                          std::span(medium).subspan(geometry.offset_of(at.address), 512), record),
              Reading::kWhole);
    ASSERT_EQ(record.key, key);
  }
}

// Once clients have removed what could not be read, the rest of those segments is sound, and is collected.
TEST_F(CollectorDamageTest, WhatWasLeftIsCollectedOnceItsDamageIsGone) {
  const Geometry& geometry = life.identity.geometry;
  std::vector<uint64_t> generations;
  for (uint32_t i = 0; i < kSegments; ++i) generations.push_back(life.log.segment(i).generation);
  life.device->fail_reads(&geometry, 3 * geometry.segment_bytes / 4);
  ASSERT_NO_FATAL_FAILURE(collect(life));
  // More than what was read in one piece.
  for (uint32_t i = 0; i < addresses.size(); ++i) {
    if (geometry.grain_of(addresses[i]) < 900) continue;
    const KeyHash hash = hash_key(life.identity.secret, "key" + std::to_string(i));
    const Location at = life.index->find(hash.low);
    if (!at.found) continue;
    ASSERT_TRUE(life.index->remove(hash.low, at.address));
    life.log.release(at.address, at.size);
  }
  ASSERT_NO_FATAL_FAILURE(collect(life));
  for (const uint64_t address : addresses) {
    const Segment& segment = life.log.segment(geometry.segment_of(address));
    ASSERT_FALSE(segment.generation == generations[geometry.segment_of(address)] &&
                 segment.state == Segment::State::kSealed);
  }
}

// A segment with one grain that cannot be read.
class UnreadableGrainTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t i = 0; i < 30; ++i) values.push_back(life.put("key" + std::to_string(i)));
    life.seal();
  }
  void make_unreadable(uint32_t key) {
    const Geometry& geometry = life.identity.geometry;
    life.device->fail_reads(&geometry,
                            geometry.grain_of(values[key].address) * uint64_t{geometry.grain_bytes});
  }
  Location find(uint32_t key) const {
    return life.index->find(hash_key(life.identity.secret, "key" + std::to_string(key)).low);
  }
  // Often enough, since the collector tries everything three times.
  void collect() {
    for (int i = 0; i < 10; ++i) {
      static_cast<void>(life.empty_one());
      life.keep();
    }
  }

  Life life{empty_medium(test_identity(kSegments))};
  std::vector<Extent> values;
};

// Dead records between live ones are read as well, as long as that works.
TEST_F(UnreadableGrainTest, OfARemovedRecordIsNoDamage) {
  life.remove("key7", values[7].address);
  make_unreadable(7);
  collect();
  EXPECT_EQ(life.collector.counts().damaged_records, 0u);
  EXPECT_NE(life.state_of(values[0]), Segment::State::kSealed);
  for (uint32_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(find(i).found, i != 7) << i;
    if (i != 7) EXPECT_NE(life.identity.geometry.segment_of(find(i).address), values[0].segment) << i;
  }
}

TEST_F(UnreadableGrainTest, OfARecordKeepsThatRecordAlone) {
  make_unreadable(7);
  collect();
  EXPECT_EQ(life.collector.counts().damaged_records, 1u);
  EXPECT_TRUE(life.log.segment(values[0].segment).is_damaged);
  EXPECT_EQ(life.log.segment(values[0].segment).live_grains.load(), 1u);
  for (uint32_t i = 0; i < values.size(); ++i) EXPECT_EQ(find(i).address == values[i].address, i == 7) << i;
}

// A store full of tombstones, whose collector has one segment left.
class LastSegmentTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t i = 0; i < 17'000; ++i) {
      addresses.push_back(life.put("key" + std::to_string(i)).address);
      if (i % 500 == 0) life.keep();
    }
    life.seal();
    for (uint32_t i = 1; i < addresses.size() && life.log.counts().free_segments > 1; ++i) {
      if (i % 20 == 0) continue;
      life.remove("key" + std::to_string(i), addresses[i]);
      if (i % 500 == 1) life.keep();
    }
    life.keep();
    ASSERT_EQ(life.log.counts().free_segments, 1u);
  }
  static void expect_goes_on(Life& life) {
    int error = 0;
    for (int i = 0; i < 200; ++i) {
      life.keep();
      error = life.empty_one();
    }
    EXPECT_EQ(error, 0);
    EXPECT_GT(life.log.counts().free_segments, 2u);
  }

  Life life{empty_medium(test_identity(kSegments))};
  std::vector<uint64_t> addresses;
};

// One of the collector's writes.
TEST_F(LastSegmentTest, AWriteThatFails) {
  life.device->call_at_read(life.identity.geometry.offset_of(addresses[0]),
                            [&] { life.device->fail_next(storage::Operation::kWrite); });
  EXPECT_EQ(life.empty_one(), EIO);
  expect_goes_on(life);
}

// Writes fail until the collector's last segment is full of copies that do not count.
TEST_F(LastSegmentTest, WritesThatFail) {
  int error = 0;
  for (int i = 0; error != ENOSPC; ++i) {
    ASSERT_LT(i, 100);
    life.device->fail_next(storage::Operation::kWrite);
    error = life.empty_one();
    ASSERT_NE(error, 0);
  }
  life.device->fail_next(std::nullopt);
  expect_goes_on(life);
}

// The first victim's header; and one of its records is removed while it is being moved.
TEST_F(LastSegmentTest, AHeaderThatIsRefused) {
  const Geometry& geometry = life.identity.geometry;
  life.device->refuse_writes({geometry.header_offsets(geometry.segment_of(addresses[0]))[0]});
  const Extent tombstone = life.write("key0", RecordKind::kTombstone);
  life.device->call_at_read(geometry.offset_of(addresses[0]), [&] {
    EXPECT_TRUE(life.index->remove(hash_key(life.identity.secret, "key0").low, addresses[0]));
    life.log.release(addresses[0], size_code::of(1));
    life.log.finish(tombstone, true);
  });
  expect_goes_on(life);
}

}  // namespace
}  // namespace kv
