// Tasks that read and write devices, many at a time, and what goes wrong there.
#include "task/io_queue.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "storage/opening/open.h"
#include "storage/piece_io.h"
#include "storage/testing/test_cut_device.h"
#include "sys/test_switches.h"
#include "task/scheduler.h"
#include "task/test_tasks.h"

namespace task {
namespace {

constexpr size_t kBlock = 4096;

struct AlignedBlock {
  alignas(kBlock) char bytes[kBlock];
};

class IoQueueTest : public TasksTest, public testing::WithParamInterface<const char*> {
 protected:
  IoQueueTest() : TasksTest(2) {}
  void TearDown() override {
    if (device != nullptr) device->close();
    TasksTest::TearDown();
  }

  void open(const char* kind) {
    std::string text = kind;
    if (const size_t at = text.find("DIR"); at != std::string::npos) text.replace(at, 3, testing::TempDir());
    auto opened = storage::open_device(text, {.spill = true});
    ASSERT_TRUE(opened) << opened.error().message;
    device = *opened;
  }

  storage::Device* device = nullptr;
};

TEST_P(IoQueueTest, ManyTasksOfTwoWorkersWriteAndReadBack) {
  open(GetParam());
  run([&] {
    const auto work = [&](uint32_t worker) {
      IoQueue queue;
      ASSERT_TRUE(queue.open(*device, 8));
      uint32_t next = 0, good = 0;
      auto body = [&] {
        AlignedBlock block;
        const uint32_t number = next++;
        for (uint32_t round = 0; round < 4; ++round) {
          const uint64_t offset = (uint64_t{worker} * 256 + number * 4 + round) * kBlock;
          memset(block.bytes, static_cast<int>(number * 7 + round + worker), kBlock);
          ASSERT_EQ(*queue.write(offset, block.bytes, kBlock), kBlock);
          memset(block.bytes, 0, kBlock);
          ASSERT_EQ(*queue.read(offset, block.bytes, kBlock), kBlock);
          for (char byte : block.bytes) ASSERT_EQ(byte, static_cast<char>(number * 7 + round + worker));
          ++good;
        }
      };
      std::vector<Task*> tasks;
      for (int i = 0; i < 64; ++i) tasks.push_back(&start("does I/O", body));
      for (Task* task : tasks) join(*task);
      EXPECT_EQ(good, 256u);
      EXPECT_TRUE(queue.flush());
      queue.close();
    };
    auto first = [&] { work(0); };
    auto second = [&] { work(1); };
    Task& a = start("does I/O", first, &scheduler.worker(0));
    Task& b = start("does I/O", second, &scheduler.worker(1));
    join(a);
    join(b);
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, IoQueueTest,
                         testing::Values("memory:64M", "uring:DIR", "file:DIR", "file:DIR?threads=0",
                                         "fault:seed=3,any_delay_polls=1/4x3:[uring:DIR]", "aio:DIR",
                                         "stripe:[uring:DIR,aio:DIR,file:DIR]?unit=4K",
                                         "latency:us=300,channels=4:[aio:DIR]"));

TEST_P(IoQueueTest, ATaskWaitsForManyIosTogether) {
  open(GetParam());
  run([&] {
    IoQueue queue;
    ASSERT_TRUE(queue.open(*device, 8));
    constexpr size_t kCount = 20;  // more than the queue takes at a time
    std::vector<AlignedBlock> blocks(kCount), read(kCount);
    const auto all = [&](storage::Operation operation, std::vector<AlignedBlock>& memory) {
      std::vector<std::unique_ptr<storage::PieceIo>> ios;
      std::vector<storage::Io*> batch;
      for (size_t i = 0; i < kCount; ++i) {
        ios.push_back(std::make_unique<storage::PieceIo>(operation, i * kBlock, &memory[i], kBlock));
        batch.push_back(ios.back().get());
      }
      queue.run(batch);
      for (const storage::Io* io : batch) ASSERT_TRUE(io->whole());
    };
    for (size_t i = 0; i < kCount; ++i) memset(&blocks[i], static_cast<int>(i + 1), kBlock);
    all(storage::Operation::kWrite, blocks);
    all(storage::Operation::kRead, read);
    EXPECT_EQ(memcmp(read.data(), blocks.data(), kCount * kBlock), 0);
    queue.run({});
    queue.close();
  });
}

// After Ios have ended the worker sleeps, even if not every notification of the device has been consumed.
TEST_P(IoQueueTest, ItsWorkerSleepsAfterwards) {
  open(GetParam());
  const auto cpu_ns = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
  };
  run([&] {
    IoQueue queue;
    ASSERT_TRUE(queue.open(*device, 8));
    AlignedBlock block = {};
    auto writes = [&] { ASSERT_EQ(*queue.write(0, block.bytes, kBlock), kBlock); };
    for (int round = 0; round < 3; ++round) {
      Task& first = start("does I/O", writes);
      Task& second = start("does I/O", writes);
      join(first);
      join(second);
      constexpr uint64_t kSleepNs = 100'000'000;
      const uint64_t before_ns = cpu_ns(), switches = sys::voluntary_switches();
      sleep_until(now_ns() + kSleepNs);
      EXPECT_GT(sys::voluntary_switches(), switches);
      // CPU time of this thread only, so that other load on the machine does not count.
      EXPECT_LT(cpu_ns() - before_ns, kSleepNs / 4);
    }
    queue.close();
  });
}

TEST_F(IoQueueTest, ErrorsReachTheTask) {
  open("fault:write_eio=@1,read_enospc=@2:[memory:64M]");
  run([&] {
    IoQueue queue;
    ASSERT_TRUE(queue.open(*device, 4));
    AlignedBlock block = {};
    auto written = queue.write(0, block.bytes, kBlock);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().number, EIO);
    EXPECT_NE(std::string(written.error().message).find("cannot write "), std::string::npos);
    EXPECT_TRUE(queue.write(0, block.bytes, kBlock));
    EXPECT_TRUE(queue.read(0, block.bytes, kBlock));
    EXPECT_EQ(queue.read(0, block.bytes, kBlock).error().number, ENOSPC);
    queue.close();
  });
}

// Adjacent writes of one turn share one Io, but each gets its own result.
TEST_F(IoQueueTest, WritesBehindEachOtherAreJoined) {
  const auto write_all = [&](const char* kind, std::vector<uint64_t> places) {
    open(kind);
    std::vector<int> errors(places.size());
    std::vector<uint64_t> transferred(places.size());
    run([&] {
      IoQueue queue;
      ASSERT_TRUE(queue.open(*device, 8));
      std::vector<AlignedBlock> blocks(places.size());
      size_t next = 0;
      auto writes = [&] {
        const size_t i = next++;
        memset(blocks[i].bytes, static_cast<int>(places[i]) + 1, kBlock);
        storage::PieceIo io(storage::Operation::kWrite, places[i] * kBlock, blocks[i].bytes, kBlock);
        queue.run(io);
        errors[i] = io.error;
        transferred[i] = io.transferred_bytes;
      };
      std::vector<Task*> tasks;
      for (size_t i = 0; i < places.size(); ++i) tasks.push_back(&start("writes", writes));
      for (Task* task : tasks) join(*task);
      for (size_t i = 0; i < places.size(); ++i) {
        if (errors[i] != 0) continue;
        EXPECT_EQ(transferred[i], kBlock) << places[i];
        AlignedBlock block = {};
        ASSERT_EQ(*queue.read(places[i] * kBlock, block.bytes, kBlock), kBlock);
        EXPECT_EQ(memcmp(block.bytes, blocks[i].bytes, kBlock), 0) << places[i];
      }
      queue.close();
    });
    device->close();
    device = nullptr;
    return std::pair(errors, transferred);
  };
  using Errors = std::vector<int>;
  EXPECT_EQ(write_all("fault:write_eio=@2:[memory:64M]", {0, 1, 2, 10, 11, 7}).first, Errors(6))
      << "the second is that of 10 and 11, which are written once more";
  // Writes that precede others, or overlap them, are not joined.
  EXPECT_EQ(write_all("fault:write_eio=@2:[memory:64M]", {5, 4, 6}).first, Errors({0, EIO, 0}));
  const std::vector<uint64_t> sizes = write_all("fault:write_short=@1:[memory:64M]", {0, 1, 2, 3}).second;
  EXPECT_EQ(sizes, std::vector<uint64_t>(4, kBlock));
  // More writes than can be joined, and more at a time than there is room for.
  std::vector<uint64_t> many;
  for (uint64_t i = 0; i < 60; ++i) many.push_back(i < 40 ? i : i * 3);
  EXPECT_EQ(write_all("uring:DIR", many).first, Errors(many.size()));
}

TEST_F(IoQueueTest, APlaceThatIsNotWrittenToIsOneTasksTrouble) {
  constexpr size_t kCount = 8, kBad = 3;
  auto* const cut = new storage::CutDevice(std::vector<std::byte>(kCount * kBlock), 0);
  device = cut;
  cut->fail_writes(kBad * kBlock, kBlock);
  std::vector<int> errors(kCount, -1);
  run([&] {
    IoQueue queue;
    ASSERT_TRUE(queue.open(*device, 8));
    std::vector<AlignedBlock> blocks(kCount);
    size_t next = 0;
    auto writes = [&] {
      const size_t i = next++;
      storage::PieceIo io(storage::Operation::kWrite, i * kBlock, blocks[i].bytes, kBlock);
      queue.run(io);
      errors[i] = io.error;
    };
    std::vector<Task*> tasks;
    for (size_t i = 0; i < kCount; ++i) tasks.push_back(&start("writes", writes));
    for (Task* task : tasks) join(*task);
    queue.close();
  });
  EXPECT_EQ(cut->refused_writes(), 2u) << "with the others, and alone";
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(errors[i], i == kBad ? EIO : 0) << i;
}

// With memory there is nothing to wait for: a task does many reads in one turn, but others still get their turns.
TEST_P(IoQueueTest, OthersHaveTheirTurns) {
  open(GetParam());
  run([&] {
    constexpr uint32_t kReads = 320;
    IoQueue queue;
    ASSERT_TRUE(queue.open(*device, 8));
    bool is_done = false;
    uint32_t turns = 0;
    auto others = [&] {
      do {
        yield();
        ++turns;
      } while (!is_done);
    };
    Task& other = start("others", others);
    AlignedBlock block;
    ASSERT_EQ(*queue.write(0, block.bytes, kBlock), kBlock);
    uint32_t meanwhile = 0;  // reads during which others had turns
    for (uint32_t i = 0; i < kReads; ++i) {
      const uint32_t before = turns;
      ASSERT_EQ(*queue.read(0, block.bytes, kBlock), kBlock);
      meanwhile += turns != before;
    }
    EXPECT_EQ(meanwhile, device->ends_at_once() ? kReads / 4 : kReads);
    is_done = true;
    join(other);
    queue.close();
  });
}

TEST(AtOnceTest, MemoryDoesAndWhatDelaysDoesNot) {
  const auto ends_at_once = [](const char* text) {
    storage::Device* const device = *storage::open_device(text, {.spill = true});
    const bool ends = device->ends_at_once();
    device->close();
    return ends;
  };
  EXPECT_TRUE(ends_at_once("memory:1M"));
  EXPECT_FALSE(ends_at_once("latency:us=300:[memory:1M]"));
  EXPECT_FALSE(ends_at_once("fault:seed=1:[memory:1M]"));
}

}  // namespace
}  // namespace task
