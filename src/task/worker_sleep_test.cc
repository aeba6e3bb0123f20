// Workers where the kernel, or a filter of system calls, does not provide epoll_pwait2.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <thread>

#include "sys/test_switches.h"
#include "task/scheduler.h"
#include "task/socket.h"
#include "task/test_tasks.h"
#include "task/worker.h"

namespace task {
namespace {

// From now on epoll_pwait2 fails with this error in the calling thread and those that it starts.
bool refuse_epoll_pwait2(uint32_t error_number) {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error_number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = sizeof steps / sizeof *steps, .filter = steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Checks that sleeps are real ones: spinning would give up the CPU only when it is preempted.
[[noreturn]] void sleep_and_exit(uint32_t error_number) {
  constexpr uint64_t kSleeps = 20, kSleepNs = 1'500'000;
  CHECK(refuse_epoll_pwait2(error_number));
  Scheduler scheduler;
  CHECK(scheduler.open({.worker_count = 1, .stack_bytes = kTestStackBytes}).has_value());
  uint64_t switches = 0;
  auto sleeper = [&] {
    const uint64_t before = sys::voluntary_switches();
    for (uint64_t i = 0; i < kSleeps; ++i) sleep_until(now_ns() + kSleepNs);
    switches = sys::voluntary_switches() - before;
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    Socket socket;
    CHECK(socket.take(ends[0]).has_value());
    std::thread peer([&] {
      usleep(2000);
      CHECK(write(ends[1], "x", 1) == 1);
    });
    char byte = 0;
    CHECK(socket.receive(&byte, 1).value_or(0) == 1 && byte == 'x');
    peer.join();
  };
  CHECK(scheduler.run(calls("sleeper", sleeper)).has_value());
  scheduler.close();
  _exit(switches > 0 ? 0 : 1);
}

TEST(WorkerSleepDeathTest, SleepsWithoutEpollPwait2) {
  EXPECT_EXIT(sleep_and_exit(ENOSYS), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(sleep_and_exit(EPERM), testing::ExitedWithCode(0), "");
}

// Finds nothing, and counts how often it is polled.
class IdlePoller final : public base::Poller {
 public:
  explicit IdlePoller(bool expects_soon) : expects_soon_(expects_soon) {}
  size_t poll() override {
    ++polls;
    return 0;
  }
  base::Quiet quiet() override {
    ++quiets;
    return {.until_ns = base::Quiet::kForever};
  }
  bool expects_soon() const override { return expects_soon_; }
  uint64_t polls = 0, quiets = 0;

 private:
  bool expects_soon_;
};

// How often a poller is polled while a task sleeps kSleeps times, with or without a connection.
constexpr uint64_t kSleeps = 20;
uint64_t polls_of_sleeps(bool expects_soon, bool is_connected) {
  Scheduler scheduler;
  EXPECT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = kTestStackBytes}));
  uint64_t polls = 0;
  auto sleeper = [&] {
    IdlePoller poller(expects_soon);
    EXPECT_TRUE(Worker::current()->add_poller(poller));
    Socket socket;
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    if (is_connected)
      EXPECT_TRUE(socket.take(ends[0]));
    else
      close(ends[0]);
    for (uint64_t i = 0; i < kSleeps; ++i) sleep_until(now_ns() + 1'000'000);
    close(ends[1]);
    Worker::current()->remove_poller(poller);
    polls = poller.polls;
    // quiet() may cost a system call for a device: it is called not in each turn, but once before a sleep, and when the poller is added and removed.
    EXPECT_LE(poller.quiets, 2 * kSleeps + 4);
  };
  EXPECT_TRUE(scheduler.run(calls("sleeper", sleeper)));
  scheduler.close();
  return polls;
}

TEST(WorkerSleepTest, LooksOnForDevicesAndNotForPeers) {
  EXPECT_LE(polls_of_sleeps(false, true), 2 * kSleeps + 2);
  EXPECT_GE(polls_of_sleeps(false, false), 4 * kSleeps);
  EXPECT_GE(polls_of_sleeps(true, true), 4 * kSleeps);
}

}  // namespace
}  // namespace task
