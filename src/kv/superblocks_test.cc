// A damaged copy of the superblock: it is written anew from the other one, and a line says so. A copy of another store's is refused.
#include <gtest/gtest.h>

#include "kv/testing/test_store.h"
#include "storage/testing/test_cut_device.h"
#include "storage/testing/test_fail_device.h"

namespace kv {
namespace {

constexpr uint64_t kBytes = 12 << 20;

class SuperblocksTest : public testing::TestWithParam<uint64_t>, protected StoreInUse {
 protected:
  void SetUp() override {
    storage::CutDevice* const device = new storage::CutDevice(std::vector<std::byte>(kBytes), 0);
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    open(*device, {.stream_count = 1});
    ASSERT_TRUE(session.put("key", bytes_of("value")));
    close();
    whole = damaged = device->medium(1, 100);
    device->close();
    damaged[at + 100] ^= std::byte{1};
  }
  // Opens the store, reads from it, and closes it. Returns what was logged.
  std::string use(storage::Device& device, const StoreOptions& options = {.stream_count = 1}) {
    testing::internal::CaptureStderr();
    open(device, options);
    auto found = session.get("key");
    EXPECT_TRUE(found && found->found() && text_of(found->value()) == "value");
    found = Found();
    close();
    return testing::internal::GetCapturedStderr();
  }
  bool is_mended(const std::vector<std::byte>& medium) const {
    return std::equal(medium.begin(), medium.begin() + kSegmentsOffset, whole.begin());
  }
  static bool is_one_line(const std::string& said, const std::string& with) {
    return std::ranges::count(said, '\n') == 1 && said.find(with) != said.npos;
  }

  const uint64_t at = GetParam();
  const std::string where = ": the superblock at byte " + std::to_string(at) + " was damaged, and ";
  std::vector<std::byte> whole, damaged;
};

TEST_P(SuperblocksTest, ADamagedOneIsWrittenAnew) {
  storage::CutDevice* const device = new storage::CutDevice(damaged, 0);
  const std::string said = use(*device);
  EXPECT_TRUE(is_one_line(said, where + "was written anew from the other one\n")) << said;
  EXPECT_TRUE(is_mended(device->medium(1, 0)));
  EXPECT_EQ(use(*device), "");
  device->close();
}

TEST_P(SuperblocksTest, ReadingOnlyItIsToldAndLeft) {
  storage::CutDevice* const device = new storage::CutDevice(damaged, 0);
  for (int turn = 0; turn < 2; ++turn) {
    const std::string said = use(*device, {.read_only = true});
    EXPECT_TRUE(is_one_line(said, where + "is written anew when the store is opened for writing\n")) << said;
  }
  EXPECT_EQ(device->count(), 0u);
  device->close();
}

TEST_P(SuperblocksTest, OneThatCannotBeReadIsWrittenAnew) {
  storage::CutDevice* const device = new storage::CutDevice(damaged, 0);
  device->fail_reads(at, 512);
  const std::string said = use(*device);
  EXPECT_TRUE(is_one_line(said, where + "was written anew")) << said;
  EXPECT_TRUE(is_mended(device->medium(1, 0)));
  device->close();
}

TEST_P(SuperblocksTest, WhatCannotBeReadIsNotTakenForNone) {
  storage::CutDevice* const device = new storage::CutDevice(std::vector<std::byte>(kBytes), 0);
  device->fail_reads(at, 512);
  const auto opened = Store::open(*device, {.stream_count = 1});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number, EIO) << opened.error().message;
  device->close();
}

TEST_P(SuperblocksTest, AStoreGoesOnWithoutIt) {
  storage::CutDevice* const cut = new storage::CutDevice(damaged, 0);
  storage::FailDevice* const device = new storage::FailDevice(cut);
  device->fail(storage::FailDevice::Failing::kWrites, EIO, 1, 1);
  std::string said = use(*device);
  EXPECT_TRUE(is_one_line(said, where + "could not be written anew: ")) << said;
  EXPECT_FALSE(is_mended(cut->medium(1, 100)));
  said = use(*device);
  EXPECT_TRUE(is_one_line(said, where + "was written anew")) << said;
  device->close();
}

// As after any failed flush: nobody knows what else is lost.
TEST_P(SuperblocksTest, AFlushThatFailsEndsWrites) {
  storage::FailDevice* const device = new storage::FailDevice(new storage::CutDevice(damaged, 0));
  device->fail(storage::FailDevice::Failing::kFlushes, EIO, 2, 1);  // the first one is recovery's
  testing::internal::CaptureStderr();
  open(*device, {.stream_count = 1});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(is_one_line(said, where + "could not be written anew: ")) << said;
  auto found = session.get("key");
  EXPECT_TRUE(found && found->found());
  found = Found();
  EXPECT_FALSE(session.put("key", {}));
  session.close();
  EXPECT_FALSE(store->close());
  device->close();
}

// As on a stripe with a device of another store.
TEST_P(SuperblocksTest, ThoseOfTwoStoresAreRefused) {
  storage::CutDevice* device = new storage::CutDevice(std::vector<std::byte>(kBytes), 0);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  const std::vector<std::byte> other = device->medium(1, 100);
  device->close();
  std::vector<std::byte> mixed = whole;
  memcpy(mixed.data() + at, other.data() + at, kSuperblockBytes);
  device = new storage::CutDevice(mixed, 0);
  for (const bool read_only : {false, true}) {
    const auto opened = Store::open(*device, {.stream_count = 1, .read_only = read_only});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().number, EINVAL);
    EXPECT_NE(std::string(opened.error().message).find(" has superblocks of two stores; "), std::string::npos)
        << opened.error().message;
  }
  EXPECT_EQ(device->count(), 0u);
  device->close();
}

// Whatever has reached the medium of the new copy, the other one is there.
TEST_P(SuperblocksTest, PowerGoesOffMeanwhile) {
  for (uint64_t cut = 1; cut <= 2; ++cut) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      storage::CutDevice* device = new storage::CutDevice(damaged, cut);
      testing::internal::CaptureStderr();
      if (auto opened = Store::open(*device, {.stream_count = 1})) static_cast<void>((*opened)->close());
      testing::internal::GetCapturedStderr();
      EXPECT_TRUE(device->is_off());
      const std::vector<std::byte> medium = device->medium(seed, 50);
      device->close();
      device = new storage::CutDevice(medium, 0);
      use(*device);
      EXPECT_TRUE(is_mended(device->medium(1, 0)));
      device->close();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Copies, SuperblocksTest, testing::ValuesIn(kSuperblockOffsets));

}  // namespace
}  // namespace kv
