#include "kv/media/checkpoint_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "kv/index/entry.h"
#include "kv/testing/test_format.h"
#include "kv/testing/test_identity.h"

namespace kv {
namespace {

class CheckpointFormatTest : public testing::Test {
 protected:
  CheckpointFormatTest() : image(new TableImage{}), read_back(new TableImage{}) {
    identity = test_identity(64);
    image->shape = {.prefix = 5, .depths = {3, 3, 4, 3, kAbsent, 3, 3, 3}};
  }
  // Random entries in this many slots, chosen at random.
  void fill(uint32_t count) {
    std::mt19937_64 random(count);
    std::ranges::fill(image->slots, 0);
    for (uint32_t i = 0; i < count; ++i) image->slots[i] = format.make(random(), random() % 131'072, 3);
    std::shuffle(image->slots, image->slots + kSlots, random);
  }
  std::vector<std::byte> written(uint32_t number = 7) {
    std::vector<std::byte> bytes(kMaxPieceBytes + 512, std::byte{0xee});
    bytes.resize(write_piece(identity, 99, number, 12, *image, bytes));
    return bytes;
  }
  bool read(Bytes bytes) {
    return read_piece_header(identity, bytes, header) && read_piece(identity, header, bytes, *read_back);
  }
  static CheckpointState state_of(uint32_t count) {
    CheckpointState state{
        .generation = 70, .next_sequence = 1'000'000, .entry_count = 5'000, .unsealed_count = count};
    for (uint32_t i = 0; i < count; ++i) state.unsealed[i] = i % 64;
    state.ready_count = count / 2;
    state.headless_count = 2;
    return state;
  }
  std::vector<std::byte> written(const CheckpointState& state) {
    std::vector<std::byte> bytes(4096, std::byte{0xee});
    bytes.resize(write_piece(identity, 99, 8, state, bytes));
    return bytes;
  }
  bool read(Bytes bytes, CheckpointState& state) {
    return read_piece_header(identity, bytes, header) && read_piece(identity, header, bytes, state);
  }

  Identity identity;
  const EntryFormat format{18};
  std::unique_ptr<TableImage> image, read_back;
  PieceHeader header;
};

TEST_F(CheckpointFormatTest, ATableIsReadAsItWasWritten) {
  for (uint32_t count : {0u, 1u, 63u, 1'000u, 30'000u, kSlots}) {
    fill(count);
    const auto bytes = written();
    EXPECT_EQ(bytes.size(), (80 + 4096 + 8 * count + 511) / 512 * 512) << "few keys take little room";
    EXPECT_EQ(bytes.size(), table_piece_bytes(identity.geometry, count));
    std::ranges::fill(read_back->slots, 1);
    ASSERT_TRUE(read(bytes)) << count;
    EXPECT_EQ(header.bytes, 80 + 4096 + 8 * count);
    EXPECT_EQ(header.checkpoint, 99u);
    EXPECT_EQ(header.number, 7u);
    EXPECT_EQ(header.table, 12u);
    EXPECT_EQ(header.count, count);
    EXPECT_TRUE(std::ranges::equal(image->slots, read_back->slots));
    EXPECT_EQ(read_back->shape.prefix, 5u);
    EXPECT_TRUE(std::ranges::equal(image->shape.depths, read_back->shape.depths));
    for (size_t i = header.bytes; i < bytes.size(); ++i)
      ASSERT_EQ(bytes[i], std::byte{0}) << "what was in memory is not written";
  }
}

TEST_F(CheckpointFormatTest, RecordsThatAreLongerThanAnyAreRefused) {
  const uint32_t most = size_code::of(identity.geometry.record_grains_max());
  for (const uint32_t size : {most, most + 1, 255u}) {
    fill(100);
    *std::ranges::find(image->slots, 0u) = format.make(1, 2, size);
    EXPECT_EQ(read(written()), size == most) << size;
  }
}

TEST_F(CheckpointFormatTest, EveryChangeOfATableIsSeen) {
  fill(100);
  expect_every_change_is_seen(written(), 80 + 4096 + 800, [&](const auto& bytes) { return read(bytes); });
}

TEST_F(CheckpointFormatTest, TheEndIsReadAsItWasWritten) {
  for (uint32_t count : {0u, 1u, 9u, 256u}) {
    const CheckpointState state = state_of(count);
    const auto bytes = written(state);
    EXPECT_EQ(bytes.size(), (112 + 4 * count + 511) / 512 * 512);
    CheckpointState got;
    ASSERT_TRUE(read(bytes, got));
    EXPECT_EQ(header.number, 8u);
    EXPECT_EQ(header.checkpoint, 99u);
    EXPECT_EQ(got.generation, 70u);
    EXPECT_EQ(got.next_sequence, 1'000'000u);
    EXPECT_EQ(got.entry_count, 5'000u);
    ASSERT_EQ(got.unsealed_count, count);
    EXPECT_TRUE(std::equal(got.unsealed, got.unsealed + count, state.unsealed));
    ASSERT_EQ(got.ready_count, count / 2);
    ASSERT_EQ(got.headless_count, 2u);
    EXPECT_FALSE(read(bytes)) << "is no table";
    expect_every_change_is_seen(bytes, 112 + 4 * count,
                                [&](const auto& changed) { return read(changed, got); });
  }
}

TEST_F(CheckpointFormatTest, WhatIsCutOffIsDamaged) {
  fill(1'000);
  const auto bytes = written();
  EXPECT_FALSE(read(Bytes(bytes).first(79)));
  ASSERT_TRUE(read_piece_header(identity, Bytes(bytes).first(512), header));
  EXPECT_FALSE(read(Bytes(bytes).first(header.bytes - 1)));
  EXPECT_TRUE(read(Bytes(bytes).first(header.bytes)));
  CheckpointState state;
  EXPECT_FALSE(read(bytes, state)) << "is no end";
}

TEST_F(CheckpointFormatTest, WhatDoesNotFitIsNotWritten) {
  fill(1'000);
  std::vector<std::byte> bytes(table_piece_bytes(identity.geometry, 1'000));
  EXPECT_EQ(write_piece(identity, 1, 0, 0, *image, bytes), bytes.size());
  EXPECT_EQ(write_piece(identity, 1, 0, 0, *image, std::span(bytes).first(bytes.size() - 1)), 0u);
  EXPECT_EQ(write_piece(identity, 1, 0, state_of(256), std::span(bytes).first(1'536)), 1'536u);
  EXPECT_EQ(write_piece(identity, 1, 0, state_of(256), std::span(bytes).first(1'535)), 0u);
}

TEST_F(CheckpointFormatTest, WhatCannotBeIsRefused) {
  fill(10);
  ASSERT_TRUE(read(written()));
  uint64_t& slot = *std::ranges::find_if(image->slots, [](uint64_t entry) { return entry != 0; });
  slot = format.make(1, 131'071, 3);
  EXPECT_TRUE(read(written()));
  slot = format.make(1, 131'072, 3);
  EXPECT_FALSE(read(written())) << "an address beyond the store";
  Identity other = identity;
  for (unsigned char& byte : other.secret.bytes) byte ^= 1;
  fill(10);
  const auto bytes = written();
  EXPECT_FALSE(read_piece_header(other, bytes, header));
  CheckpointState state = state_of(3), got;
  state.unsealed[2] = 64;
  EXPECT_FALSE(read(written(state), got)) << "a segment beyond the store";
}

// docs/formats/kv.md: what other programs may rely on.
TEST_F(CheckpointFormatTest, BytesAreWhereTheFormatSays) {
  std::ranges::fill(image->slots, 0);
  image->slots[9] = format.make(77, 4'000, 3);
  image->slots[32'767] = format.make(78, 4'001, 3);
  const auto bytes = written();
  EXPECT_EQ(memcmp(bytes.data(), "spkv ckp", 8), 0);
  EXPECT_EQ(number_at(bytes, 8, 8), identity.store_id);
  EXPECT_EQ(number_at(bytes, 16, 8), 99u);
  EXPECT_EQ(number_at(bytes, 24, 4), 7u);
  EXPECT_EQ(number_at(bytes, 28, 4), 1u);
  EXPECT_EQ(number_at(bytes, 32, 4), 12u);
  EXPECT_EQ(number_at(bytes, 36, 4), 2u);
  EXPECT_EQ(number_at(bytes, 40, 8), 5u);
  EXPECT_EQ(number_at(bytes, 48, 8), 0x0303037f03040303u);
  EXPECT_EQ(number_at(bytes, 56, 8), 80u + 4096 + 16);
  EXPECT_EQ(number_at(bytes, 80 + 1, 1), 2u) << "slot 9";
  EXPECT_EQ(number_at(bytes, 80 + 4095, 1), 0x80u) << "the last slot";
  EXPECT_EQ(number_at(bytes, 80 + 4096, 8), image->slots[9]);
  EXPECT_EQ(number_at(bytes, 80 + 4104, 8), image->slots[32'767]);
  const auto end = written(state_of(3));
  EXPECT_EQ(number_at(end, 28, 4), 2u);
  EXPECT_EQ(number_at(end, 36, 4), 3u);
  EXPECT_EQ(number_at(end, 56, 8), 124u);
  EXPECT_EQ(number_at(end, 80, 8), 70u);
  EXPECT_EQ(number_at(end, 88, 8), 1'000'000u);
  EXPECT_EQ(number_at(end, 96, 8), 5'000u);
  EXPECT_EQ(number_at(end, 104, 4), 2u);
  EXPECT_EQ(number_at(end, 108, 4), 1u);
  EXPECT_EQ(number_at(end, 112 + 4, 4), 1u);
}

}  // namespace
}  // namespace kv
