#include "kv/collection/checkpoint.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "kv/testing/life.h"
#include "kv/testing/store_image.h"
#include "kv/testing/test_effort.h"
#include "kv/testing/test_identity.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

using Texts = std::map<std::string, std::string>;

class CheckpointTest : public testing::Test, protected StoreInUse {
 protected:
  ~CheckpointTest() override { device->close(); }
  void SetUp() override { ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20})); }

  void open(uint64_t checkpoint_records) {
    StoreInUse::open(
        *device,
        {.durability = Durability::kNone, .stream_count = 2, .checkpoint_records = checkpoint_records});
  }
  // Restarts on the medium as it would be if power failed now: with this percentage of what was not flushed.
  void cut(unsigned kept_percent) {
    auto* const next = new storage::CutDevice(device->medium(1, kept_percent), 0);
    close();
    device->close();
    device = next;
  }
  void work(uint64_t seed, int changes, int keys, Texts& expected) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < changes; ++i) {
      const std::string key = "key" + std::to_string(random() % static_cast<uint64_t>(keys));
      if (random() % 4 == 0) {
        ASSERT_TRUE(session.remove(key));
        expected.erase(key);
        continue;
      }
      std::string value((random() % 300 == 0 ? 300'000 : 0) + random() % 2000,
                        static_cast<char>('a' + i % 26));
      value += "#" + std::to_string(i);
      auto done = session.put(key, bytes_of(value));
      ASSERT_TRUE(done) << done.error().message;
      expected[key] = value;
    }
  }
  void expect_all(const Texts& expected, int keys) {
    for (int i = 0; i < keys; ++i) {
      const std::string key = "key" + std::to_string(i);
      auto found = session.get(key);
      ASSERT_TRUE(found) << key << ": " << found.error().message;
      ASSERT_EQ(found->found(), expected.contains(key)) << key;
      if (found->found()) ASSERT_TRUE(whole_value(session, *found) == expected.at(key)) << key;
    }
  }
  // Makes the segments of checkpoints free, as if no checkpoint had been taken.
  void forget_checkpoints() {
    std::vector<std::byte> medium = device->medium(1, 100);
    const Identity identity = *read_superblock(Bytes(medium).first(kSuperblockBytes), medium.size());
    for (uint64_t segment = 0; segment < identity.geometry.segment_count; ++segment) {
      SegmentHeader header;
      memcpy(&header, &medium[identity.geometry.segment_offset(segment)], sizeof header);
      if (header.state != SegmentState::kCheckpoint) continue;
      free_segment(identity, segment, header.generation, medium);
    }
    device->close();
    device = new storage::CutDevice(std::move(medium), 0);
  }
  uint64_t live_bytes() {
    store->compact();
    return store->counts().log.live_bytes - store->counts().log.tombstone_bytes;
  }

  storage::CutDevice* device = new storage::CutDevice(std::vector<std::byte>(49 << 20), 0);
};

TEST_F(CheckpointTest, AStartAfterAGoodEndReplaysNothing) {
  Texts expected;
  open(1'000'000);
  work(1, 8000, 3000, expected);
  close();
  open(1'000'000);
  EXPECT_NE(store->recovery().checkpoint, 0u);
  EXPECT_EQ(store->recovery().replayed_records, 0u);
  EXPECT_LT(store->recovery().read_bytes, 700'000u);
  expect_all(expected, 3000);
  const uint64_t live = live_bytes();
  close();
  open(1'000'000);
  EXPECT_EQ(live_bytes(), live);
  store->verify();
  close();
}

TEST_F(CheckpointTest, AStartAfterACutReplaysWhatIsNewer) {
  Texts expected;
  open(2000);
  for (int turn = 0; turn < 6; ++turn) {
    work(static_cast<uint64_t>(turn), 5000, 2000, expected);
    // The collector takes it when it gets a CPU.
    for (int i = 0; i < 30'000 && store->counts().collected.checkpoints == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GT(store->counts().collected.checkpoints, 0u);
    cut(100);
    open(2000);
    EXPECT_NE(store->recovery().checkpoint, 0u);
    EXPECT_GT(store->recovery().replayed_records, 0u);
    EXPECT_LT(store->recovery().replayed_records, store->recovery().records);
    expect_all(expected, 2000);
    // Recovery from checkpoint and log gives the same as from the log alone.
    const uint64_t entries = store->counts().index.entries, live = live_bytes();
    close();
    forget_checkpoints();
    open(2000);
    EXPECT_EQ(store->recovery().checkpoint, 0u);
    EXPECT_EQ(store->counts().index.entries, entries);
    EXPECT_EQ(live_bytes(), live);
    expect_all(expected, 2000);
  }
  store->verify();
  close();
}

// Records that the collector moves after a checkpoint have sequences from before it, and are in segments that the checkpoint knew.
TEST_F(CheckpointTest, WhatIsMovedSinceIsFound) {
  Texts expected;
  open(3000);
  for (uint64_t turn = 0; turn < 4; ++turn) {
    SCOPED_TRACE(turn);
    // The collector's segment is in use when a checkpoint is due.
    work(2 * turn, 4000, 2000, expected);
    store->compact();
    EXPECT_GT(store->counts().collected.checkpoints, 0u);
    work(2 * turn + 1, 700, 2000, expected);
    const uint64_t moved = store->counts().collected.moved_records;
    store->compact();
    EXPECT_GT(store->counts().collected.moved_records, moved);
    cut(100);
    open(3000);
    EXPECT_NE(store->recovery().checkpoint, 0u);
    expect_all(expected, 2000);
  }
  close();
}

TEST_F(CheckpointTest, ADamagedOneIsNotUsed) {
  Texts expected;
  open(1'000'000);
  work(1, 3000, 1000, expected);
  close();
  std::vector<std::byte> good = device->medium(1, 100);
  uint64_t segment = 0, damaged = 0;
  for (uint64_t at = kSegmentsOffset; at < good.size(); at += 1 << 20) {
    SegmentHeader header;
    memcpy(&header, &good[at], sizeof header);
    if (header.state == SegmentState::kCheckpoint) segment = at;
  }
  ASSERT_NE(segment, 0u);
  std::mt19937_64 random(5);
  const uint64_t count = 60 / kEffortParts;
  for (uint64_t i = 0; i < count; ++i) {
    std::vector<std::byte> medium = good;
    // A byte of its tables or its end, which take this much here.
    medium[segment + 512 + random() % 14'000] ^= static_cast<std::byte>(1 << random() % 8);
    device->close();
    device = new storage::CutDevice(std::move(medium), 0);
    open(1'000'000);
    damaged += store->recovery().checkpoint == 0;
    expect_all(expected, 1000);
    close();
  }
  EXPECT_GT(2 * damaged, count) << "but for bytes of zeros that fill up pieces";
}

// Pieces in segments that the checkpoint knows lose their head by a record in a segment that is replayed.
TEST_F(CheckpointTest, PiecesOfItEndWithTheirHeads) {
  const std::string large(3'000'000, 'l');
  open(1'000'000);
  const uint64_t empty = live_bytes();
  for (const char* key : {"replaced", "removed", "kept"}) ASSERT_TRUE(session.put(key, bytes_of(large)));
  close();
  open(1'000'000);
  ASSERT_NE(store->recovery().checkpoint, 0u);
  ASSERT_TRUE(session.put("replaced", bytes_of("small")));
  ASSERT_TRUE(session.remove("removed"));
  cut(100);
  open(1'000'000);
  EXPECT_NE(store->recovery().checkpoint, 0u);
  EXPECT_GT(store->recovery().headless_pieces, 20u);
  auto found = session.get("kept");
  ASSERT_TRUE(found && found->found());
  EXPECT_TRUE(whole_value(session, *found) == large);
  ASSERT_TRUE(session.remove("kept"));
  ASSERT_TRUE(session.remove("replaced"));
  found = Found();
  EXPECT_EQ(live_bytes(), empty);
  close();
}

// No segment has the head any more, and what replaced it does not say that it replaced a head.
TEST_F(CheckpointTest, PiecesOfItEndThoughTheirHeadIsGivenBack) {
  open(1'000'000);
  for (int i = 0; i < 300; ++i)  // these keep a piece's segment from being collected
    ASSERT_TRUE(session.put("small" + std::to_string(i), bytes_of(std::string(1500, 's'))));
  ASSERT_TRUE(session.put("key", bytes_of(std::string(3'000'000, 'l'))));
  close();
  open(1'000'000);
  ASSERT_NE(store->recovery().checkpoint, 0u);
  ASSERT_TRUE(session.put("key", bytes_of("value")));
  const auto has_head = [&] {
    bool found = false;
    StoreImage(device->medium(1, 100)).for_each_record([&](const StoreImage::Place& place) {
      found = found || place.record.header.kind() == RecordKind::kHead;
    });
    return found;
  };
  for (int i = 0; has_head(); ++i) {
    ASSERT_LT(i, 25);
    for (int k = 0; k < 800; ++k)
      ASSERT_TRUE(session.put("other" + std::to_string(k), bytes_of(std::string(3000, 'o'))));
  }
  cut(100);
  open(1'000'000);
  EXPECT_NE(store->recovery().checkpoint, 0u);
  EXPECT_GT(store->recovery().headless_pieces, 0u);
  EXPECT_EQ(text_of(session.get("key")->value()), "value");
  close();
}

// A piece is damaged in a segment that was open when the checkpoint began, and nothing lists it. It must end with its value: otherwise the segment
// would stay for good, and the store would fill up with tombstones.
TEST_F(CheckpointTest, ADamagedPieceOfAnOpenSegmentEndsWithItsHead) {
  open(100);
  ASSERT_TRUE(session.put("large", bytes_of(std::string(700'000, 'l'))));
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(session.put("other", bytes_of("value")));
  ASSERT_TRUE(store->compact());  // which takes a checkpoint, if one is due
  ASSERT_GT(store->counts().collected.checkpoints, 0u);
  const StoreImage good(device->medium(1, 100));
  close();
  std::optional<StoreImage::Place> piece;
  good.for_each_record([&](const StoreImage::Place& place) {
    if (place.record.header.kind() == RecordKind::kPiece) piece = place;
  });
  ASSERT_TRUE(piece && !good.summary_of(piece->segment));
  // Damages the header, which says what the record is, or what follows. Once the value is removed, the process is killed, or closes the store.
  for (const size_t at : {offsetof(RecordHeader, generation), size_t{5000}})
    for (const bool is_killed : {false, true}) {
      SCOPED_TRACE(testing::Message() << "byte " << at << (is_killed ? ", killed" : ""));
      StoreImage damaged = good;
      damaged.flip(piece->offset + at);
      device->close();
      device = new storage::CutDevice(std::move(damaged.bytes), 0);
      open(1'000'000);
      ASSERT_NE(store->recovery().checkpoint, 0u);
      ASSERT_TRUE(session.remove("large"));
      if (is_killed)
        cut(100);
      else
        close();
      for (int start = 0; start < 2; ++start) {
        open(1'000'000);
        EXPECT_EQ(store->counts().index.entries, 1u);
        close();
      }
      open(1'000'000);
      EXPECT_EQ(store->recovery().scanned_segments, 0u) << "all have summaries";
      EXPECT_EQ(text_of(session.get("other")->value()), "value");
      store->verify();
      close();
    }
}

// With a checkpoint, a start reads a summary only when it needs it; until then the log relies on the segment's footer. Here the summary is damaged,
// and the tombstone that it lists as void, since its write had failed, is on the medium.
TEST(LateSummaryTest, ATombstoneThatWasVoidCounts) {
  Life life{empty_medium(test_identity(kSegments))};
  const Extent old = life.put("key");
  life.log.finish(life.write("other", RecordKind::kTombstone), false);
  life.seal();
  Checkpointer checkpointer;
  checkpointer.open(life.identity, *life.index, life.log, life.changes, life.large_values, 0, {});
  ASSERT_EQ(checkpointer.take(life.channel), Checkpointer::Taken::kDone);
  // This record is replayed, so that what the checkpoint knows about the key is looked up.
  const Extent next = life.write("key", RecordKind::kValue);
  ASSERT_TRUE(life.index->replace(hash_key(life.identity.secret, "key").low, old.address, next.address,
                                  size_code::of(1)));
  life.log.release(old.address, size_code::of(1));
  life.log.finish(next, true);
  std::vector<std::byte> medium = life.device->medium();
  medium[life.identity.geometry.header_offsets(old.segment)[1] + 3] ^= std::byte{1};

  Life start(std::move(medium));
  EXPECT_EQ(start.log.segment(old.segment).live_grains.load(), 1u);
  for (int i = 0; i < 4 && start.state_of(old) > Segment::State::kReady; ++i)
    ASSERT_NO_FATAL_FAILURE(start.collect());
  EXPECT_LE(start.state_of(old), Segment::State::kReady);
  EXPECT_EQ(start.log.segment(old.segment).live_grains.load(), 0u) << "for who has the segment next";
}

// A damaged record is in a segment that was open when the checkpoint began, and still when the process ended. A summary made now would not list it.
TEST(OpenSegmentTest, ADamagedRecordThatACheckpointKnowsKeepsIt) {
  for (const bool is_alone : {false, true}) {
    SCOPED_TRACE(is_alone);
    Life life{empty_medium(test_identity(kSegments))};
    const Extent record = life.put("key");
    if (!is_alone) life.put("other");
    Checkpointer checkpointer;
    checkpointer.open(life.identity, *life.index, life.log, life.changes, life.large_values, 0, {});
    ASSERT_EQ(checkpointer.take(life.channel), Checkpointer::Taken::kDone);
    std::vector<std::byte> medium = life.device->medium();
    medium[life.identity.geometry.offset_of(record.address) + 20] ^= std::byte{1};

    Life start(std::move(medium));
    for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(start.collect());
    const uint64_t hash = hash_key(start.identity.secret, "key").low;
    EXPECT_EQ(start.state_of(record), Segment::State::kSealed);
    EXPECT_EQ(start.index->find(hash).address, record.address);
    EXPECT_EQ(start.is_there_again("other"), !is_alone);
    // Once the key has another record, the next start seals the segment, which is then collected.
    const Extent next = start.write("key", RecordKind::kValue);
    ASSERT_TRUE(start.index->replace(hash, record.address, next.address, size_code::of(1)));
    start.log.release(record.address, size_code::of(1));
    start.log.finish(next, true);

    Life last(start.device->medium());
    for (int i = 0; i < 4 && last.state_of(record) > Segment::State::kReady; ++i)
      ASSERT_NO_FATAL_FAILURE(last.collect());
    EXPECT_LE(last.state_of(record), Segment::State::kReady);
    EXPECT_TRUE(last.index->find(hash).found);
    EXPECT_EQ(last.is_there_again("other"), !is_alone);
  }
}

}  // namespace
}  // namespace kv
