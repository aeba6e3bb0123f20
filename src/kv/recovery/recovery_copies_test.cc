#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kv/media/checkpoint_format.h"
#include "kv/testing/written_medium.h"

namespace kv {
namespace {

using State = Segment::State;

constexpr uint32_t kSegments = 8;
constexpr uint64_t kCheckpoint = 9;

class RecoveryCopiesTest : public testing::Test, protected WrittenMedium {
 protected:
  RecoveryCopiesTest() : WrittenMedium(kSegments) {}

  // Writes a checkpoint that knows this key's record in segment 1, from before there were segments of higher generations.
  void write_checkpoint(uint32_t segment, uint64_t generation, const std::string& key) {
    const SegmentHeader header = {.generation = generation,
                                  .state = SegmentState::kCheckpoint,
                                  .opened_sequence = 1,
                                  .checkpoint = kCheckpoint};
    write_segment_header(identity, header, grains(segment, 0, 1));
    Index* const known = *Index::open(identity.geometry.address_bits());
    ASSERT_EQ(known->insert(hash_key(identity.secret, key).low, identity.geometry.address(1, 1), 1, {}),
              Index::Inserted::kDone);
    const auto image = std::make_unique<TableImage>();
    known->begin_images();
    ASSERT_TRUE(known->image(0, *image));
    known->end_images();
    known->close();
    const uint64_t all = identity.geometry.segment_grains();
    const size_t bytes = write_piece(identity, kCheckpoint, 0, 0, *image, grains(segment, 1, all - 1));
    ASSERT_GT(bytes, 0u);
    const uint64_t next = 1 + identity.geometry.grains(bytes);
    const CheckpointState state = {.generation = generation, .next_sequence = 2, .entry_count = 1};
    ASSERT_GT(write_piece(identity, kCheckpoint, 1, state, grains(segment, next, all - next)), 0u);
  }
  // Fills all segments but `free` with a checkpoint, what it knows, and what it does not know.
  void fill_but(uint32_t free) {
    sealed(1, 5, {{"a", 1}});
    write_checkpoint(0, 6, "a");
    for (uint32_t i = 2; i < kSegments - free; ++i) sealed(i, 5 + i, {{"key" + std::to_string(i), i}});
  }
};

TEST_F(RecoveryCopiesTest, AnOpenSegmentOfCopiesIsGivenBack) {
  sealed(1, 5, {{"a", 1}, {"b", 2}, {"c", 3}});
  sealed(2, 6, {{"d", 4}, {"e", 5}});
  open(3, 7, {{"b", 2}, {"d", 4}});
  start();
  EXPECT_EQ(state_of(3), State::kEmptied);
  EXPECT_EQ(segment_of("b"), 1u);
  EXPECT_EQ(segment_of("d"), 2u);
  EXPECT_EQ(log.segment(3).live_grains.load(), 0u);
}

TEST_F(RecoveryCopiesTest, OneRecordThatIsOnlyThereKeepsIt) {
  sealed(1, 5, {{"a", 1}, {"b", 2}, {"c", 9}});
  open(3, 7, {{"a", 1}, {"d", 4}, {"b", 2}});
  start();
  EXPECT_EQ(state_of(3), State::kSealed);
  EXPECT_EQ(segment_of("d"), 3u);
}

// Pieces of one value share a sequence.
TEST_F(RecoveryCopiesTest, TheSameSequenceIsNotEnough) {
  sealed(1, 5, {{"a", 4}, {"b", 5}});
  open(3, 7, {{"d", 4}});
  start();
  EXPECT_EQ(state_of(3), State::kSealed);
  EXPECT_EQ(segment_of("d"), 3u);
}

TEST_F(RecoveryCopiesTest, WhatWasNotWrittenIsNoCopy) {
  sealed(1, 5, {{"a", 4, RecordKind::kVoid}, {"b", 5}});
  open(3, 7, {{"a", 4}});
  start();
  EXPECT_EQ(state_of(3), State::kSealed);
  EXPECT_EQ(segment_of("a"), 3u);
}

// The tombstone was a value that has expired.
TEST_F(RecoveryCopiesTest, ATombstoneOfAValueIsACopy) {
  sealed(1, 5, {{"a", 4}, {"b", 5}});
  open(3, 7, {{"a", 4, RecordKind::kTombstone}});
  start();
  EXPECT_EQ(state_of(3), State::kEmptied);
  EXPECT_EQ(segment_of("a"), 1u);
}

TEST_F(RecoveryCopiesTest, OneOfTwoWithTheSameStays) {
  sealed(1, 5, {{"b", 5}});
  open(3, 7, {{"a", 4}});
  open(4, 8, {{"a", 4}});
  start();
  EXPECT_EQ(state_of(3), State::kSealed);
  EXPECT_EQ(state_of(4), State::kEmptied);
  EXPECT_EQ(segment_of("a"), 3u);
}

TEST_F(RecoveryCopiesTest, ACheckpointIsUsedWhileTheCollectorHasASegment) {
  fill_but(1);
  EXPECT_EQ(start().checkpoint, kCheckpoint);
  EXPECT_EQ(state_of(0), State::kCheckpoint);
  EXPECT_EQ(segment_of("a"), 1u);
  EXPECT_EQ(segment_of("key2"), 2u);
}

TEST_F(RecoveryCopiesTest, ACheckpointIsLeftForTheCollectorsSegment) {
  fill_but(0);
  const RecoveryReport report = start();
  EXPECT_EQ(report.checkpoint, 0u);
  EXPECT_EQ(report.replayed_records, kSegments - 1);
  EXPECT_EQ(state_of(0), State::kEmptied);
  EXPECT_EQ(segment_of("a"), 1u);
  EXPECT_EQ(segment_of("key2"), 2u);
  EXPECT_EQ(log.segment(1).live_grains.load(), 1u);
}

TEST_F(RecoveryCopiesTest, WhatIsNewerThanAllStays) {
  sealed(1, 5, {{"a", 4}});
  open(3, 7, {{"a", 4}, {"a", 5}});
  start();
  EXPECT_EQ(state_of(3), State::kSealed);
  EXPECT_EQ(segment_of("a"), 3u);
}

}  // namespace
}  // namespace kv
