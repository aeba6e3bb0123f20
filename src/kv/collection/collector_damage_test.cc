// Victims of which something cannot be read: what they cost, and what is left for the collector.
#include "kv/testing/life.h"

namespace kv {
namespace {

// Nine of sixteen segments are full of records of one grain; of each some are removed, and a place in its second half cannot be read.
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
  // All that can be done is done.
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

}  // namespace
}  // namespace kv
