// Calls that a signal interrupts, with results in spilled memory, to which the handler stores meanwhile.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spill/testing/mirrored.h"

extern "C" {
pid_t __spill_waitpid(pid_t, int*, int);
int __spill_select(int, fd_set*, fd_set*, fd_set*, timeval*);
int __spill_sigtimedwait(const sigset_t*, siginfo_t*, const timespec*);
int __spill_nanosleep(const timespec*, timespec*);
int __spill_clock_nanosleep(clockid_t, int, const timespec*, timespec*);
ssize_t __spill_recvmsg(int, msghdr*, int);
}

namespace {

using fake::read_object;
using fake::spilled_object;
using Interrupted = fake::SpillTest;

// Calls wait() again and again until it was interrupted, by a handler that stores all of `stored` to spilled memory at `to`.
template <class T, class Wait>
void interrupt(T* to, const T& stored, Wait wait) {
  static T* where;
  static T what;
  where = to;
  what = stored;
  struct sigaction action = {}, before;
  action.sa_handler = [](int) { spill::copy(where, &what, sizeof what); };
  sigaction(SIGALRM, &action, &before);
  const itimerval often = {{0, 100'000}, {0, 100'000}}, never = {};
  setitimer(ITIMER_REAL, &often, nullptr);
  EXPECT_EQ(wait(), -1);
  EXPECT_EQ(errno, EINTR);
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

// The status of a child that it has found, or sets that it has changed.
TEST_F(Interrupted, WhatAHandlerStoresMeanwhileStays) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  int* status = spilled_object<int>(1);
  interrupt(status, 77, [=] { return __spill_waitpid(child, status, 0); });
  EXPECT_EQ(read_object(status), 77);
  kill(child, SIGKILL);
  EXPECT_EQ(__spill_waitpid(child, status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(read_object(status)));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  fd_set before, other;
  FD_ZERO(&before);
  FD_ZERO(&other);
  FD_SET(ends[0], &before);
  FD_SET(7, &other);
  fd_set* reads = spilled_object(before);
  interrupt(reads, other, [&] { return __spill_select(ends[0] + 1, reads, nullptr, nullptr, nullptr); });
  const fd_set after = read_object(reads);
  EXPECT_EQ(memcmp(&after, &other, sizeof other), 0);
  close(ends[0]);
  close(ends[1]);
}

// Information about a signal that did not come, and what is left of a sleep: the kernel stores neither.
TEST_F(Interrupted, ResultsThatTheKernelLeavesAloneAreNotStored) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  siginfo_t told = {};
  told.si_signo = 77;
  siginfo_t* info = spilled_object<siginfo_t>();
  const timespec minute = {60, 0};
  interrupt(info, told, [&] { return __spill_sigtimedwait(&set, info, &minute); });
  EXPECT_EQ(read_object(info).si_signo, 77);

  timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += 60;
  timespec* rest = spilled_object<timespec>({1, 2});
  interrupt(rest, timespec{3, 4}, [&] {
    errno = __spill_clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, rest);
    return errno == 0 ? 0 : -1;
  });
  EXPECT_EQ(read_object(rest).tv_sec, 3);
  EXPECT_EQ(read_object(rest).tv_nsec, 4);
  // A sleep that begins now is told of.
  interrupt(rest, timespec{300, 4}, [&] { return __spill_nanosleep(&minute, rest); });
  EXPECT_LT(read_object(rest).tv_sec, 60);
}

TEST_F(Interrupted, NoControlMessagesAreStored) {
  struct Control {
    alignas(cmsghdr) char bytes[64];
  };
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Control* control = spilled_object<Control>();
  char byte = 0;
  iovec part = {&byte, 1};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof *control;
  Control stored;
  memset(&stored, 'h', sizeof stored);
  interrupt(control, stored, [&] { return __spill_recvmsg(ends[0], &header, 0); });
  const Control after = read_object(control);
  EXPECT_EQ(memcmp(&after, &stored, sizeof stored), 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
