#include "kv/media/format.h"
#include "kv/testing/test_format.h"
#include "kv/testing/test_identity.h"

#define XXH_INLINE_ALL
#define XXH_VECTOR 0  // the reference is the portable form
#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>
#include <string>
#include <vector>

namespace kv {
namespace {

class FormatTest : public testing::Test {
 protected:
  FormatTest() { identity = test_identity(64); }
  std::vector<std::byte> superblock() const {
    std::vector<std::byte> bytes(kSuperblockBytes);
    write_superblock(identity, 99, bytes);
    return bytes;
  }

  Identity identity;
};

TEST_F(FormatTest, ASuperblockIsReadAsItWasWritten) {
  const auto read = read_superblock(superblock(), 65 << 20);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->store_id, identity.store_id);
  EXPECT_EQ(memcmp(&read->secret, &identity.secret, kSecretBytes), 0);
  EXPECT_EQ(read->geometry.segment_bytes, 1u << 20);
  EXPECT_EQ(read->geometry.segment_count, 64u);
  EXPECT_EQ(read->geometry.grain_bytes, 512u);
  EXPECT_EQ(read->geometry.spare_percent, 10u);
  EXPECT_EQ(read->geometry.address_bits(), 18u) << "131,072 grains; the index takes no less than 18";
}

TEST_F(FormatTest, ASuperblockSaysOnWhatStripeItWasMade) {
  EXPECT_EQ(read_superblock(superblock())->layout, storage::Layout());
  EXPECT_EQ(number_at(superblock(), 272, 8), 1u);
  identity.layout = {.member_count = 3, .unit_bytes = 65536};
  EXPECT_EQ(read_superblock(superblock())->layout, identity.layout);
  EXPECT_EQ(number_at(superblock(), 272, 8), 3u);
  EXPECT_EQ(number_at(superblock(), 280, 8), 65536u);
  EXPECT_EQ(number_at(superblock(), 288, 8), 0u);
  identity.layout = {.member_count = 0, .unit_bytes = 0};  // as in older stores
  EXPECT_EQ(read_superblock(superblock())->layout, storage::Layout());
  for (const storage::Layout& layout : {storage::Layout{1, 65536}, {0, 65536}, {2, 0}}) {
    identity.layout = layout;
    EXPECT_FALSE(read_superblock(superblock()));
  }
}

TEST_F(FormatTest, WhatIsNoSuperblockIsRefusedForItsReason) {
  const auto number_of = [](const std::vector<std::byte>& bytes, uint64_t device_bytes = 65 << 20) {
    const auto read = read_superblock(bytes, device_bytes);
    return read ? 0 : read.error().number;
  };
  EXPECT_EQ(number_of(superblock()), 0);
  EXPECT_EQ(number_of({}), EINVAL) << "nothing there";
  EXPECT_EQ(number_of(std::vector<std::byte>(kSuperblockBytes)), EINVAL) << "zeros";
  EXPECT_EQ(number_of(superblock(), 64 << 20), ENOSPC) << "the device has shrunk";
  auto other_order = superblock();
  std::reverse(other_order.begin() + 8, other_order.begin() + 12);
  EXPECT_EQ(number_of(other_order), EINVAL);
  EXPECT_NE(std::string(read_superblock(other_order, 65 << 20).error().message).find("byte order"),
            std::string::npos);
  expect_every_change_is_seen(superblock(), sizeof(Superblock),
                              [&](const auto& bytes) { return number_of(bytes) == 0; });
}

TEST_F(FormatTest, AHeaderIsOfItsStoreAndWhole) {
  std::vector<std::byte> bytes(512);
  write_segment_header(
      identity, {.generation = 5, .state = SegmentState::kUsed, .part = 2, .opened_sequence = 77}, bytes);
  SegmentHeader header;
  ASSERT_TRUE(read_segment_header(identity, bytes, header));
  EXPECT_EQ(header.generation, 5u);
  EXPECT_EQ(header.state, SegmentState::kUsed);
  EXPECT_EQ(header.part, 2u);
  EXPECT_EQ(header.opened_sequence, 77u);
  expect_every_change_is_seen(bytes, sizeof header, [&](const auto& changed) {
    return read_segment_header(identity, changed, header);
  });
  Identity other = identity;
  for (unsigned char& byte : other.secret.bytes) byte ^= 1;
  EXPECT_FALSE(read_segment_header(other, bytes, header));
  EXPECT_FALSE(read_segment_header(identity, Bytes(bytes).first(63), header));
}

TEST_F(FormatTest, AHeadThatNoStoreHasWrittenIsRefused) {
  const uint32_t most = static_cast<uint32_t>(identity.geometry.value_bytes_max());
  const auto is_possible = [&](uint64_t value_bytes, uint32_t piece_bytes) {
    return PiecesOf{.sequence = 1, .value_bytes = value_bytes, .piece_bytes = piece_bytes}.is_possible(
        identity.geometry);
  };
  EXPECT_TRUE(is_possible(kMaxValueBytes, most));
  EXPECT_FALSE(is_possible(kMaxValueBytes, most + 1));
  EXPECT_FALSE(is_possible(kMaxValueBytes + 1, most));
  EXPECT_FALSE(is_possible(0, most));
  EXPECT_FALSE(is_possible(1000, 0));
  const uint64_t grains = identity.geometry.segment_count * identity.geometry.segment_grains();
  EXPECT_TRUE(is_possible(grains, 1));
  EXPECT_FALSE(is_possible(grains + 1, 1)) << "more pieces than grains";
}

class SummaryTest : public FormatTest {
 protected:
  std::vector<std::byte> summary(const std::vector<SummaryEntry>& entries, uint32_t used_grains) const {
    std::vector<std::byte> bytes(summary_grains(identity.geometry, entries.size()) * 512);
    memcpy(bytes.data(), entries.data(), entries.size() * sizeof(SummaryEntry));
    write_summary(
        identity,
        {.generation = 5, .entry_count = static_cast<uint32_t>(entries.size()), .used_grains = used_grains},
        bytes);
    return bytes;
  }
  // How many entries are read back.
  size_t read(const std::vector<std::byte>& bytes, uint64_t generation = 5) const {
    SegmentFooter footer;
    if (!read_footer(identity, generation, Bytes(bytes).last(512), footer)) return 0;
    return read_summary(identity, footer, bytes).size();
  }
  static SummaryEntry entry(uint32_t grain, uint32_t grains) {
    return {.hash = {grain, grains},
            .sequence_and_kind = with_kind(grain, RecordKind::kValue),
            .grain = grain,
            .grains = grains};
  }
};

TEST_F(SummaryTest, ASummaryIsReadAsItWasWritten) {
  std::vector<SummaryEntry> entries;
  for (uint32_t i = 0; i < 40; ++i) entries.push_back(entry(1 + 3 * i, 1 + i % 3));
  const auto bytes = summary(entries, 121);
  EXPECT_EQ(bytes.size(), 3 * 512u);
  SegmentFooter footer;
  ASSERT_TRUE(read_footer(identity, 5, Bytes(bytes).last(512), footer));
  const auto read_back = read_summary(identity, footer, bytes);
  ASSERT_EQ(read_back.size(), 40u);
  EXPECT_EQ(memcmp(read_back.data(), entries.data(), 40 * sizeof(SummaryEntry)), 0);
  EXPECT_EQ(read(bytes, 4), 0u) << "of another generation";
  // Between entries and footer are zeros that nobody reads.
  expect_every_change_is_seen(bytes, 40 * sizeof(SummaryEntry),
                              [&](const auto& changed) { return read(changed) == 40; });
}

TEST_F(SummaryTest, EntriesThatCannotBeAreRefused) {
  EXPECT_EQ(read(summary({entry(1, 4), entry(5, 1)}, 6)), 2u);
  EXPECT_EQ(read(summary({entry(0, 4)}, 6)), 0u) << "in the header";
  EXPECT_EQ(read(summary({entry(1, 4), entry(4, 1)}, 6)), 0u) << "one over another";
  EXPECT_EQ(read(summary({entry(1, 0)}, 6)), 0u) << "of no length";
  EXPECT_EQ(read(summary({entry(1, 6)}, 6)), 0u) << "beyond what is used";
  EXPECT_EQ(read(summary({entry(5, ~0u)}, 6)), 0u) << "around the end of numbers";
  EXPECT_EQ(read(summary({entry(1, 1)}, 2048)), 0u) << "into the summary";
  SummaryEntry strange = entry(1, 1);
  strange.sequence_and_kind = with_kind(1, static_cast<RecordKind>(5));
  EXPECT_EQ(read(summary({strange}, 6)), 0u);
}

// Whoever moves the records that a summary lists has no memory for longer ones.
TEST_F(SummaryTest, RecordsThatAreLongerThanAnyAreRefused) {
  identity.geometry.segment_bytes = 4 << 20;
  EXPECT_EQ(read(summary({entry(1, 2177), entry(2178, 1)}, 6000)), 2u);
  EXPECT_EQ(read(summary({entry(1, 2178)}, 6000)), 0u);
}

class RecordTest : public FormatTest {
 protected:
  std::vector<std::byte> record(const std::string& key, const std::string& value) const {
    const uint64_t bytes = record_bytes(key.size(), value.size());
    std::vector<std::byte> made(identity.geometry.grains(bytes) * 512, std::byte{0xee});
    memcpy(made.data() + record_bytes(key.size(), 0), value.data(), value.size());
    write_record(identity.secret,
                 {.generation = 5,
                  .sequence_and_kind = with_kind(1234, RecordKind::kValue),
                  .expiry_and_key = uint64_t{999} << 16,
                  .flags = 3},
                 key, value.size(), made);
    return made;
  }
  Reading read(Bytes bytes, uint64_t generation = 5) {
    return read_record(identity.secret, generation, bytes, got);
  }

  Record got;
};

TEST_F(RecordTest, ARecordIsReadAsItWasWritten) {
  const size_t key_sizes[] = {1, 8, 32, 500, kMaxKeyBytes},
               value_sizes[] = {0, 1, 472, 4096, kMaxInlineValueBytes};
  for (size_t key_bytes : key_sizes) {
    for (size_t value_bytes : value_sizes) {
      const std::string key(key_bytes, 'k'), value(value_bytes, 'v');
      ASSERT_EQ(read(record(key, value)), Reading::kWhole) << key_bytes << " " << value_bytes;
    }
  }
  const auto bytes = record("a key", "a value");
  ASSERT_EQ(read(bytes), Reading::kWhole);
  EXPECT_EQ(got.key, "a key");
  EXPECT_EQ(text_of(got.value), "a value");
  EXPECT_EQ(got.header.sequence(), 1234u);
  EXPECT_EQ(got.header.kind(), RecordKind::kValue);
  EXPECT_EQ(got.header.expiry(), 999u);
  EXPECT_EQ(got.header.flags, 3u);
  EXPECT_EQ(got.bytes(), 52u);
  for (size_t i = 52; i < bytes.size(); ++i)
    ASSERT_EQ(bytes[i], std::byte{0}) << "what was in memory is not written";
}

TEST_F(RecordTest, EveryChangeOfOneIsSeen) {
  expect_every_change_is_seen(record("a key", std::string(600, 'v')), record_bytes(5, 600),
                              [&](const auto& changed) { return read(changed) == Reading::kWhole; });
  EXPECT_EQ(read(record("a key", "a value"), 6), Reading::kDamaged) << "of an earlier life of the segment";
}

TEST_F(RecordTest, PartOfOneIsKnownAsThat) {
  const auto bytes = record(std::string(600, 'k'), std::string(600, 'v'));
  EXPECT_EQ(read(Bytes(bytes).first(39)), Reading::kDamaged);
  EXPECT_EQ(read(Bytes(bytes).first(512)), Reading::kPart) << "not even all of the key";
  EXPECT_EQ(read(Bytes(bytes).first(1024)), Reading::kPart);
  EXPECT_EQ(got.key, std::string(600, 'k'));
  EXPECT_EQ(read(Bytes(bytes).first(1240)), Reading::kWhole);
}

TEST_F(RecordTest, ACopyElsewhereDiffersInItsGenerationOnly) {
  auto bytes = record("a key", "a value");
  move_record(identity.secret, 9, RecordKind::kValue, 0, bytes);
  EXPECT_EQ(read(bytes, 5), Reading::kDamaged);
  ASSERT_EQ(read(bytes, 9), Reading::kWhole);
  EXPECT_EQ(got.header.sequence(), 1234u);
  EXPECT_EQ(got.key, "a key");
}

// docs/formats/kv.md: what other programs may rely on.
TEST_F(RecordTest, WhatHasExpiredIsMovedWithoutItsValue) {
  std::vector<std::byte> bytes = record("a key", std::string(300, 'v'));
  move_record(identity.secret, 9, RecordKind::kTombstone, 77, bytes);
  ASSERT_EQ(read(bytes, 9), Reading::kWhole);
  EXPECT_EQ(got.key, "a key");
  EXPECT_TRUE(got.value.empty());
  EXPECT_EQ(got.header.kind(), RecordKind::kTombstone);
  EXPECT_EQ(got.header.sequence(), 1234u);
  EXPECT_EQ(got.header.expiry(), 77u);
  for (size_t i = got.bytes(); i < bytes.size(); ++i) ASSERT_EQ(bytes[i], std::byte{0}) << i;
}

TEST_F(RecordTest, BytesAreWhereTheFormatSays) {
  const auto block = superblock();
  EXPECT_EQ(memcmp(block.data(), "spillkv\n", 8), 0);
  EXPECT_EQ(number_at(block, 8, 4), 0x01020304u);
  EXPECT_EQ(number_at(block, 12, 4), 1u);
  EXPECT_EQ(number_at(block, 32, 8), identity.store_id);
  EXPECT_EQ(number_at(block, 40, 8), 99u);
  EXPECT_EQ(number_at(block, 56, 8), 1u << 20);
  EXPECT_EQ(number_at(block, 64, 8), 64u);
  EXPECT_EQ(number_at(block, 72, 4), 512u);
  EXPECT_EQ(number_at(block, 80, 1), 1u) << "the secret";
  const auto bytes = record("a key", "a value");
  EXPECT_EQ(number_at(bytes, 8, 8), 5u);
  EXPECT_EQ(number_at(bytes, 16, 1), 0u);
  EXPECT_EQ(number_at(bytes, 17, 7), 1234u);
  EXPECT_EQ(number_at(bytes, 24, 2), 4u);
  EXPECT_EQ(number_at(bytes, 26, 6), 999u);
  EXPECT_EQ(number_at(bytes, 32, 4), 7u);
  EXPECT_EQ(number_at(bytes, 36, 4), 3u);
  EXPECT_EQ(memcmp(bytes.data() + 40, "a keya value", 12), 0);
}

// Whichever vector registers the CPU has.
TEST_F(RecordTest, AChecksFunctionIsTheFormats) {
  for (size_t value_bytes : {0, 1, 20, 150, 250, 1000, 1024, 4024, 5000, 1 << 20}) {
    const auto bytes = record("a key", std::string(value_bytes, 'v'));
    EXPECT_EQ(number_at(bytes, 0, 8),
              XXH3_64bits_withSecret(bytes.data() + 8, record_bytes(5, value_bytes) - 8,
                                     identity.secret.bytes, kSecretBytes))
        << value_bytes;
  }
}

TEST_F(FormatTest, HashesOfAKeyDependOnTheStore) {
  Secret other = identity.secret;
  for (unsigned char& byte : other.bytes) byte = static_cast<unsigned char>(31 * byte + 5);
  for (size_t length : {1, 8, 16, 17, 200, 300, 65536}) {
    const std::string key(length, 'k');
    EXPECT_EQ(hash_key(identity.secret, key), hash_key(identity.secret, key));
    EXPECT_NE(hash_key(identity.secret, key), hash_key(identity.secret, key + "k"));
    EXPECT_NE(hash_key(identity.secret, key), hash_key(other, key)) << length;
  }
}

}  // namespace
}  // namespace kv
