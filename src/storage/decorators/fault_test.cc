#include "storage/decorators/fault.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/statistics.h"
#include "storage/opening/open.h"
#include "storage/testing/test_queue.h"

namespace storage {
namespace {

class FaultTest : public QueueTest {
 protected:
  void open(const std::string& faults) { open_queue_of("fault:" + faults + ":[memory:16M]"); }

  // One letter for each of `count` single reads: what became of it.
  std::string fates(const std::string& faults, int count) {
    open(faults);
    std::string result;
    for (int i = 0; i < count; ++i) {
      auto io = run(Operation::kRead, 0, 2 * kBlock);
      result += io->io.error == EIO ? 'E' : io->io.error == ENOSPC ? 'S' : io->io.whole() ? '.' : 's';
    }
    close();
    return result;
  }
};

TEST_F(FaultTest, RulesFireWhenTheySay) {
  EXPECT_EQ(fates("read_eio=@3", 6), "..E...");
  EXPECT_EQ(fates("read_eio=@3+", 6), "..EEEE");
  EXPECT_EQ(fates("read_eio=%2", 6), ".E.E.E");
  EXPECT_EQ(fates("read_eio=1/1", 3), "EEE");
  EXPECT_EQ(fates("read_short=@2", 3), ".s.");
  EXPECT_EQ(fates("read_enospc=@2,read_eio=@2", 3), ".S.") << "the first rule's error counts";
  EXPECT_EQ(fates("write_eio=1/1,discard_eio=1/1,flush_eio=1/1", 3), "...");
  EXPECT_EQ(fates("any_eio=@2", 3), ".E.");
}

TEST_F(FaultTest, TheSeedDecides) {
  std::string once = fates("seed=7,read_eio=1/3", 300);
  EXPECT_EQ(fates("seed=7,read_eio=1/3", 300), once);
  EXPECT_NE(fates("seed=8,read_eio=1/3", 300), once);
  auto errors = std::count(once.begin(), once.end(), 'E');
  EXPECT_GT(errors, 60);
  EXPECT_LT(errors, 140);
}

TEST_F(FaultTest, AFailedWriteDoesNotTouchTheMedium) {
  open("write_enospc=@2");
  run(Operation::kWrite, 0, kBlock, 1);
  uint64_t errors = base::statistics.storage_errors.get(), writes = base::statistics.storage_writes.get();
  auto failed = run(Operation::kWrite, 0, kBlock, 2);
  EXPECT_EQ(failed->io.error, ENOSPC);
  EXPECT_EQ(failed->io.transferred_bytes, 0u);
  EXPECT_EQ(base::statistics.storage_errors.get(), errors + 1);
  EXPECT_EQ(base::statistics.storage_writes.get(), writes);
  EXPECT_EQ(run(Operation::kRead, 0, kBlock)->first_difference(1), kBlock);
}

TEST_F(FaultTest, AShortWriteWritesWhatItSays) {
  open("write_short=@2+");
  run(Operation::kWrite, 0, 4 * kBlock, 1);
  auto cut = run(Operation::kWrite, 0, 4 * kBlock, 2);
  EXPECT_EQ(cut->io.error, 0);
  EXPECT_EQ(cut->io.transferred_bytes, 2 * kBlock);
  auto read = run(Operation::kRead, 0, 4 * kBlock);
  EXPECT_EQ(read->first_difference(2), 2 * kBlock);
  auto rest = run(Operation::kRead, 2 * kBlock, 2 * kBlock);
  EXPECT_EQ(rest->first_difference(1), 2 * kBlock);
  // Half of the smallest transfer is nothing.
  TestIo smallest(Operation::kWrite, 0, {device->block_bytes()});
  queue->run(smallest.io);
  EXPECT_EQ(smallest.io.transferred_bytes, 0u);
  EXPECT_EQ(smallest.io.error, 0);
}

// Half of it, then what is left: the caller sees one whole transfer, and each piece is an operation.
TEST_F(FaultTest, ASplitTransferGoesOn) {
  open("write_split=@1,write_split=@2,read_split=1/1");
  auto written = run(Operation::kWrite, 0, 4 * kBlock, 1);
  EXPECT_TRUE(written->io.whole());
  EXPECT_EQ(written->io.segments, written->segments.data());
  auto read = run(Operation::kRead, 0, 4 * kBlock);
  EXPECT_TRUE(read->io.whole()) << "down to single blocks, which cannot be split";
  EXPECT_EQ(read->first_difference(1), 4 * kBlock);
}

TEST_F(FaultTest, ASplitTransferMayStopInItsMiddle) {
  open("write_split=@1,write_enospc=@2,read_split=@1,read_short=@2");
  auto full = run(Operation::kWrite, 0, 4 * kBlock, 1);
  EXPECT_EQ(full->io.error, ENOSPC);
  EXPECT_EQ(full->io.transferred_bytes, 2 * kBlock);
  EXPECT_EQ(full->io.length_bytes, 4 * kBlock);
  auto cut = run(Operation::kRead, 0, 4 * kBlock);
  EXPECT_EQ(cut->io.error, 0);
  EXPECT_EQ(cut->io.transferred_bytes, 3 * kBlock);
  EXPECT_EQ(cut->first_difference(1), 2 * kBlock);
}

TEST_F(FaultTest, CutsInsideSegments) {
  open("read_short=1/1");
  run(Operation::kWrite, 0, 4 * kBlock, 1);
  TestIo read(Operation::kRead, 0, {kBlock / 2, kBlock, 2 * kBlock + kBlock / 2});
  queue->run(read.io);
  EXPECT_EQ(read.io.transferred_bytes, 2 * kBlock);
  EXPECT_EQ(read.first_difference(1), 2 * kBlock) << "and nothing past it was read";
}

TEST_F(FaultTest, ATornWriteFailsAfterHalf) {
  open("write_torn=@2");
  run(Operation::kWrite, 0, 2 * kBlock, 1);
  auto torn = run(Operation::kWrite, 0, 2 * kBlock, 2);
  EXPECT_EQ(torn->io.error, EIO);
  EXPECT_EQ(run(Operation::kRead, 0, kBlock)->first_difference(2), kBlock);
  EXPECT_EQ(run(Operation::kRead, kBlock, kBlock)->first_difference(1), kBlock);
}

TEST_F(FaultTest, DelaysByPolls) {
  open("read_delay_polls=@1x3");
  TestIo slow(Operation::kRead, 0, {kBlock}), quick(Operation::kRead, kBlock, {kBlock});
  Io* batch[] = {&slow.io, &quick.io};
  ASSERT_EQ(queue->submit(batch), 2u);
  EXPECT_EQ(queue->poll(), 1u);
  EXPECT_EQ(quick.done_count, 1) << "overtook the one submitted first";
  EXPECT_EQ(queue->poll(), 0u);
  EXPECT_EQ(queue->poll(), 0u);
  EXPECT_EQ(slow.done_count, 0);
  EXPECT_EQ(queue->poll(), 1u);
  EXPECT_EQ(slow.done_count, 1);
}

TEST_F(FaultTest, WaitOutlastsDelays) {
  open("read_delay_polls=@1x1000,read_delay_us=@2x20000");
  EXPECT_TRUE(run(Operation::kRead, 0, kBlock)->io.whole());
  auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(run(Operation::kRead, 0, kBlock)->io.whole());
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
}

TEST_F(FaultTest, DiscardAndFlushFailToo) {
  open("discard_eio=@1,flush_eio=@1");
  for (Operation operation : {Operation::kDiscard, Operation::kFlush}) {
    for (int expected : {EIO, 0}) {
      Io io;
      io.operation = operation;
      if (operation == Operation::kDiscard) io.length_bytes = kBlock;
      queue->run(io);
      EXPECT_EQ(io.error, expected);
    }
  }
}

TEST_F(FaultTest, SchedulesFromCode) {
  FaultSchedule schedule;
  schedule.add({.operations = operation_bit(Operation::kWrite),
                .when = FaultRule::When::kFrom,
                .error = ENOSPC,
                .n = 2});
  device = make_fault_device(open_device("memory:1M", {}).value(), schedule).value();
  queue = device->open_queue(4).value();
  EXPECT_TRUE(run(Operation::kWrite, 0, kBlock)->io.whole());
  EXPECT_EQ(run(Operation::kWrite, 0, kBlock)->io.error, ENOSPC);
  EXPECT_EQ(run(Operation::kWrite, 0, kBlock)->io.error, ENOSPC);
}

}  // namespace
}  // namespace storage
