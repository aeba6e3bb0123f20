// A relocation that comes too late: its record is removed while the collector reads it. By its segment's generation the copy is younger than
// the tombstone, and a start after a crash might believe it. There is one thread: the removal is a call from the device.
#include <gtest/gtest.h>

#include "kv/testing/life.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

class CollectorLateTest : public testing::Test {
 protected:
  explicit CollectorLateTest(uint32_t grain_bytes = 512) : identity(identity_of(grain_bytes)) {}
  static Identity identity_of(uint32_t grain_bytes) {
    Identity identity = test_identity(kSegments);
    identity.geometry.grain_bytes = grain_bytes;
    return identity;
  }

  const Identity identity;
  Life life{empty_medium(identity), identity};

  // Puts the key, and removes it while the collector reads its record, which is then moved. Returns the tombstone.
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
  // No segment with a lower generation than the tombstone's is left.
  life.collect();
  EXPECT_LE(life.state_of(tombstone), Segment::State::kReady);
  EXPECT_EQ(life.collector.counts().ended_tombstones, 0u);
  EXPECT_FALSE(life.is_there_again("key"));
  // Now the copy is void for good, and nothing is left to hide.
  life.seal();
  life.collect();
  EXPECT_EQ(life.collector.counts().ended_tombstones, 1u);
  EXPECT_EQ(life.log.counts().tombstone_bytes, 0u);
  EXPECT_FALSE(life.is_there_again("key"));
}

// The copy's segment is sealed, its summary lists the copy as void, and the tombstone has ended. Then the segment, which another key had kept in
// use, is emptied.
class SealedCopyTest : public CollectorLateTest {
 protected:
  using CollectorLateTest::CollectorLateTest;
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
    ASSERT_EQ(life.log.flush(life.channel), 0);
    ASSERT_EQ(life.log.segment(copys).state.load(), Segment::State::kEmptied);
  }
  uint64_t header(size_t which) { return life.identity.geometry.header_offsets(copys)[which]; }

  uint32_t copys = 0;
};

// Power fails while the segment is given back, when only one of its two headers is written.
TEST_F(SealedCopyTest, AHeaderThatIsThereCounts) {
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

// The summary that lists the copy as void cannot be read a few times, and then can.
TEST_F(SealedCopyTest, ASummaryThatIsNotReadOnce) {
  for (const uint64_t reads : {1, 2, 3}) {
    auto* const device = new storage::CutDevice(life.device->medium(), ~uint64_t{0});
    device->fail_reads(header(1), identity.geometry.grain_bytes, reads);
    for (int lives = 0; lives < 2; ++lives) {
      Log log;
      ASSERT_TRUE(log.open(identity, 1));
      Index* index = nullptr;
      auto recovered = recover(*device, identity, log, index);
      ASSERT_TRUE(recovered);
      // A start that has not read everything says so.
      EXPECT_TRUE(!index->find(hash_key(identity.secret, "key").low).found ||
                  (lives == 0 && !recovered->report.has_read_all()))
          << reads << " " << lives;
      EXPECT_TRUE(index->find(hash_key(identity.secret, "other").low).found) << reads;
      index->close();
      log.close();
    }
    device->close();
  }
}

// Writes are torn: with grains of 4 KiB, any sector of one may reach the medium alone. The last grain has the header at one end, and the
// footer at the other.
class TornCopyTest : public SealedCopyTest {
 protected:
  TornCopyTest() : SealedCopyTest(4096) {}
  void expect_void(std::vector<std::byte> medium) {
    const Life next(std::move(medium), identity);
    EXPECT_FALSE(next.index->find(hash_key(identity.secret, "key").low).found);
    EXPECT_TRUE(next.index->find(hash_key(identity.secret, "other").low).found);
  }
};

TEST_F(TornCopyTest, IsGivenBackInTwoSteps) {
  std::vector<std::byte> before = life.device->medium();
  std::vector<std::vector<std::byte>> steps;
  life.device->call_at_flush([&] { steps.push_back(life.device->medium()); });
  ASSERT_EQ(life.log.give_back(life.channel), 0);
  ASSERT_EQ(steps.size(), 2u);
  for (const std::vector<std::byte>& after : steps) {
    for (const size_t which : {0, 1}) {
      for (size_t sector = 0; sector < 8; ++sector) {
        SCOPED_TRACE(sector);
        std::vector<std::byte> cut = before;
        const uint64_t at = header(which) + sector * 512;
        memcpy(&cut[at], &after[at], 512);
        expect_void(std::move(cut));
      }
    }
    before = after;
  }
}

// The first place accepts no header, and of the last grain only the header is written.
TEST_F(TornCopyTest, AHeaderBesideAFooterCounts) {
  std::vector<std::byte> cut = life.device->medium();
  life.device->refuse_writes({header(0)});
  ASSERT_EQ(life.log.give_back(life.channel), 0);
  const std::vector<std::byte> after = life.device->medium();
  memcpy(&cut[header(1)], &after[header(1)], 512);
  expect_void(std::move(cut));
}

// One or both of the places for headers accept no writes: the segment is put off, and what is on the medium still says that the copy does not count.
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
    // With one header that says that nothing counts, the segment does not keep tombstones from ending.
    EXPECT_EQ(one.log.segment(copys).is_void.load(), places.size() == 1);
  }
}

// A start that finds the copy's segment open seals it.
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

// What was live in a victim may not be durable anywhere else.
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

// Whatever the failure is.
TEST_F(CollectorLateTest, NothingIsGivenBackAfterAFailure) {
  life.put("key");
  life.seal();
  bool did = false;
  const Collector::AllWanted all(life.collector);  // there would be more to do
  ASSERT_EQ(life.collector.step(did).error, 0);
  life.log.fail();
  EXPECT_EQ(life.collector.step(did).error, 0);
  EXPECT_FALSE(did);
  EXPECT_EQ(life.log.counts().emptied_segments, 1u);
}

}  // namespace
}  // namespace kv
