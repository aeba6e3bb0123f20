#include "storage/backends/uring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "storage/opening/open.h"
#include "storage/testing/test_process.h"
#include "sys/aio_ring.h"
#include "sys/files.h"
#include "sys/io_ring.h"

namespace storage {
namespace {

constexpr OpenParameters kSpill = {.overwrite = false, .spill = true};

TEST(Uring, QueuesBeyondTheRingsUseBlockingCalls) {
  sys::IoRing ring;
  if (auto opened = ring.open(4); !opened) GTEST_SKIP() << opened.error().message;
  ring.close();
  Device* device = open_device("uring:/var/tmp", kSpill).value();
  std::vector<Queue*> queues;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 250; ++i) {
    auto queue = device->open_queue(2, {.sleeps = true});
    ASSERT_TRUE(queue.has_value()) << queue.error().message;
    queues.push_back(*queue);
  }
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(said, "spillway: "), 1u) << said;
  EXPECT_NE(said.find("uring:/var/tmp"), std::string::npos) << said;
  EXPECT_LT(sys::own_descriptors({}), sys::kMaxOwnDescriptors) << "some are left";
  EXPECT_TRUE(use(*queues.front(), 0));
  EXPECT_TRUE(use(*queues.back(), 0));
  for (Queue* queue : queues) device->close_queue(queue);
  device->close();
  ASSERT_TRUE(ring.open(4).has_value()) << "the rings are free again";
  ring.close();
}

TEST(Uring, UndisturbedQueuesHaveNoRing) {
  sys::IoRing ring;
  if (auto opened = ring.open(4); !opened) GTEST_SKIP() << opened.error().message;
  ring.close();
  if (auto probed = sys::AioRing::probe(); !probed) GTEST_SKIP() << probed.error().message;
  Device* device = open_device("uring:/var/tmp", kSpill).value();
  const size_t before = sys::own_descriptors({});
  Queue* const undisturbed = device->open_queue(2, {.undisturbed = true}).value();
  EXPECT_EQ(sys::own_descriptors({}), before);
  Queue* const other = device->open_queue(2).value();
  EXPECT_EQ(sys::own_descriptors({}), before + 1);
  EXPECT_TRUE(use(*undisturbed, 0));
  device->close_queue(undisturbed);
  device->close_queue(other);
  device->close();
}

TEST(Uring, QueuesByCallsHaveNoDescriptor) {
  Device* device = open_device("uring:/var/tmp", kSpill).value();
  const size_t before = sys::own_descriptors({});
  Queue* const queue = device->open_queue(2, {.by_calls = true}).value();
  EXPECT_EQ(sys::own_descriptors({}), before);
  EXPECT_TRUE(use(*queue, 0));
  device->close_queue(queue);
  device->close();
}

#if !__has_feature(thread_sanitizer)  // cannot start threads in a child of fork
// What one that is used in a child, where system calls fail as sandboxes make them, says on standard error.
std::string said_where(const std::vector<unsigned>& failing_calls) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const int status = in_child([&] {
    for (unsigned number : failing_calls)
      if (!fail_call(number, EPERM)) return false;
    testing::internal::CaptureStderr();
    Device* device = open_device("uring:/var/tmp", kSpill).value();
    Queue* first = device->open_queue(16).value();
    Queue* second = device->open_queue(16).value();
    std::string said = testing::internal::GetCapturedStderr();
    const char* name = failing_calls.size() == 1 ? "aio:/var/tmp" : "file:/var/tmp";
    bool good =
        use(*first, 0) && use(*second, 64 * kBlock) && std::string_view(device->name()).starts_with(name);
    device->close_queue(first);
    device->close_queue(second);
    device->close();
    return good && write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
  });
  char text[1000] = {};
  close(ends[1]);
  if (read(ends[0], text, sizeof text - 1) < 0) text[0] = 0;
  close(ends[0]);
  return status == 0 ? text : "it does not work";
}

TEST(Uring, WhereItIsForbiddenAioServesAndThenTheFileBackend) {
  std::string said = said_where({SYS_io_uring_setup});
  EXPECT_EQ(count_of(said, "\n"), 1u) << said;
  EXPECT_TRUE(said.ends_with(": io_uring: operation not permitted; using Linux AIO instead\n")) << said;
  said = said_where({SYS_io_uring_setup, SYS_io_setup});
  EXPECT_EQ(count_of(said, "\n"), 1u) << said;
  EXPECT_TRUE(
      said.ends_with(": io_uring: operation not permitted; Linux AIO: operation not permitted; "
                     "using blocking calls instead\n"))
      << said;
}

// Linux AIO would do a batch there one after the other.
TEST(Uring, WhereItIsForbiddenThreadsServeBufferedMedia) {
  EXPECT_EQ(in_child([] {
              if (!fail_call(SYS_io_uring_setup, EPERM)) return false;
              auto medium = open_medium("/var/tmp", kSpill);
              medium->is_direct = false;
              testing::internal::CaptureStderr();
              Device* device = make_uring_device(*medium).value();
              const std::string said = testing::internal::GetCapturedStderr();
              Queue* queue = device->open_queue(8).value();
              const bool good =
                  use(*queue, 0) &&
                  said.ends_with(": io_uring: operation not permitted; using blocking calls instead\n");
              device->close_queue(queue);
              device->close();
              return good;
            }),
            0);
}

// Programs spill when memory is short, and then the kernel may have none for requests either.
TEST(Uring, WithoutRoomInTheKernelItGoesOnByCalls) {
  for (unsigned error : {EAGAIN, EBUSY}) {
    EXPECT_EQ(in_child([error] {
                Device* device = open_device("uring:/var/tmp", kSpill).value();
                Queue* queue = device->open_queue(8).value();
                const bool good =
                    use(*queue, 0) && fail_call(SYS_io_uring_enter, error) && use(*queue, 64 * kBlock);
                device->close_queue(queue);
                device->close();
                return good;
              }),
              0)
        << error;
  }
}
#endif

TEST(Uring, AChildOfForkOpensItsOwnQueues) {
  for (const char* text : {"uring:/var/tmp", "aio:/var/tmp", "file:/var/tmp"}) {
    Device* device = open_device(text, kSpill).value();
    Queue* queue = device->open_queue(8).value();
    ASSERT_TRUE(use(*queue, 0));
    int status = in_child([&] {
      device->close_queue(queue);
      Queue* own = device->open_queue(8).value();
      TestIo read(Operation::kRead, 0, {kBlock});
      own->run(read.io);
      bool good = read.first_difference(1) == kBlock && use(*own, 64 * kBlock);
      device->close_queue(own);
      return good;
    });
    EXPECT_EQ(status, 0) << text;
    EXPECT_TRUE(use(*queue, 128 * kBlock)) << text;
    device->close_queue(queue);
    device->close();
  }
}

// Submits 32 writes of 2 MiB each to a queue of its own; were all of them over before the first poll?
bool writes_are_over_when_submitted(Device& device) {
  Queue* queue = device.open_queue(32).value();
  std::vector<std::unique_ptr<TestIo>> ios;
  std::vector<Io*> batch;
  constexpr size_t kBytes = 512 * kBlock;
  for (uint64_t i = 0; i < 32; ++i) {
    ios.push_back(std::make_unique<TestIo>(Operation::kWrite, i * kBytes, std::vector{kBytes}));
    batch.push_back(&ios.back()->io);
  }
  const bool over = queue->submit(batch) == 32 && queue->poll() == 32;
  while (queue->in_flight_count() > 0) queue->wait();
  device.close_queue(queue);
  return over;
}

// It may be killed at any time, and then no write of its may be under way any more.
TEST(Uring, WritesOfAChildAreOverWhenTheyAreSubmitted) {
  for (const char* text : {"uring:/var/tmp", "aio:/var/tmp"}) {
    Device* device = open_device(text, kSpill).value();
    // Over bytes that are there already: writes that make a file longer, Linux AIO does at once.
    writes_are_over_when_submitted(*device);
    EXPECT_EQ(in_child([device] { return writes_are_over_when_submitted(*device); }), 0) << text;
    device->close();
  }
}

// Nor one of a descendant that has the number of the process that opened the device. Here both are the first in a namespace.
TEST(Uring, WritesOfADescendantWithTheOpenersNumberAreOverWhenTheyAreSubmitted) {
  constexpr int kRefused = 77;
  const auto open_and_fork = [] {
    Device* device = open_device("uring:/var/tmp", kSpill).value();
    writes_are_over_when_submitted(*device);
    return in_child([device] {
             if (!writes_are_over_when_submitted(*device) || unshare(CLONE_NEWPID) != 0) return false;
             return in_child([device] { return getpid() == 1 && writes_are_over_when_submitted(*device); }) ==
                    0;
           }) == 0;
  };
  const int status = in_child([&] {
    if (unshare(CLONE_NEWPID) != 0) _exit(kRefused);
    return in_child(open_and_fork) == 0;
  });
  if (status == kRefused) GTEST_SKIP() << "namespaces of processes are not permitted here";
  EXPECT_EQ(status, 0);
}

class UringTexts : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ways, UringTexts, testing::Values("uring:/var/tmp", "uring:/var/tmp?sqpoll=1"));

TEST_P(UringTexts, NoIoIsLostWhenTheRingIsBroken) {
  int before[256], after[256];
  Device* device = open_device(GetParam(), kSpill).value();
  size_t before_count = sys::own_descriptors(before);
  Queue* queue = device->open_queue(8).value();
  size_t after_count = sys::own_descriptors(after);
  if (after_count == before_count) GTEST_SKIP() << "no io_uring here";
  ASSERT_TRUE(use(*queue, 0));
  // What a program does that closes every descriptor it can think of.
  std::set<int> rings(after, after + after_count);
  for (size_t i = 0; i < before_count; ++i) rings.erase(before[i]);
  ASSERT_EQ(rings.size(), 1u);
  close(*rings.begin());

  TestIo one(Operation::kRead, 0, {kBlock}), two(Operation::kRead, kBlock, {kBlock}),
      three(Operation::kRead, 0, {kBlock});
  Io* batch[] = {&one.io, &two.io};
  EXPECT_EQ(queue->submit(batch), 2u);
  while (queue->in_flight_count() > 0) queue->wait();
  Io* last[] = {&three.io};
  queue->run(last);
  const bool has_kernel_thread = strchr(GetParam(), '?') != nullptr;
  for (TestIo* io : {&one, &two, &three}) {
    EXPECT_EQ(io->done_count, 1);
    // A thread of the kernel that is awake reads on.
    if (has_kernel_thread && io->io.error == 0)
      EXPECT_EQ(io->first_difference(1), kBlock);
    else
      EXPECT_EQ(io->io.error, EBADF);
  }
  device->close_queue(queue);
  device->close();
}

// As when a program closes what is not its own: batches reach the medium still, and single Ios say what is wrong.
TEST(Uring, TheRingHasTheMediumItself) {
  auto medium = open_medium("/var/tmp", kSpill);
  ASSERT_TRUE(medium.has_value());
  if (!sys::IoRing::probe()) GTEST_SKIP() << "no io_uring here";
  medium->ends_with_process = false;
  Device* device = make_uring_device(*medium).value();
  Queue* queue = device->open_queue(8).value();
  close(medium->descriptor);
  EXPECT_TRUE(use(*queue, 0));
  TestIo alone(Operation::kRead, 0, {kBlock});
  queue->run(alone.io);
  EXPECT_EQ(alone.io.error, EBADF);
  device->close_queue(queue);
  device->close();
}

// Else the next one finds the file in use, or its room not free yet.
TEST(Uring, TheFileOfAProcessThatIsKilledIsFreeAtOnce) {
  const std::string path = testing::TempDir() + "spillway-killed-" + std::to_string(getpid());
  OpenParameters parameters = kSpill;
  parameters.overwrite = true;
  for (int turn = 0; turn < 10; ++turn) {
    ASSERT_GE(close(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)), 0);
    const int status = in_child([&] {
      Queue* queue = open_device("uring:" + path, parameters).value()->open_queue(8).value();
      if (!use(*queue, 0)) return false;
      kill(getpid(), SIGKILL);
      return false;
    });
    ASSERT_EQ(status, 1000 + SIGKILL);
    auto again = open_device("uring:" + path, parameters);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    (*again)->close();
  }
  unlink(path.c_str());
}

// A SIGALRM every so often, whose handler makes system calls fail with EINTR.
class Interruptions {
 public:
  explicit Interruptions(int every_us) {
    struct sigaction action = {};
    action.sa_handler = [](int) { count.fetch_add(1); };
    sigaction(SIGALRM, &action, &old_action_);
    itimerval every = {{0, every_us}, {0, every_us}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  ~Interruptions() {
    itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &old_action_, nullptr);
  }
  static inline std::atomic<int> count{0};

 private:
  struct sigaction old_action_ = {};
};

TEST(Uring, SignalsInterruptNothing) {
  for (const char* text : {"uring:/var/tmp", "uring:/var/tmp?sqpoll=1", "aio:/var/tmp", "file:/var/tmp",
                           "fault:any_delay_us=1/3x500:[uring:/var/tmp]"}) {
    Device* device = open_device(text, kSpill).value();
    Queue* queue = device->open_queue(8).value();
    {
      Interruptions interruptions(100);
      int start = Interruptions::count;
      while (Interruptions::count < start + 50) ASSERT_TRUE(use(*queue, 0)) << text;
    }
    device->close_queue(queue);
    device->close();
  }
}

// For a process's first write the kernel may start a thread of its own, and gives the write up when signals keep it from that.
TEST(Uring, SignalsCancelNothing) {
  for (int i = 0; i < 40; ++i) {
    int status = in_child([] {
      Interruptions interruptions(20);
      Device* device = open_device("uring:/var/tmp", kSpill).value();
      Queue* queue = device->open_queue(8).value();
      testing::AssertionResult result = use(*queue, 0);
      if (!result) fprintf(stderr, "%s\n", result.message());
      device->close_queue(queue);
      device->close();
      return static_cast<bool>(result);
    });
    EXPECT_EQ(status, 0);
  }
}

// Memory of a test whose pages can be replaced.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) { replace(); }
  ~Pages() { munmap(address_, bytes_); }
  char* at(size_t offset) const { return static_cast<char*>(address_) + offset; }
  size_t bytes() const { return bytes_; }
  // By zeros.
  void replace() {
    address_ = mmap(address_, bytes_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | (address_ != nullptr ? MAP_FIXED : 0), -1, 0);
    ASSERT_NE(address_, MAP_FAILED);
  }

 private:
  void* address_ = nullptr;
  size_t bytes_;
};

// Reads the first block by a ring to `to`, or more; returns the first byte there.
char read_to(Queue& queue, char* to, uint32_t segment_count = 1, size_t segment_bytes = kBlock) {
  const iovec segments[] = {{to, segment_bytes}, {to + segment_bytes, segment_bytes}};
  Io io;
  io.segments = segments;
  io.segment_count = segment_count;
  io.length_bytes = segment_count * segment_bytes;
  Io* batch[] = {&io};
  queue.run(batch);
  EXPECT_TRUE(io.whole()) << io.error;
  return *to;
}

TEST(Uring, FixedMemoryIsUsedWhereItIs) {
  Device* device = open_device("fault:[uring:/var/tmp]", kSpill).value();
  Queue* queue = device->open_queue(8).value();
  TestIo written(Operation::kWrite, 0, {3 * kBlock});
  written.fill(1);
  queue->run(written.io);
  const char first = static_cast<char>(written.bytes[0]);
  ASSERT_NE(first, 0);

  Pages pages(4 * kBlock);
  if (!queue->fix_memory(pages.at(kBlock), 2 * kBlock)) GTEST_SKIP() << "memory cannot be locked here";
  EXPECT_EQ(read_to(*queue, pages.at(kBlock)), first);
  EXPECT_EQ(read_to(*queue, pages.at(0)), first) << "before it";
  // The ring has the old pages; what is not wholly inside goes to the new ones.
  pages.replace();
  EXPECT_EQ(read_to(*queue, pages.at(kBlock)), 0);
  EXPECT_EQ(read_to(*queue, pages.at(2 * kBlock)), 0);
  EXPECT_EQ(read_to(*queue, pages.at(0)), first);
  EXPECT_EQ(read_to(*queue, pages.at(3 * kBlock)), first);
  EXPECT_EQ(read_to(*queue, pages.at(2 * kBlock), 1, 2 * kBlock), first) << "beyond its end";
  EXPECT_EQ(read_to(*queue, pages.at(kBlock), 2), first) << "of two segments";
  pages.replace();
  EXPECT_TRUE(queue->fix_memory(pages.at(0), 4 * kBlock));
  EXPECT_EQ(read_to(*queue, pages.at(kBlock)), first);
  EXPECT_FALSE(queue->fix_memory(pages.at(0), 0)) << "none";
  pages.replace();
  EXPECT_EQ(read_to(*queue, pages.at(kBlock)), first);
  device->close_queue(queue);
  device->close();
}

TEST(Uring, AllMembersOfAStripeFixMemory) {
  Device* device = open_device("stripe:[file:/var/tmp,uring:/var/tmp]?unit=4K", kSpill).value();
  Queue* queue = device->open_queue(8).value();
  ASSERT_TRUE(use(*queue, 0));
  Pages pages(2 * kBlock);
  if (!queue->fix_memory(pages.at(0), pages.bytes())) GTEST_SKIP() << "memory cannot be locked here";
  pages.replace();
  read_to(*queue, pages.at(0), 2);
  EXPECT_NE(*pages.at(0), 0) << "of the file";
  EXPECT_EQ(*pages.at(kBlock), 0) << "of the ring";
  device->close_queue(queue);
  device->close();
}

TEST(Uring, WhatCannotFixMemoryWorksWithout) {
  Pages pages(2 * kBlock);
  for (const char* text : {"memory:64M", "file:/var/tmp", "aio:/var/tmp"}) {
    Device* device = open_device(text, kSpill).value();
    Queue* queue = device->open_queue(8).value();
    EXPECT_FALSE(queue->fix_memory(pages.at(0), pages.bytes())) << text;
    EXPECT_TRUE(use(*queue, 0));
    device->close_queue(queue);
    device->close();
  }
}

using UringDeathTest = testing::Test;

TEST_F(UringDeathTest, AQueueOfOneThreadIsOfOneThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Device* device = open_device("uring:/var/tmp", kSpill).value();
  Queue* queue = device->open_queue(8, {.by_one_thread = true}).value();
  ASSERT_TRUE(use(*queue, 0));
  sys::IoRing ring;
  long refused = 0;
  if (!ring.open(1, {.by_one_thread = true})) GTEST_SKIP() << "no io_uring here";
  std::thread([&] {
    ring.next_submission();
    refused = ring.enter(0);
  }).join();
  ring.close();
  if (refused != -EEXIST) GTEST_SKIP() << "a kernel without SINGLE_ISSUER";
  EXPECT_DEATH(std::thread([&] { use(*queue, 0); }).join(), "opened for one thread is used by another");
  device->close_queue(queue);
  device->close();
}

// As if the device polled; where what lies in between does not, the kernel refuses, and calls serve.
TEST(Uring, PolledQueuesDoEverything) {
  auto medium = open_medium("/var/tmp", kSpill);
  ASSERT_TRUE(medium.has_value());
  if (!medium->is_direct || !sys::IoRing::probe()) GTEST_SKIP() << "no direct I/O by io_uring here";
  medium->polls = true;
  Device* device = make_uring_device(*medium, 16, 0, {.polls_device = true}).value();
  Queue* queue = device->open_queue(16, {.sleeps = true}).value();
  EXPECT_EQ(queue->quiet().descriptor, -1);
  EXPECT_TRUE(use(*queue, 0));
  TestIo discard(Operation::kDiscard, 64 * kBlock, {kBlock}), flush(Operation::kFlush, 0, {kBlock}),
      written(Operation::kWrite, 0, {kBlock});
  discard.io.segment_count = flush.io.segment_count = 0;
  Io* batch[] = {&discard.io, &flush.io, &written.io};
  ASSERT_EQ(queue->submit(batch), 3u);
  EXPECT_EQ(queue->quiet().until_ns, 0u) << "nobody tells of it";
  while (queue->in_flight_count() > 0) queue->poll();
  for (TestIo* io : {&discard, &flush, &written}) EXPECT_EQ(io->io.error, 0);
  device->close_queue(queue);
  device->close();
}

TEST(Uring, WhereNothingPollsInterruptsServe) {
  for (bool is_direct : {false, true}) {
    auto medium = open_medium("/var/tmp", kSpill);
    ASSERT_TRUE(medium.has_value());
    medium->polls = !is_direct;
    medium->is_direct = is_direct;
    testing::internal::CaptureStderr();
    Device* device = make_uring_device(*medium, 16, 0, {.polls_device = true}).value();
    const std::string said = testing::internal::GetCapturedStderr();
    if (sys::IoRing::probe()) {
      EXPECT_EQ(count_of(said, "\n"), 1u) << said;
      EXPECT_NE(said.find("iopoll: "), std::string::npos) << said;
      EXPECT_NE(said.find(is_direct ? "its device does not poll" : "no direct I/O"), std::string::npos)
          << said;
    }
    Queue* queue = device->open_queue(16, {.sleeps = true}).value();
    EXPECT_TRUE(use(*queue, 0));
    device->close_queue(queue);
    device->close();
  }
}

TEST(Uring, SettingsBoundTheDepth) {
  for (const char* text : {"uring:/var/tmp?qd=3", "aio:/var/tmp?qd=3", "file:/var/tmp?qd=3"}) {
    Device* device = open_device(text, kSpill).value();
    Queue* queue = device->open_queue(64).value();
    EXPECT_EQ(queue->depth(), 3u);
    EXPECT_TRUE(use(*queue, 0));
    device->close_queue(queue);
    device->close();
  }
}

}  // namespace
}  // namespace storage
