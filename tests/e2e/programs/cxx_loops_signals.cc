// Signals that come while a loop of tasks (spillway/task.h) runs: handlers run soon, miss as they like, and none is lost; masks and
// jumps are the iteration's own.
// flags: -std=c++17 -pthread
// levels: O0 O2
// expect: spill.task_misses>=300 cache.evictions>=300
// memory: 2M
// pages: 4K 16K
#include "../../../include/spillway/task.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "e2e.h"

namespace {

using spillway::parallel_for;

constexpr size_t kWords = size_t{1} << 20;  // 8 MiB

uint64_t mixed(uint64_t x) {
  uint64_t state = x;
  return next_random(&state);
}

uint64_t* data;

void touch(uint64_t i) {
  const uint64_t at = mixed(i) % kWords;
  CHECK(data[at] == mixed(at));
}

std::atomic<uint64_t> handled{0};

void handle_and_miss(int) {
  const int kept = errno;
  const uint64_t number = handled.fetch_add(1);
  for (uint64_t k = 0; k < 4; ++k) touch(1000000 + number * 4 + k);
  errno = kept;
}

void set_handler(int number, void (*handler)(int), int flags = 0) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  CHECK(sigaction(number, &action, nullptr) == 0);
}

void test_handlers_that_miss() {
  set_handler(SIGALRM, handle_and_miss, SA_RESTART);
  handled = 0;
  const itimerval often = {{0, 3000}, {0, 3000}};
  CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  for (int round = 0; handled < 20; ++round) parallel_for(0, 500, [=](int i) { touch(round * 500 + i); });
  const itimerval never = {};
  CHECK(setitimer(ITIMER_REAL, &never, nullptr) == 0);
  puts("handlers that miss");
}

// Also when workers have nothing to do but to wait for others' iterations.
void test_a_handler_ends_the_loop() {
  static std::atomic<bool> stop;
  for (int round = 0; round < 5; ++round) {
    stop = false;
    set_handler(SIGUSR2, [](int) { stop = true; });
    std::thread sender([] {
      usleep(20000);
      kill(getpid(), SIGUSR2);
    });
    parallel_for(0, 3, {8, 2, 1, 0}, [&](int i) {
      for (uint64_t k = 0; !stop; ++k) touch(i * 1000 + k % 1000);
    });
    sender.join();
  }
  puts("a handler ends the loop");
}

// A worker without iterations handles what is sent to it, too. (Natively, or if the caller had all iterations, there is none.)
void test_idle_workers() {
  static std::atomic<bool> came;
  set_handler(SIGUSR2, [](int) { came = true; });
  int tested = 0;
  for (int round = 0; round < 100 && tested < 5; ++round) {
    came = false;
    const pthread_t caller = pthread_self();
    pthread_t other = caller;
    std::atomic<bool> other_is_set{false};
    parallel_for(0, 2, {2, 2, 1, 0}, [&](int i) {
      if (!pthread_equal(pthread_self(), caller)) {
        other = pthread_self();
        other_is_set = true;
        return;
      }
      for (uint64_t k = 0; k < 3000 && !other_is_set; ++k) touch(i * 1000 + k);
      if (!other_is_set) return;
      usleep(20000);
      CHECK(pthread_kill(other, SIGUSR2) == 0);
      for (int waits = 0; waits < 100000 && !came; ++waits) usleep(1000);
      CHECK(came);
    });
    if (came) ++tested;
  }
  CHECK(tested > 0 || !runs_spilled());
  puts("idle workers");
}

void test_masks() {
  set_handler(SIGUSR1, [](int) { handled.fetch_add(1); });
  handled = 0;
  parallel_for(0, 300, [](int i) {
    touch(i + 2000);
    sigset_t one, old;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &one, &old) == 0);
    CHECK(sigismember(&old, SIGUSR1) == 0);
    touch(i + 3000);
    const uint64_t before = handled;
    CHECK(raise(SIGUSR1) == 0);
    touch(i + 4000);
    sigset_t now;
    CHECK(pthread_sigmask(SIG_SETMASK, nullptr, &now) == 0);
    CHECK(sigismember(&now, SIGUSR1) == 1);
    CHECK(pthread_sigmask(SIG_SETMASK, &old, nullptr) == 0);
    CHECK(handled > before);
    touch(i + 5000);
  });
  CHECK(handled == 300);
  puts("masks");
}

// A child of the process, pending and blocked everywhere, is whose it was before the loop.
void test_what_waits_for_the_process() {
  sigset_t one, old;
  sigemptyset(&one);
  sigaddset(&one, SIGCHLD);
  CHECK(pthread_sigmask(SIG_BLOCK, &one, &old) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) _exit(0);
  siginfo_t info;
  CHECK(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  parallel_for(0, 200, [](int i) { touch(i + 14000); });
  const timespec soon = {100, 0};
  CHECK(sigtimedwait(&one, &info, &soon) == SIGCHLD && info.si_pid == child);
  CHECK(waitpid(child, nullptr, 0) == child);
  CHECK(pthread_sigmask(SIG_SETMASK, &old, nullptr) == 0);
  puts("what waits for the process");
}

// A body on a stack of its own, and one that gives its worker another stack for handlers.
void test_stacks() {
  parallel_for(0, 100, [](int i) {
    static thread_local ucontext_t outer, inner;
    static thread_local int index;
    std::vector<char> stack(64 << 10);
    index = i;
    const stack_t alternate = {stack.data(), 0, 16 << 10};
    stack_t before;
    CHECK(sigaltstack(&alternate, &before) == 0);
    CHECK(getcontext(&inner) == 0);
    inner.uc_stack = {stack.data() + (16 << 10), 0, 48 << 10};
    inner.uc_link = &outer;
    makecontext(
        &inner,
        [] {
          for (int k = 0; k < 20; ++k) touch(index * 20 + k + 16000);
        },
        0);
    CHECK(swapcontext(&outer, &inner) == 0);
    CHECK(sigaltstack(&before, nullptr) == 0);
  });
  // One that a body leaves to the calling thread stays.
  static char handlers_stack[16 << 10];
  const pthread_t caller = pthread_self();
  bool is_set = false;
  // The other worker may be so much faster that it has all iterations.
  while (!is_set)
    parallel_for(0, 2000, [&](int i) {
      touch(i + 18000);
      if (!pthread_equal(pthread_self(), caller)) return;
      const stack_t own = {handlers_stack, 0, sizeof handlers_stack};
      CHECK(sigaltstack(&own, nullptr) == 0);
      is_set = true;
    });
  stack_t now;
  CHECK(sigaltstack(nullptr, &now) == 0);
  CHECK(now.ss_sp == handlers_stack && (now.ss_flags & SS_DISABLE) == 0);
  puts("stacks");
}

thread_local sigjmp_buf* jump_to;

void test_jumps() {
  set_handler(SIGUSR1, [](int) { siglongjmp(*jump_to, 1); });
  set_handler(SIGSEGV, [](int) { siglongjmp(*jump_to, 2); });
  parallel_for(0, 200, [](int i) {
    touch(i + 8000);
    sigjmp_buf here;
    volatile int times = 0;
    const int from = sigsetjmp(here, 1);
    if (from == 0) {
      jump_to = &here;
      CHECK(raise(SIGUSR1) == 0);
      CHECK(false);
    }
    times = times + 1;
    touch(i + 9000 + times * 1000);
    if (times == 1) {
      CHECK(from == 1);
      jump_to = &here;
      volatile char* nowhere = nullptr;
      *nowhere = 1;
      CHECK(false);
    }
    CHECK(from == 2 && times == 2);
    touch(i + 12000);
  });
  set_handler(SIGSEGV, SIG_DFL);
  puts("jumps");
}

}  // namespace

int main() {
  data = static_cast<uint64_t*>(spilled_zeros(kWords * sizeof(uint64_t)));
  for (size_t i = 0; i < kWords; ++i) data[i] = mixed(i);
  test_handlers_that_miss();
  test_a_handler_ends_the_loop();
  test_idle_workers();
  test_masks();
  test_what_waits_for_the_process();
  test_stacks();
  test_jumps();
  return 0;
}
