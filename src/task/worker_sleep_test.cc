// Workers where the kernel, or who filters its calls, has no epoll_pwait2.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "task/scheduler.h"
#include "task/test_tasks.h"

namespace task {
namespace {

// From now on epoll_pwait2 fails with this, for the calling thread and those that it starts.
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

uint64_t voluntary_switches() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nvcsw);
}

// Never by spinning, which gives the CPU up only when it is taken away.
[[noreturn]] void sleep_and_exit(uint32_t error_number) {
  constexpr uint64_t kSleeps = 20, kSleepNs = 1'500'000;
  if (!refuse_epoll_pwait2(error_number)) _exit(0);
  Scheduler scheduler;
  CHECK(scheduler.open({.worker_count = 1, .stack_bytes = kTestStackBytes}).has_value());
  auto sleeper = [] {
    for (uint64_t i = 0; i < kSleeps; ++i) sleep_until(now_ns() + kSleepNs);
  };
  const uint64_t before = voluntary_switches();
  CHECK(scheduler.run(calls("sleeper", sleeper)).has_value());
  const uint64_t switches = voluntary_switches() - before;
  scheduler.close();
  _exit(switches > 0 ? 0 : 1);
}

TEST(WorkerSleepDeathTest, SleepsWithoutEpollPwait2) {
  EXPECT_EXIT(sleep_and_exit(ENOSYS), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(sleep_and_exit(EPERM), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace task
