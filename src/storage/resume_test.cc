// Short transfers are resumed by Queue, whatever the backend (device.h, invariant 2).
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "base/statistics.h"
#include "storage/testing/test_io.h"

namespace storage {
namespace {

constexpr size_t kCapacityBytes = 1 << 20;
constexpr int64_t kAll = int64_t{1} << 62;

// A device in memory that transfers of each piece what the script says next: so many bytes, or fails with -errno.
// Past the script's end, all. Pieces finish in a poll, the last one first.
class ScriptedDevice final : public Device {
 public:
  struct Piece {
    uint64_t offset_bytes;
    std::vector<std::pair<const void*, size_t>> segments;
  };

  ScriptedDevice() {
    capacity_bytes_ = kCapacityBytes;
    block_bytes_ = 512;
  }

  std::vector<int64_t> script;
  std::vector<Piece> pieces;
  std::vector<unsigned char> bytes = std::vector<unsigned char>(kCapacityBytes);

 private:
  class ScriptedQueue final : public Queue {
   public:
    ScriptedQueue(ScriptedDevice& device, size_t depth) : Queue(device, depth), scripted_(device) {}

   private:
    void do_start(Io& io) override { started_.push_back(&io); }
    void do_poll(bool) override {
      std::vector<Io*> ended;
      ended.swap(started_);
      std::reverse(ended.begin(), ended.end());
      for (Io* io : ended) {
        scripted_.perform(*io);
        complete(*io);
      }
    }
    void do_close() override { delete this; }

    ScriptedDevice& scripted_;
    std::vector<Io*> started_;
  };

  void perform(Io& io) {
    int64_t now = kAll;
    if (!script.empty()) {
      now = script.front();
      script.erase(script.begin());
    }
    Piece piece = {io.offset_bytes, {}};
    uint64_t length = 0;
    for (uint32_t i = 0; i < io.segment_count; ++i) {
      piece.segments.push_back({io.segments[i].iov_base, io.segments[i].iov_len});
      length += io.segments[i].iov_len;
    }
    EXPECT_EQ(length, io.length_bytes);
    pieces.push_back(piece);
    if (now < 0) {
      io.error = static_cast<int>(-now);
      return;
    }
    uint64_t left = std::min(static_cast<uint64_t>(now), io.length_bytes);
    io.transferred_bytes = left;
    unsigned char* at = &bytes[io.offset_bytes];
    for (uint32_t i = 0; left > 0; ++i) {
      const size_t count = std::min(left, io.segments[i].iov_len);
      if (io.operation == Operation::kRead)
        memcpy(io.segments[i].iov_base, at, count);
      else
        memcpy(at, io.segments[i].iov_base, count);
      at += count;
      left -= count;
    }
  }

  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse&) override {
    return new ScriptedQueue(*this, depth);
  }
  void do_close() override {}
};

class ResumeTest : public testing::Test {
 protected:
  void SetUp() override { queue = device.open_queue(4).value(); }
  void TearDown() override { device.close_queue(queue); }

  // Runs a write of blocks in the segments given, as the script says.
  std::unique_ptr<TestIo> write(std::vector<int64_t> script, std::vector<size_t> lengths) {
    device.script = std::move(script);
    device.pieces.clear();
    auto io = std::make_unique<TestIo>(Operation::kWrite, kBlock, std::move(lengths));
    io->fill(1);
    const Io before = io->io;
    queue->run(io->io);
    EXPECT_EQ(io->done_count, 1);
    EXPECT_EQ(io->io.offset_bytes, before.offset_bytes);
    EXPECT_EQ(io->io.length_bytes, before.length_bytes);
    EXPECT_EQ(io->io.segments, before.segments);
    EXPECT_EQ(io->io.segment_count, before.segment_count);
    return io;
  }
  // How much of a write of the pattern is on the medium.
  size_t written(const TestIo& io) const {
    size_t i = 0;
    while (i < io.io.length_bytes && device.bytes[kBlock + i] == TestIo::pattern(kBlock + i, 1)) ++i;
    return i;
  }

  ScriptedDevice device;
  Queue* queue = nullptr;
};

TEST_F(ResumeTest, BetweenSegmentsTheOthersAreGivenAsTheyAre) {
  auto io = write({kBlock}, {kBlock, 2 * kBlock, kBlock});
  EXPECT_TRUE(io->io.whole());
  EXPECT_EQ(written(*io), 4 * kBlock);
  ASSERT_EQ(device.pieces.size(), 2u);
  EXPECT_EQ(device.pieces[1].offset_bytes, 2 * kBlock);
  ASSERT_EQ(device.pieces[1].segments.size(), 2u);
  EXPECT_EQ(device.pieces[1].segments[0].first, io->bytes + kBlock);
}

TEST_F(ResumeTest, InsideASegmentItsRestComesFirst) {
  auto io = write({kBlock + 512}, {kBlock, 2 * kBlock, kBlock});
  EXPECT_TRUE(io->io.whole());
  EXPECT_EQ(written(*io), 4 * kBlock);
  ASSERT_EQ(device.pieces.size(), 3u);
  EXPECT_EQ(device.pieces[1].offset_bytes, 2 * kBlock + 512);
  ASSERT_EQ(device.pieces[1].segments.size(), 1u);
  EXPECT_EQ(device.pieces[1].segments[0].second, 2 * kBlock - 512);
  EXPECT_EQ(device.pieces[2].offset_bytes, 4 * kBlock);
  EXPECT_EQ(device.pieces[2].segments[0].first, io->bytes + 3 * kBlock);
}

TEST_F(ResumeTest, NoProgressIsShort) {
  auto io = write({kBlock, 512, 0}, {kBlock, kBlock});
  EXPECT_EQ(io->io.error, 0);
  EXPECT_EQ(io->io.transferred_bytes, kBlock + 512);
  EXPECT_EQ(device.pieces.size(), 3u);
  io = write({0}, {kBlock});
  EXPECT_EQ(io->io.error, 0);
  EXPECT_EQ(io->io.transferred_bytes, 0u);
  EXPECT_EQ(device.pieces.size(), 1u);
}

// No medium could be asked for the rest: its place is not that of a block.
TEST_F(ResumeTest, LessThanABlockIsShort) {
  auto io = write({700}, {kBlock});
  EXPECT_EQ(io->io.error, 0);
  EXPECT_EQ(io->io.transferred_bytes, 700u);
  EXPECT_EQ(device.pieces.size(), 1u);
  io = write({512, 100}, {kBlock});
  EXPECT_EQ(io->io.transferred_bytes, 612u);
  EXPECT_EQ(device.pieces.size(), 2u);
}

TEST_F(ResumeTest, ALaterErrorIsTheError) {
  const auto& statistics = base::statistics;
  const uint64_t errors = statistics.storage_errors.get(), writes = statistics.storage_writes.get();
  auto io = write({kBlock, -ENOSPC}, {kBlock, kBlock});
  EXPECT_EQ(io->io.error, ENOSPC);
  EXPECT_EQ(io->io.transferred_bytes, kBlock);
  EXPECT_FALSE(io->io.whole());
  EXPECT_EQ(statistics.storage_errors.get(), errors + 1);
  EXPECT_EQ(statistics.storage_writes.get(), writes);
}

TEST_F(ResumeTest, CountsAsOneOperation) {
  const auto& statistics = base::statistics;
  const uint64_t writes = statistics.storage_writes.get(), bytes = statistics.storage_write_bytes.get();
  write({512, 512, 512}, {kBlock});
  EXPECT_EQ(statistics.storage_writes.get(), writes + 1);
  EXPECT_EQ(statistics.storage_write_bytes.get(), bytes + kBlock);
}

TEST_F(ResumeTest, PollNeverBlocksOnIt) {
  device.script = {512};
  TestIo io(Operation::kWrite, 0, {kBlock});
  Io* batch[] = {&io.io};
  ASSERT_EQ(queue->submit(batch), 1u);
  EXPECT_EQ(queue->poll(), 0u);
  EXPECT_EQ(queue->in_flight_count(), 1u);
  EXPECT_TRUE(io.io.in_flight);
  EXPECT_EQ(queue->poll(), 1u);
  EXPECT_TRUE(io.io.whole());
}

TEST_F(ResumeTest, TheSameIoMayRunAgain) {
  auto io = write({512}, {kBlock, kBlock});
  device.script = {kBlock};
  io->fill(1);
  queue->run(io->io);
  EXPECT_TRUE(io->io.whole());
  EXPECT_EQ(io->done_count, 2);
}

// Whatever the pieces: exactly what is said to be transferred is, and other Ios of the queue are left alone.
TEST_F(ResumeTest, RandomPieces) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::minstd_rand random(seed);
    std::vector<std::unique_ptr<TestIo>> ios;
    std::vector<Io*> batch;
    device.script.clear();
    std::fill(device.bytes.begin(), device.bytes.end(), 0xdd);
    for (uint64_t i = 0; i < 10; ++i) {
      std::vector<size_t> lengths(1 + random() % 6);
      for (size_t& length : lengths) length = (1 + random() % 4) * 512;
      ios.push_back(std::make_unique<TestIo>(Operation::kWrite, i * 8 * kBlock, lengths));
      ios.back()->fill(seed % 200);
      batch.push_back(&ios.back()->io);
    }
    for (int i = 0; i < 60; ++i) {
      const auto kind = random() % 16;
      device.script.push_back(kind == 0 ? -EIO : kind == 1 ? 0 : static_cast<int64_t>(random() % 9) * 512);
    }
    queue->run(batch);
    for (const auto& io : ios) {
      ASSERT_EQ(io->done_count, 1) << "seed " << seed;
      ASSERT_LE(io->io.transferred_bytes, io->io.length_bytes);
      for (uint64_t at = 0; at < io->io.length_bytes; ++at) {
        const unsigned char expected =
            at < io->io.transferred_bytes ? TestIo::pattern(io->io.offset_bytes + at, seed % 200) : 0xdd;
        ASSERT_EQ(device.bytes[io->io.offset_bytes + at], expected) << "seed " << seed << " byte " << at;
      }
    }
  }
}

}  // namespace
}  // namespace storage
