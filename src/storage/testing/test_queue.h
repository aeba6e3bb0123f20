// For tests: a device with a queue.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "storage/opening/open.h"
#include "storage/testing/test_io.h"

namespace storage {

class QueueTest : public testing::Test {
 protected:
  void TearDown() override { close(); }

  void open_queue_of(const std::string& text) {
    auto opened = open_device(text, {});
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    device = *opened;
    queue = device->open_queue(8).value();
  }
  void close() {
    if (device == nullptr) return;
    device->close_queue(queue);
    device->close();
    device = nullptr;
  }
  // Runs one; a write writes TestIo's pattern.
  std::unique_ptr<TestIo> run(Operation operation, uint64_t offset, size_t length, unsigned seed = 0) {
    auto io = std::make_unique<TestIo>(operation, offset, std::vector{length});
    if (operation == Operation::kWrite) io->fill(seed);
    if (operation == Operation::kDiscard || operation == Operation::kFlush) io->io.segment_count = 0;
    queue->run(io->io);
    EXPECT_EQ(io->done_count, 1);
    return io;
  }

  Device* device = nullptr;
  Queue* queue = nullptr;
};

}  // namespace storage
