// The aio backend's own: what happens where the kernel refuses. What every backend promises: conformance_test.cc.
#include "storage/backends/aio.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>

#include <string>

#include "storage/opening/open.h"
#include "storage/testing/test_process.h"
#include "sys/kernel.h"

namespace storage {
namespace {

constexpr OpenParameters kSpill = {.overwrite = false, .spill = true};

// Asked by calls of the test's own: a probe of ours that fails must not look like a kernel that has none.
bool kernel_has_aio() {
  aio_context_t context = 0;
  if (sys::failed(sys::syscall(SYS_io_setup, 1, &context))) return false;
  sys::syscall(SYS_io_destroy, context);
  return true;
}

TEST(Aio, IsThere) {
  if (!kernel_has_aio()) GTEST_SKIP() << "no Linux AIO here";
  testing::internal::CaptureStderr();
  Device* device = open_device("aio:/var/tmp", kSpill).value();
  Queue* queue = device->open_queue(8).value();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(std::string_view(device->name()).starts_with("aio:/var/tmp"));
  EXPECT_TRUE(use(*queue, 0));
  device->close_queue(queue);
  device->close();
}

// Submit does the work, and says what became of it as ever.
TEST(Aio, BufferedMedia) {
  auto medium = open_medium("/var/tmp", kSpill);
  ASSERT_TRUE(medium.has_value()) << medium.error().message;
  const long flags = sys::syscall(SYS_fcntl, medium->descriptor, F_GETFL);
  sys::syscall(SYS_fcntl, medium->descriptor, F_SETFL, flags & ~O_DIRECT);
  Device* device = make_aio_device(*medium).value();
  Queue* queue = device->open_queue(16).value();
  EXPECT_TRUE(use(*queue, 0));
  TestIo across(Operation::kRead, 7 * kBlock, {kBlock, kBlock});
  Io* batch[] = {&across.io};
  ASSERT_EQ(queue->submit(batch), 1u);
  EXPECT_EQ(queue->wait(), 1u);
  EXPECT_EQ(across.io.transferred_bytes, kBlock);
  device->close_queue(queue);
  device->close();
}

#if !__has_feature(thread_sanitizer)  // cannot start threads in a child of fork
TEST(Aio, WhereItIsForbiddenTheFileBackendServes) {
  for (unsigned error : {ENOSYS, EPERM}) {
    EXPECT_EQ(in_child([&] {
                if (!fail_call(SYS_io_setup, error)) return false;
                testing::internal::CaptureStderr();
                Device* device = open_device("aio:/var/tmp", kSpill).value();
                Queue* first = device->open_queue(16).value();
                Queue* second = device->open_queue(16).value();
                const std::string said = testing::internal::GetCapturedStderr();
                const bool good = use(*first, 0) && use(*second, 64 * kBlock) && count_of(said, "\n") == 1 &&
                                  said.find("Linux AIO: ") != std::string::npos &&
                                  said.ends_with("; using blocking calls instead\n");
                device->close_queue(first);
                device->close_queue(second);
                device->close();
                return good;
              }),
              0)
        << error;
  }
}
#endif

// What the system has of requests (fs.aio-max-nr) may be gone when a thread opens its queue.
TEST(Aio, QueuesBeyondTheSystemsRequestsUseBlockingCalls) {
  EXPECT_EQ(in_child([] {
              Device* device = open_device("aio:/var/tmp", kSpill).value();
              Queue* before = device->open_queue(8).value();
              if (!fail_call(SYS_io_setup, EAGAIN)) return false;
              testing::internal::CaptureStderr();
              Queue* second = device->open_queue(8).value();
              Queue* third = device->open_queue(8).value();
              const std::string said = testing::internal::GetCapturedStderr();
              const bool good = use(*before, 0) && use(*second, 64 * kBlock) && use(*third, 128 * kBlock) &&
                                count_of(said, "\n") == 1 &&
                                said.find("fs.aio-max-nr") != std::string::npos &&
                                said.find("for some threads") != std::string::npos;
              for (Queue* queue : {before, second, third}) device->close_queue(queue);
              device->close();
              return good;
            }),
            0);
}

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)  // they need calls of their own
// How a write, a flush and a read end, submitted together, when a system call fails: their errors, or -1 for one that
// is not whole although it has none. 1000: not at all.
std::string errors_when(unsigned call, unsigned error, bool by_polling) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const int status = in_child([&] {
    Device* device = open_device("aio:/var/tmp", kSpill).value();
    Queue* queue = device->open_queue(8).value();
    if (!use(*queue, 0)) return false;
    if (!fail_call(call, error)) return false;
    TestIo write_io(Operation::kWrite, 0, {kBlock, kBlock}), flush(Operation::kFlush, 0, {kBlock});
    TestIo read_io(Operation::kRead, 4 * kBlock, {kBlock});
    flush.io.segment_count = 0;
    flush.io.length_bytes = 0;
    Io* batch[] = {&write_io.io, &flush.io, &read_io.io};
    if (queue->submit(batch) != 3) return false;
    while (queue->in_flight_count() > 0) by_polling ? queue->poll() : queue->wait();
    std::string text;
    for (TestIo* io : {&write_io, &flush, &read_io}) {
      const int shown = io->done_count != 1 ? 1000 : io->io.error == 0 && !io->io.whole() ? -1 : io->io.error;
      text += std::to_string(shown) + " ";
    }
    device->close_queue(queue);
    device->close();
    return write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
  });
  char text[100] = {};
  close(ends[1]);
  if (read(ends[0], text, sizeof text - 1) < 0) text[0] = 0;
  close(ends[0]);
  return status == 0 ? text : "it ended with " + std::to_string(status);
}

std::string three(int write, int flush, int read) {
  return std::to_string(write) + " " + std::to_string(flush) + " " + std::to_string(read) + " ";
}

TEST(Aio, WhatTheKernelRefusesFailsWithItsReason) {
  for (bool by_polling : {false, true}) {
    EXPECT_EQ(errors_when(SYS_io_submit, EIO, by_polling), three(EIO, EIO, EIO));
    EXPECT_EQ(errors_when(SYS_io_submit, ENOSPC, by_polling), three(ENOSPC, ENOSPC, ENOSPC));
    // As by a kernel whose AIO has no flush.
    EXPECT_EQ(errors_when(SYS_io_submit, EINVAL, by_polling), three(EINVAL, 0, EINVAL));
  }
}

TEST(Aio, WithoutRoomInTheKernelItGoesOnByCalls) {
  for (bool by_polling : {false, true}) {
    EXPECT_EQ(errors_when(SYS_io_submit, EAGAIN, by_polling), three(0, 0, 0));
    EXPECT_EQ(errors_when(SYS_io_submit, EINTR, by_polling), three(0, 0, 0));
  }
}

TEST(Aio, WhoeverCannotWaitLooks) {
  for (unsigned error : {EINTR, EPERM, EINVAL})
    EXPECT_EQ(errors_when(SYS_io_getevents, error, false), three(0, 0, 0)) << error;
}
#endif

}  // namespace
}  // namespace storage
