#include "storage/uring.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "storage/open.h"
#include "storage/test_io.h"
#include "sys/files.h"
#include "sys/io_ring.h"

namespace storage {
namespace {

constexpr OpenParameters kSpill = {.overwrite = false, .spill = true};

// Writes and reads back a batch.
testing::AssertionResult use(Queue& queue, uint64_t first_offset) {
  std::vector<std::unique_ptr<TestIo>> ios;
  for (Operation operation : {Operation::kWrite, Operation::kRead}) {
    std::vector<Io*> batch;
    for (uint64_t i = 0; i < 8; ++i) {
      ios.push_back(std::make_unique<TestIo>(operation, first_offset + i * kBlock, std::vector{kBlock}));
      if (operation == Operation::kWrite) ios.back()->fill(1);
      batch.push_back(&ios.back()->io);
    }
    queue.run(batch);
  }
  for (auto& io : ios) {
    const bool reads = io->io.operation == Operation::kRead;
    if (!io->io.whole() || io->done_count != 1 || io->first_difference(1) != kBlock)
      return testing::AssertionFailure()
             << (reads ? "read at " : "write at ") << io->io.offset_bytes << ": " << io->io.transferred_bytes
             << " bytes, error " << io->io.error << ", done " << io->done_count << " times, the first "
             << io->first_difference(1) << " bytes as written";
  }
  return testing::AssertionSuccess();
}

// The exit status of a child that ran `body`.
int in_child(const std::function<bool()>& body) {
  pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Uring, QueuesBeyondTheRingsUseBlockingCalls) {
  sys::IoRing ring;
  if (auto opened = ring.open(4); !opened) GTEST_SKIP() << opened.error().message;
  ring.close();
  Device* device = open_device("uring:/var/tmp", kSpill).value();
  std::vector<Queue*> queues;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 300; ++i) {
    auto queue = device->open_queue(2);
    ASSERT_TRUE(queue.has_value()) << queue.error().message;
    queues.push_back(*queue);
  }
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(said, "spillway: "), 1u) << said;
  EXPECT_NE(said.find("uring:/var/tmp"), std::string::npos) << said;
  EXPECT_TRUE(use(*queues.front(), 0));
  EXPECT_TRUE(use(*queues.back(), 0));
  for (Queue* queue : queues) device->close_queue(queue);
  device->close();
  ASSERT_TRUE(ring.open(4).has_value()) << "the rings are free again";
  ring.close();
}

#if !__has_feature(thread_sanitizer)  // cannot start threads in a child of fork
// Makes io_uring_setup fail with EPERM in this process, as containers do.
bool forbid_io_uring() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {4, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Uring, WhereItIsForbiddenTheFileBackendServes) {
  int status = in_child([] {
    if (!forbid_io_uring()) return false;
    testing::internal::CaptureStderr();
    Device* device = open_device("uring:/var/tmp", kSpill).value();
    Queue* first = device->open_queue(16).value();
    Queue* second = device->open_queue(16).value();
    std::string said = testing::internal::GetCapturedStderr();
    bool good = use(*first, 0) && use(*second, 64 * kBlock) && count_of(said, "spillway: ") == 1 &&
                said.find("operation not permitted") != std::string::npos;
    device->close_queue(first);
    device->close_queue(second);
    device->close();
    return good;
  });
  EXPECT_EQ(status, 0);
}
#endif

TEST(Uring, AChildOfForkOpensItsOwnQueues) {
  for (const char* text : {"uring:/var/tmp", "file:/var/tmp"}) {
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

// It may be killed at any time, and then no write of its may be under way any more.
TEST(Uring, WritesOfAChildAreOverWhenTheyAreSubmitted) {
  Device* device = open_device("uring:/var/tmp", kSpill).value();
  EXPECT_EQ(in_child([device] {
              Queue* queue = device->open_queue(32).value();
              std::vector<std::unique_ptr<TestIo>> ios;
              std::vector<Io*> batch;
              constexpr size_t kBytes = 512 * kBlock;
              for (uint64_t i = 0; i < 32; ++i) {
                ios.push_back(std::make_unique<TestIo>(Operation::kWrite, i * kBytes, std::vector{kBytes}));
                batch.push_back(&ios.back()->io);
              }
              return queue->submit(batch) == 32 && queue->poll() == 32;
            }),
            0);
  device->close();
}

TEST(Uring, NoIoIsLostWhenTheRingIsBroken) {
  int before[256], after[256];
  Device* device = open_device("uring:/var/tmp", kSpill).value();
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
  for (TestIo* io : {&one, &two, &three}) {
    EXPECT_EQ(io->io.error, EBADF);
    EXPECT_EQ(io->done_count, 1);
  }
  device->close_queue(queue);
  device->close();
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
  for (const char* text :
       {"uring:/var/tmp", "file:/var/tmp", "fault:any_delay_us=1/3x500:[uring:/var/tmp]"}) {
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

TEST(Uring, SettingsBoundTheDepth) {
  for (const char* text : {"uring:/var/tmp?qd=3", "file:/var/tmp?qd=3"}) {
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
