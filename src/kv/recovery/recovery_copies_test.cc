#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kv/media/checkpoint_format.h"
#include "kv/recovery/recovery.h"
#include "kv/testing/test_identity.h"
#include "storage/memory.h"

namespace kv {
namespace {

using State = Segment::State;

constexpr uint32_t kSegments = 8;
constexpr uint64_t kCheckpoint = 9;

struct Written {
  std::string key;
  uint64_t sequence;
  RecordKind kind = RecordKind::kValue;
};

// A medium as a process leaves it that was killed, and what a start makes of its segments.
class RecoveryCopiesTest : public testing::Test {
 protected:
  RecoveryCopiesTest() : device(*storage::make_memory_device(identity.geometry.capacity_bytes)) {
    auto* const memory = reinterpret_cast<std::byte*>(const_cast<char*>(device->whereabouts().memory));
    for (uint32_t i = 0; i < kSegments; ++i)
      free_segment(identity, i, 1, {memory, identity.geometry.capacity_bytes});
  }
  ~RecoveryCopiesTest() override {
    log.close();
    if (index != nullptr) index->close();
    device->close();
  }

  std::span<std::byte> grains(uint32_t segment, uint64_t first, uint64_t count) {
    auto* const memory = reinterpret_cast<std::byte*>(const_cast<char*>(device->whereabouts().memory));
    const Geometry& geometry = identity.geometry;
    return {memory + geometry.segment_offset(segment) + first * geometry.grain_bytes,
            count * geometry.grain_bytes};
  }
  // A segment with these records, each of a grain. Void ones are in its summary only.
  void write(uint32_t segment, uint64_t generation, const std::vector<Written>& records, bool is_sealed) {
    const SegmentHeader header = {.generation = generation, .state = SegmentState::kUsed};
    write_segment_header(identity, header, grains(segment, 0, 1));
    std::vector<SummaryEntry> entries;
    for (const Written& written : records) {
      const auto grain = static_cast<uint32_t>(entries.size() + 1);
      const uint64_t sequence_and_kind = with_kind(written.sequence, written.kind);
      entries.push_back({hash_key(identity.secret, written.key), sequence_and_kind, grain, 1});
      if (written.kind != RecordKind::kVoid)
        write_record(identity.secret,
                     {.generation = generation, .sequence_and_kind = sequence_and_kind, .expiry_and_key = 0},
                     written.key, 0, grains(segment, grain, 1));
    }
    if (!is_sealed) return;
    SegmentFooter footer = {.generation = generation, .sealed_generation = generation};
    footer.used_grains = static_cast<uint32_t>(entries.size() + 1);
    describe(entries, footer);
    const uint32_t count = summary_grains(identity.geometry, entries.size());
    const auto summary = grains(segment, identity.geometry.segment_grains() - count, count);
    memcpy(summary.data(), entries.data(), entries.size() * sizeof(SummaryEntry));
    write_summary(identity, footer, summary);
  }
  void sealed(uint32_t segment, uint64_t generation, const std::vector<Written>& records) {
    write(segment, generation, records, true);
  }
  void open(uint32_t segment, uint64_t generation, const std::vector<Written>& records) {
    write(segment, generation, records, false);
  }
  // A checkpoint that knows this key's record in segment 1, of before segments of higher generations.
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
  // A checkpoint, and what it knows and does not know, in all segments but so many.
  void fill_but(uint32_t free) {
    sealed(1, 5, {{"a", 1}});
    write_checkpoint(0, 6, "a");
    for (uint32_t i = 2; i < kSegments - free; ++i) sealed(i, 5 + i, {{"key" + std::to_string(i), i}});
  }
  RecoveryReport start() {
    EXPECT_TRUE(log.open(identity, 1));
    const auto recovered = recover(*device, identity, log, index);
    EXPECT_TRUE(recovered) << recovered.error().message;
    return recovered ? recovered->report : RecoveryReport{};
  }
  State state_of(uint32_t segment) { return log.segment(segment).state.load(); }
  // Where the only record is that the index has for the key; kSegments: there is none.
  uint64_t segment_of(const std::string& key) {
    const Location found = index->find(hash_key(identity.secret, key).low);
    return found.found ? identity.geometry.segment_of(found.address) : kSegments;
  }

  Identity identity = test_identity(kSegments);
  storage::Device* device;
  Log log;
  Index* index = nullptr;
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

// Pieces of one value have one sequence.
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

// It was a value, and has expired.
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
