#include "storage/opening/content.h"

#include <gtest/gtest.h>

#include "storage/opening/open.h"
#include "storage/piece_io.h"

namespace storage {
namespace {

constexpr uint64_t kMiB = 1 << 20;
alignas(4096) char block[4096];

void write(Device& device, uint64_t offset, char last) {
  block[sizeof block - 1] = last;
  Queue* queue = device.open_queue(1).value();
  PieceIo io(Operation::kWrite, offset, block, sizeof block);
  queue->run(io);
  EXPECT_TRUE(io.whole());
  device.close_queue(queue);
}

TEST(Content, OfADeviceIsLookedForAtBothEnds) {
  for (const char* text : {"memory:4M", "memory:1M", "memory:1028K", "memory:64K"}) {
    Device* const device = open_device(text, {}).value();
    EXPECT_FALSE(device_has_content(*device).value()) << text;
    const uint64_t capacity_bytes = device->capacity_bytes();
    for (uint64_t at = 0; at < capacity_bytes; at += sizeof block) {
      write(*device, at, 1);
      EXPECT_EQ(device_has_content(*device).value(), at < kMiB || at + kMiB >= capacity_bytes)
          << text << ' ' << at;
      write(*device, at, 0);
    }
    device->close();
  }
}

TEST(Content, ThatCannotBeReadIsAnError) {
  Device* const device = open_device("fault:read_eio=%1:[memory:4M]", {}).value();
  const auto content = device_has_content(*device);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().number, EIO);
  device->close();
}

TEST(Content, OfWhatIsNeitherFileNorDeviceIsNone) {
  EXPECT_FALSE(path_has_content("/dev/null").value());
  EXPECT_FALSE(path_has_content("/tmp").value());
  EXPECT_FALSE(path_has_content("/tmp/there is none").value());
  EXPECT_TRUE(path_has_content("/proc/self/exe").value());
}

}  // namespace
}  // namespace storage
