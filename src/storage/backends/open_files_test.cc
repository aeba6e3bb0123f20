// Reads of several files by one queue (open_files.h).
#include "storage/backends/open_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "storage/testing/test_io.h"

namespace storage {
namespace {

class OpenFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    device = make_open_files_device().value();
    queue = device->open_queue(8, {.sleeps = false, .undisturbed = true}).value();
  }
  void TearDown() override {
    device->close_queue(queue);
    device->close();
    for (const int file : files) close(file);
  }

  // A file of that length, filled by the seed, open to be read directly.
  int make(unsigned seed, size_t length) {
    std::string path = testing::TempDir() + "spillway-open-files-XXXXXX";
    const int written = mkstemp(path.data());
    std::vector<unsigned char> bytes(length);
    for (size_t i = 0; i < length; ++i) bytes[i] = TestIo::pattern(i, seed);
    EXPECT_EQ(write(written, bytes.data(), length), static_cast<ssize_t>(length));
    EXPECT_EQ(fsync(written), 0);
    close(written);
    int file = open(path.c_str(), O_RDONLY | O_DIRECT);
    if (file < 0) file = open(path.c_str(), O_RDONLY);
    EXPECT_GE(file, 0);
    unlink(path.c_str());
    files.push_back(file);
    return file;
  }
  static std::unique_ptr<TestIo> read_of(int file, uint64_t place, std::vector<size_t> lengths) {
    size_t length = 0;
    for (const size_t part : lengths) length += part;
    return std::make_unique<TestIo>(Operation::kRead, offset_in_open_file(file, place, length).value(),
                                    lengths);
  }
  static void expect(const TestIo& io, uint64_t place, size_t count, unsigned seed) {
    EXPECT_EQ(io.done_count, 1);
    EXPECT_EQ(io.io.error, 0);
    EXPECT_EQ(io.io.transferred_bytes, count);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(io.bytes[i], TestIo::pattern(place + i, seed)) << i;
  }

  Device* device = nullptr;
  Queue* queue = nullptr;
  std::vector<int> files;
};

TEST_F(OpenFilesTest, OneQueueReadsFromAllOfThem) {
  const int first = make(1, 8 * kBlock), second = make(2, 8 * kBlock);
  auto a = read_of(first, 3 * kBlock, {kBlock}), b = read_of(second, 3 * kBlock, {kBlock}),
       c = read_of(second, 0, {kBlock, 2 * kBlock});
  Io* batch[] = {&a->io, &b->io, &c->io};
  ASSERT_EQ(queue->submit(batch), 3u);
  while (queue->in_flight_count() > 0) queue->wait();
  expect(*a, 3 * kBlock, kBlock, 1);
  expect(*b, 3 * kBlock, kBlock, 2);
  expect(*c, 0, 3 * kBlock, 2);
  auto alone = read_of(first, kBlock, {kBlock, kBlock});
  queue->run(alone->io);
  expect(*alone, kBlock, 2 * kBlock, 1);
}

TEST_F(OpenFilesTest, AReadIsShortWhereTheFileEnds) {
  const int file = make(3, 2 * kBlock + 100);
  auto last = read_of(file, kBlock, {kBlock, kBlock}), behind = read_of(file, 3 * kBlock, {kBlock}),
       to_a_block = read_of(make(4, 2 * kBlock), 0, {3 * kBlock});
  Io* batch[] = {&last->io, &behind->io, &to_a_block->io};
  ASSERT_EQ(queue->submit(batch), 3u);
  while (queue->in_flight_count() > 0) queue->wait();
  expect(*last, kBlock, kBlock + 100, 3);
  expect(*behind, 3 * kBlock, 0, 3);
  expect(*to_a_block, 0, 2 * kBlock, 4);
}

TEST_F(OpenFilesTest, AnErrorIsTold) {
  constexpr int kMaxDescriptorsOfTests = (1 << 19) - 1;  // nobody has opened it
  auto io = read_of(kMaxDescriptorsOfTests, 0, {kBlock});
  Io* batch[] = {&io->io};
  ASSERT_EQ(queue->submit(batch), 1u);
  while (queue->in_flight_count() > 0) queue->wait();
  EXPECT_EQ(io->io.error, EBADF);
}

TEST_F(OpenFilesTest, OffsetsHaveTheirBounds) {
  constexpr uint64_t kEnd = uint64_t{1} << kOpenFileOffsetBits;
  EXPECT_TRUE(offset_in_open_file(7, kEnd - kBlock, kBlock).has_value());
  EXPECT_FALSE(offset_in_open_file(7, kEnd - kBlock, 2 * kBlock).has_value());
  EXPECT_FALSE(offset_in_open_file(-1, 0, kBlock).has_value());
  EXPECT_FALSE(offset_in_open_file(1 << 19, 0, kBlock).has_value());
}

}  // namespace
}  // namespace storage
