#include "storage/backends/nvme.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "storage/testing/test_io.h"

namespace storage {
namespace {

constexpr NvmeNamespace kSpace = {
    .id = 3, .block_bytes = 512, .block_count = uint64_t{1} << 40, .command_bytes = 16 * kBlock};

// What a namespace of a million blocks says of itself, with the sixth of its formats in use.
struct Identity {
  Identity() {
    bytes[1] = bytes[2] = 1;  // 65,792 blocks
    bytes[25] = 7;
    bytes[26] = 5;
    set_format(5, 0, 9);
  }
  void set_format(int number, uint16_t metadata_bytes, uint8_t shift) {
    unsigned char* format = bytes + 128 + 4 * number;
    memcpy(format, &metadata_bytes, 2);
    format[2] = shift;
  }
  unsigned char bytes[kNvmeIdentityBytes] = {};
};

TEST(Nvme, IdentityGivesTheFormatInUse) {
  Identity identity;
  auto space = parse_nvme_identity(identity.bytes);
  ASSERT_TRUE(space.has_value()) << space.error().message;
  EXPECT_EQ(space->block_count, 0x10100u);
  EXPECT_EQ(space->block_bytes, 512u);
  identity.set_format(5, 0, 12);
  EXPECT_EQ(parse_nvme_identity(identity.bytes)->block_bytes, 4096u);
  // Of many formats the number has two more bits.
  identity.bytes[26] = 5 | 1 << 5;
  EXPECT_EQ(parse_nvme_identity(identity.bytes)->block_bytes, 4096u) << "the bits are none";
  identity.bytes[25] = 40;
  identity.set_format(21, 0, 10);
  EXPECT_EQ(parse_nvme_identity(identity.bytes)->block_bytes, 1024u);
}

TEST(Nvme, IdentityThatCannotBeUsedIsRefused) {
  const auto refused = [](const Identity& identity, int number, const char* words) {
    auto space = parse_nvme_identity(identity.bytes);
    ASSERT_FALSE(space.has_value());
    EXPECT_EQ(space.error().number, number);
    EXPECT_NE(strstr(space.error().message, words), nullptr) << space.error().message;
  };
  Identity identity;
  identity.set_format(5, 8, 12);
  refused(identity, ENOTSUP, "8 bytes of metadata");
  identity.set_format(5, 256, 12);
  refused(identity, ENOTSUP, "256 bytes of metadata");
  for (uint8_t shift : {uint8_t{0}, uint8_t{8}, uint8_t{13}, uint8_t{255}}) {
    identity.set_format(5, 0, shift);
    refused(identity, ENOTSUP, "512 to 4096");
  }
  memset(identity.bytes, 0, 8);
  refused(identity, ENXIO, "empty");
}

TEST(Nvme, ATransferSaysWhereAndHowMuch) {
  TestIo io(Operation::kWrite, uint64_t{5} << 40, {2 * kBlock});
  NvmeCommand command = nvme_command(kSpace, io.io);
  EXPECT_EQ(command.words.opcode, 1);
  EXPECT_EQ(command.words.nsid, 3u);
  EXPECT_EQ(command.words.cdw10, 0x8000'0000u);
  EXPECT_EQ(command.words.cdw11, 2u);
  EXPECT_EQ(command.words.cdw12, 15u) << "one less than the blocks";
  EXPECT_EQ(command.words.addr, reinterpret_cast<uint64_t>(io.bytes));
  EXPECT_EQ(command.words.data_len, 2 * kBlock);
  EXPECT_FALSE(command.is_vector);
  EXPECT_EQ(command.transferred_bytes, 2 * kBlock);
  io.io.operation = Operation::kRead;
  EXPECT_EQ(nvme_command(kSpace, io.io).words.opcode, 2);
}

TEST(Nvme, SegmentsAreTakenAsLongAsTheyFit) {
  TestIo fits(Operation::kRead, 0, {kBlock, 3 * kBlock, 12 * kBlock});
  NvmeCommand command = nvme_command(kSpace, fits.io);
  EXPECT_TRUE(command.is_vector);
  EXPECT_EQ(command.words.addr, reinterpret_cast<uint64_t>(fits.io.segments));
  EXPECT_EQ(command.words.data_len, 3u);
  EXPECT_EQ(command.transferred_bytes, 16 * kBlock);
  EXPECT_EQ(command.words.cdw12, 127u);

  TestIo does_not(Operation::kRead, 0, {kBlock, 3 * kBlock, 13 * kBlock});
  command = nvme_command(kSpace, does_not.io);
  EXPECT_EQ(command.words.data_len, 2u);
  EXPECT_EQ(command.transferred_bytes, 4 * kBlock);

  TestIo first_only(Operation::kRead, 0, {kBlock, 16 * kBlock});
  command = nvme_command(kSpace, first_only.io);
  EXPECT_FALSE(command.is_vector);
  EXPECT_EQ(command.words.data_len, kBlock);

  TestIo too_long(Operation::kRead, 0, {17 * kBlock, kBlock});
  command = nvme_command(kSpace, too_long.io);
  EXPECT_FALSE(command.is_vector);
  EXPECT_EQ(command.words.addr, reinterpret_cast<uint64_t>(too_long.bytes));
  EXPECT_EQ(command.words.data_len, 16 * kBlock);
  EXPECT_EQ(command.transferred_bytes, 16 * kBlock);
}

TEST(Nvme, ACommandHasAtMost65536Blocks) {
  NvmeNamespace space = kSpace;
  space.command_bytes = uint64_t{1} << 30;
  TestIo io(Operation::kRead, 0, {(32 << 20) + kBlock});
  const NvmeCommand command = nvme_command(space, io.io);
  EXPECT_EQ(command.transferred_bytes, 32u << 20);
  EXPECT_EQ(command.words.cdw12, 65535u);
}

TEST(Nvme, ADiscardIsOneRange) {
  TestIo io(Operation::kDiscard, 7 * kBlock, {2 * kBlock});
  const NvmeCommand command = nvme_command(kSpace, io.io);
  EXPECT_EQ(command.words.opcode, 9);
  EXPECT_EQ(command.words.cdw10, 0u) << "one less than the ranges";
  EXPECT_EQ(command.words.cdw11, 4u);
  EXPECT_EQ(command.words.data_len, 16u);
  EXPECT_EQ(command.transferred_bytes, 0u);
  uint32_t words[4];
  memcpy(words, reinterpret_cast<const void*>(command.words.addr), sizeof words);
  EXPECT_EQ(words[1], 16u);
  EXPECT_EQ(words[2], 56u);
  EXPECT_EQ(words[3], 0u);
  io.io.length_bytes = uint64_t{1} << 45;
  nvme_command(kSpace, io.io);
  memcpy(words, reinterpret_cast<const void*>(command.words.addr), sizeof words);
  EXPECT_EQ(words[1], UINT32_MAX);
}

TEST(Nvme, AFlushIsOfTheNamespace) {
  Io io;
  io.operation = Operation::kFlush;
  const NvmeCommand command = nvme_command(kSpace, io);
  EXPECT_EQ(command.words.opcode, 0);
  EXPECT_EQ(command.words.nsid, 3u);
  EXPECT_EQ(command.words.data_len, 0u);
  EXPECT_EQ(command.transferred_bytes, 0u);
}

TEST(Nvme, WhatIsNoSuchDeviceSaysSo) {
  EXPECT_FALSE(identify_nvme(-1).has_value());
  TestIo io(Operation::kRead, 0, {kBlock});
  EXPECT_EQ(run_nvme_command(-1, kSpace, io.io), -EBADF);
}

TEST(Nvme, StatusesHaveTwoParts) {
  EXPECT_EQ(nvme_status_type(0x4281), 2u) << "and what is not to be retried";
  EXPECT_EQ(nvme_status_code(0x4281), 0x81u);
}

}  // namespace
}  // namespace storage
