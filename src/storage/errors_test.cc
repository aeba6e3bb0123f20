// Errors of the medium reach the caller, whatever the operation and however it was started.
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <set>
#include <string>

#include "base/statistics.h"
#include "storage/opening/open.h"
#include "storage/testing/test_process.h"
#include "sys/files.h"

namespace storage {
namespace {

constexpr OpenParameters kSpill = {.overwrite = false, .spill = true};

std::set<int> own_descriptors() {
  int all[256];
  const size_t count = sys::own_descriptors(all);
  return {all, all + count};
}

TEST(Errors, ReachTheCallerThroughDecorators) {
  Device* device = open_device("fault:seed=1:[fault:write_eio=@2:[memory:1M]]", {}).value();
  Queue* queue = device->open_queue(2).value();
  TestIo first(Operation::kWrite, 0, {kBlock}), second(Operation::kWrite, 0, {kBlock});
  queue->run(first.io);
  queue->run(second.io);
  EXPECT_TRUE(first.io.whole());
  EXPECT_EQ(second.io.error, EIO);
  EXPECT_EQ(second.io.transferred_bytes, 0u);
  device->close_queue(queue);
  device->close();
}

TEST(Errors, ReachTheCaller) {
  // (A ring has the medium itself.)
  for (const char* where : {"file:/var/tmp", "aio:/var/tmp", "file:/var/tmp?threads=0"}) {
    const std::set<int> before = own_descriptors();
    auto opened = open_device(where, kSpill);
    ASSERT_TRUE(opened.has_value()) << where << ": " << opened.error().message;
    Device* device = *opened;
    std::set<int> medium = own_descriptors();
    for (int descriptor : before) medium.erase(descriptor);
    ASSERT_EQ(medium.size(), 1u) << where;
    Queue* queue = device->open_queue(8).value();
    // As by a program that closes what is not its own.
    close(*medium.begin());

    TestIo read(Operation::kRead, 0, {kBlock}), two(Operation::kRead, kBlock, {kBlock, kBlock});
    TestIo write(Operation::kWrite, 0, {kBlock}), alone(Operation::kWrite, kBlock, {kBlock});
    TestIo discard(Operation::kDiscard, 0, {kBlock}), flush(Operation::kFlush, 0, {kBlock});
    for (TestIo* io : {&discard, &flush}) io->io.segment_count = 0;
    flush.io.length_bytes = 0;
    Io* batch[] = {&read.io, &two.io, &write.io, &flush.io};
    const auto& counted = base::statistics;
    const uint64_t errors = counted.storage_errors.get(), reads = counted.storage_reads.get();
    queue->run(batch);
    queue->run(alone.io);
    EXPECT_EQ(counted.storage_errors.get(), errors + 5);
    EXPECT_EQ(counted.storage_reads.get(), reads);
    if (device->discards()) queue->run(discard.io);
    for (TestIo* io : {&read, &two, &write, &alone, &flush, &discard}) {
      if (io == &discard && !device->discards()) continue;
      EXPECT_EQ(io->io.error, EBADF) << where << " operation " << static_cast<int>(io->io.operation);
      EXPECT_FALSE(io->io.whole());
      EXPECT_EQ(io->done_count, 1);
    }
    device->close_queue(queue);
    device->close();
  }
}

#if !__has_feature(thread_sanitizer) && \
    !__has_feature(address_sanitizer)  // they need system calls of their own
// The error of a discard in a child in which fallocate fails; -1: something else went wrong.
int error_of_discard(unsigned error) {
  const pid_t child = fork();
  if (child == 0) {
    Device* device = open_device("file:/var/tmp?threads=0", kSpill).value();
    Queue* queue = device->open_queue(1).value();
    if (!device->discards()) _exit(200);
    if (!fail_call(SYS_fallocate, error)) _exit(201);
    TestIo discard(Operation::kDiscard, 0, {kBlock});
    discard.io.segment_count = 0;
    queue->run(discard.io);
    _exit(discard.io.error);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Errors, ADiscardThatCannotBeDoneIsNone) {
  if (error_of_discard(EIO) == 200) GTEST_SKIP() << "/var/tmp cannot discard";
  EXPECT_EQ(error_of_discard(EIO), EIO);
  EXPECT_EQ(error_of_discard(EOPNOTSUPP), 0);
}
#endif

}  // namespace
}  // namespace storage
