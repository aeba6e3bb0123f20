#include "kv/recovery/recovery_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "kv/testing/test_effort.h"
#include "kv/testing/test_identity.h"
#include "kv/testing/test_restore.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

constexpr uint64_t kNumber = 9;
constexpr uint32_t kGrainBytes = 512;
constexpr uint64_t kSegmentBytes = 8 << 20;
constexpr uint64_t kKeys = 1'300'000;

// A checkpoint of several segments, each of which is read in several steps.
class CheckpointReadTest : public testing::Test {
 protected:
  CheckpointReadTest() {
    identity.secret = test_secret();
    identity.store_id = 0x1122334455667788;
    identity.geometry = {.capacity_bytes = kSegmentsOffset + 8 * kSegmentBytes,
                         .grain_bytes = kGrainBytes,
                         .segment_bytes = kSegmentBytes,
                         .segment_count = 8,
                         .spare_percent = 10};
    medium.resize(identity.geometry.capacity_bytes);
    written = *Index::open(identity.geometry.address_bits());
  }
  ~CheckpointReadTest() override { written->close(); }

  static uint64_t hash_of(uint64_t key) { return std::mt19937_64(key)(); }
  uint64_t address_of(uint64_t key) const { return key % (8 * kSegmentBytes / kGrainBytes); }

  // Writes a checkpoint as Checkpointer does.
  void write(uint64_t keys) {
    for (uint64_t key = 0; key < keys; ++key)
      ASSERT_EQ(written->insert(hash_of(key), address_of(key), 1, {}), Index::Inserted::kDone);
    const auto image = std::make_unique<TableImage>();
    written->begin_images();
    for (uint32_t table = 0; table < written->table_count(); ++table)
      if (written->image(table, *image))
        add(write_piece(identity, kNumber, piece_count, table, *image, memory));
    written->end_images();
    add(write_piece(identity, kNumber, piece_count,
                    CheckpointState{.generation = 5, .next_sequence = 77, .entry_count = keys}, memory));
  }
  void add(size_t bytes) {
    ASSERT_GT(bytes, 0u);
    if (parts.empty() || at + bytes > kSegmentBytes - kGrainBytes) {
      parts.push_back(static_cast<uint32_t>(6 - 2 * parts.size()));
      at = kGrainBytes;
    }
    piece_at.push_back(identity.geometry.segment_offset(parts.back()) + at);
    memcpy(&medium[piece_at.back()], memory.data(), bytes);
    at += bytes;
    ++piece_count;
  }

  // 0, or an errno value. The index has been restored then.
  int read(unsigned thread_count) {
    auto* const device = new storage::CutDevice(medium, 0);
    Index* const index = *Index::open(identity.geometry.address_bits());
    CheckpointReader reader(identity, kNumber, parts, *index);
    std::atomic<int> error{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < thread_count; ++i)
      threads.emplace_back([&] {
        RecoveryReader own;
        EXPECT_TRUE(own.open(*device, identity));
        if (auto done = reader.run(own); !done) error = done.error().number;
      });
    for (std::thread& thread : threads) thread.join();
    if (error == 0) {
      const auto joined = finish_restore(*index, [](uint64_t, uint32_t) { return true; });
      error = joined ? 0 : joined.error().number;
    }
    if (error == 0) expect_all(*index, reader.state());
    index->close();
    device->close();
    return error;
  }
  void expect_all(const Index& index, const CheckpointState& state) {
    index.verify();
    EXPECT_EQ(state.generation, 5u);
    EXPECT_EQ(state.next_sequence, 77u);
    EXPECT_EQ(index.counts().entries, state.entry_count);
    for (uint64_t key = 0; key < state.entry_count; key += 97) {
      Location all[Index::kMaxCandidates];
      const size_t count = index.find_all(hash_of(key), all);
      EXPECT_TRUE(std::any_of(all, all + count, [&](const Location& one) {
        return one.address == address_of(key);
      })) << key;
    }
  }

  Identity identity;
  std::vector<std::byte> medium, memory = std::vector<std::byte>(kMaxPieceBytes + 4096);
  Index* written = nullptr;
  std::vector<uint32_t> parts;
  std::vector<uint64_t> piece_at;  // on the medium
  uint64_t at = 0;
  uint32_t piece_count = 0;
};

TEST_F(CheckpointReadTest, ByOneThreadAndBySeveral) {
  write(kKeys);
  ASSERT_GE(parts.size(), 2u);
  for (unsigned threads : {1u, 2u, 5u}) EXPECT_EQ(read(threads), 0) << threads;
}

TEST_F(CheckpointReadTest, OneWithoutKeys) {
  write(0);
  EXPECT_EQ(read(3), 0);
}

TEST_F(CheckpointReadTest, WhatIsMissingOrTwiceIsSeen) {
  write(kKeys);
  const std::vector<uint32_t> all = parts;
  parts.pop_back();
  EXPECT_EQ(read(2), EBADMSG) << "without its end";
  parts = {all.begin() + 1, all.end()};
  EXPECT_EQ(read(2), EBADMSG) << "without its beginning";
  parts = {all[1], all[0]};
  EXPECT_EQ(read(2), EBADMSG) << "in another order";
  parts = {all[0], all[0], all[1]};
  EXPECT_EQ(read(2), EBADMSG) << "a part twice";
}

TEST_F(CheckpointReadTest, DamageIsSeenWhereverItIs) {
  write(kKeys);
  std::mt19937_64 random(1);
  for (size_t piece = 0; piece < piece_at.size(); piece += kEffortParts + random() % 6) {
    // In its header, or in its body; the last piece's is shorter.
    PieceHeader header;
    memcpy(&header, &medium[piece_at[piece]], sizeof header);
    const size_t most = std::min<size_t>(header.bytes - sizeof header, 2000);
    for (const uint64_t offset : {random() % sizeof header, sizeof header + random() % most}) {
      std::byte& byte = medium[piece_at[piece] + offset];
      byte ^= std::byte{4};
      EXPECT_EQ(read(2), EBADMSG) << "piece " << piece << ", byte " << offset;
      byte ^= std::byte{4};
    }
  }
  EXPECT_EQ(read(2), 0);
}

// Pieces with wrong numbers and right checks.
TEST_F(CheckpointReadTest, PiecesInAnotherOrderAreSeen) {
  write(100'000);
  ASSERT_GE(piece_at.size(), 4u);
  const auto image = std::make_unique<TableImage>();
  ASSERT_TRUE((written->begin_images(), written->image(1, *image)));
  written->end_images();
  const size_t bytes = write_piece(identity, kNumber, 2, 1, *image, memory);
  memcpy(&medium[piece_at[1]], memory.data(), bytes);
  EXPECT_EQ(read(2), EBADMSG);
}

}  // namespace
}  // namespace kv
