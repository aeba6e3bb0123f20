// A relocation that comes too late: its record is removed while the collector reads it. The copy is younger, by its segment's generation,
// than the tombstone's segment, and a start after a crash would believe it. One thread does all, the device calls it back.
#include <gtest/gtest.h>

#include "kv/testing/life.h"

namespace kv {
namespace {

class CollectorLateTest : public testing::Test {
 protected:
  Life life{empty_medium(test_identity(kSegments))};

  // It is removed while the collector reads it, which then moves it. Returns the tombstone.
  Extent remove_while_moved(const std::string& key) {
    const Extent value = life.put(key);
    life.seal();
    Extent tombstone;
    life.device->call_at_read(life.identity.geometry.offset_of(value.address), [&] {
      tombstone = life.remove(key, value.address);
      life.seal();
    });
    life.collect();
    return tombstone;
  }
};

TEST_F(CollectorLateTest, ItsTombstoneStaysUntilTheCopysSegmentIsSealed) {
  const Extent tombstone = remove_while_moved("key");
  ASSERT_EQ(life.state_of(tombstone), Segment::State::kSealed) << "in the middle of that";
  ASSERT_EQ(life.collector.counts().moved_records, 1u);
  // Nothing that is older than the tombstone's segment has a lower generation any more.
  life.collect();
  EXPECT_LE(life.state_of(tombstone), Segment::State::kReady);
  EXPECT_EQ(life.collector.counts().ended_tombstones, 0u);
  EXPECT_FALSE(life.is_there_again("key"));
  // The copy is void for good, and nothing is to be hidden.
  life.seal();
  life.collect();
  EXPECT_EQ(life.collector.counts().ended_tombstones, 1u);
  EXPECT_EQ(life.log.counts().tombstone_bytes, 0u);
  EXPECT_FALSE(life.is_there_again("key"));
}

// Up to where the copy's segment is sealed, which lists the copy as void, and the tombstone has ended. Another key keeps that segment.
class SealedCopyTest : public CollectorLateTest {
 protected:
  void SetUp() override {
    life.put("other");
    const Extent tombstone = remove_while_moved("key");
    life.seal();
    const Location other = life.index->find(hash_key(life.identity.secret, "other").low);
    copys = static_cast<uint32_t>(life.identity.geometry.segment_of(other.address));
    ASSERT_NE(copys, tombstone.segment);
    life.collect();
    ASSERT_EQ(life.collector.counts().ended_tombstones, 1u);
    ASSERT_LE(life.state_of(tombstone), Segment::State::kReady);
    ASSERT_FALSE(life.is_there_again("key"));
    ASSERT_EQ(life.empty_one(), 0);
    ASSERT_EQ(life.log.segment(copys).state.load(), Segment::State::kEmptied);
  }
  uint64_t header(size_t which) { return life.identity.geometry.header_offsets(copys)[which]; }

  uint32_t copys = 0;
};

// It is given back, and of its two headers only one is written when the power goes off.
TEST_F(SealedCopyTest, AHeaderThatIsThereCounts) {
  ASSERT_EQ(life.log.flush(life.channel), 0);
  const std::vector<std::byte> before = life.device->medium();
  ASSERT_EQ(life.log.give_back(life.channel), 0);
  const std::vector<std::byte> after = life.device->medium();
  for (const size_t which : {0, 1}) {
    std::vector<std::byte> cut = before;
    memcpy(&cut[header(which)], &after[header(which)], 512);
    const Life next(std::move(cut));
    EXPECT_FALSE(next.index->find(hash_key(life.identity.secret, "key").low).found) << which;
    EXPECT_TRUE(next.index->find(hash_key(life.identity.secret, "other").low).found) << which;
  }
}

// Of its places for headers one, or each, takes no writes: it is put off, and what is there says all the same that the copy does not count.
TEST_F(SealedCopyTest, APlaceThatTakesNoHeader) {
  for (const std::vector<uint64_t>& places :
       {std::vector{header(0)}, std::vector{header(1)}, std::vector{header(0), header(1)}}) {
    Life one(life.device->medium());
    ASSERT_EQ(one.log.segment(copys).state.load(), Segment::State::kSealed);
    one.device->refuse_writes(places);
    while (one.log.segment(copys).state.load() != Segment::State::kEmptied) ASSERT_EQ(one.empty_one(), 0);
    bool did = false;
    ASSERT_EQ(one.collector.step(did).error, 0);
    EXPECT_EQ(one.log.counts().put_off_segments, 1u);
    EXPECT_FALSE(one.is_there_again("key"));
    EXPECT_TRUE(one.is_there_again("other"));
    // With a header that says that nothing counts it does not keep tombstones from ending.
    EXPECT_EQ(one.log.segment(copys).is_void.load(), places.size() == 1);
  }
}

// The start that finds the copy's segment open seals it.
TEST_F(CollectorLateTest, TheCopyIsVoidAfterACrash) {
  remove_while_moved("key");
  Life next(life.device->medium());
  ASSERT_FALSE(next.is_there_again("key"));
  for (int i = 0; i < 4 && next.collector.counts().ended_tombstones == 0; ++i) next.collect();
  EXPECT_EQ(next.collector.counts().ended_tombstones, 1u);
  EXPECT_FALSE(next.is_there_again("key"));
}

// The copy may be on the medium all the same.
TEST_F(CollectorLateTest, AWriteOfCopiesThatFails) {
  const Extent value = life.put("key");
  life.seal();
  life.device->call_at_read(life.identity.geometry.offset_of(value.address), [&] {
    life.remove("key", value.address);
    life.seal();
    life.device->fail_next(storage::Operation::kWrite);
  });
  ASSERT_EQ(life.empty_one(), EIO);
  life.collect();
  life.collect();
  EXPECT_EQ(life.collector.counts().ended_tombstones, 0u);
  EXPECT_FALSE(life.is_there_again("key"));
}

// What was live in a victim may be on the medium nowhere else.
TEST_F(CollectorLateTest, NothingIsGivenBackAfterAFlushThatFailed) {
  life.put("key");
  life.seal();
  ASSERT_EQ(life.empty_one(), 0);
  ASSERT_EQ(life.log.counts().emptied_segments, 1u);
  life.device->fail_next(storage::Operation::kFlush);
  EXPECT_EQ(life.log.flush(life.channel), EIO);
  bool did = false;
  for (int i = 0; i < 3; ++i) {
    const Collector::Failure failure = life.collector.step(did);
    EXPECT_EQ(failure.error, EIO);
    EXPECT_TRUE(failure.is_of_flush);
  }
  EXPECT_EQ(life.log.counts().emptied_segments, 1u);
}

// For whatever reason.
TEST_F(CollectorLateTest, NothingIsGivenBackAfterAFailure) {
  life.put("key");
  life.seal();
  bool did = false;
  life.collector.wants_all(true);  // there would be more to do
  ASSERT_EQ(life.collector.step(did).error, 0);
  life.log.fail();
  EXPECT_EQ(life.collector.step(did).error, 0);
  EXPECT_FALSE(did);
  EXPECT_EQ(life.log.counts().emptied_segments, 1u);
}

}  // namespace
}  // namespace kv
