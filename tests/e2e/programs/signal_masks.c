// Programs that block SIGSEGV and SIGBUS, or run handlers under a full mask, pass spilled memory to code that
// spillcc did not compile; a fault of their own while they believe SIGSEGV blocked still ends them.
// case: all
// case: handler
// case: waits
// case: reports
// case: inherited
// case: thread
// case: fault => 139
// case: fault-in-handler => 139
// pages: 4K 16K
// levels: O2
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/select.h>
#include <sys/time.h>
#include <unistd.h>
#include <wchar.h>
#include "e2e.h"

enum { kLetters = 9999 };

static wchar_t* text;
static size_t measured;
static void* volatile fault_address;
static sigjmp_buf back;

static void measure(int number) {
  (void)number;
  measured = wcslen(text);
}

static void measure_fault(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  fault_address = info->si_addr;
  measured = wcslen(text);
  siglongjmp(back, 1);
}

static void fault_again(int number) {
  (void)number;
  volatile int* wrong = (int*)0x22220;
  HIDE(wrong);
  *wrong = 1;
}

static void set_handler(int number, void (*handler)(int)) {
  struct sigaction action = {0};
  action.sa_handler = handler;
  sigfillset(&action.sa_mask);
  CHECK(sigaction(number, &action, NULL) == 0);
}

static void* measure_in_thread(void* unused) {
  sigset_t blocked;
  CHECK(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGSEGV) &&
        sigismember(&blocked, SIGUSR1));
  measure(0);
  return unused;
}

static void start_timer(void) {
  struct itimerval soon = {{0, 0}, {0, 20000}};
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  text = malloc((kLetters + 1) * sizeof *text);
  CHECK_SPILLED(text);
  for (int i = 0; i < kLetters; ++i) text[i] = 'a' + i % 20;
  text[kLetters] = 0;
  push_out(3 << 20);
  sigset_t all, old;
  sigfillset(&all);
  sigemptyset(&old);
  if (strcmp(argv[1], "all") == 0) {
    CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    measure(0);
  } else if (strcmp(argv[1], "handler") == 0) {
    set_handler(SIGUSR1, measure);
    raise(SIGUSR1);
    struct sigaction action = {0};
    action.sa_sigaction = measure_fault;
    action.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    for (int round = 0; round < 5; ++round) {
      push_out(3 << 20);
      measured = 0;
      volatile int* wrong = (int*)0x12340;
      HIDE(wrong);
      if (sigsetjmp(back, 1) == 0) *wrong = 1;
      CHECK(fault_address == (void*)0x12340 && measured == kLetters);
    }
  } else if (strcmp(argv[1], "waits") == 0) {
    // The handler runs while the call's own mask is in force.
    set_handler(SIGALRM, measure);
    CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    sigdelset(&all, SIGALRM);
    for (int way = 0; way < 3; ++way) {
      push_out(3 << 20);
      measured = 0;
      start_timer();
      if (way == 0) CHECK(sigsuspend(&all) == -1);
      if (way == 1) CHECK(ppoll(NULL, 0, NULL, &all) == -1);
      if (way == 2) CHECK(pselect(0, NULL, NULL, NULL, NULL, &all) == -1);
      CHECK(errno == EINTR && measured == kLetters);
    }
  } else if (strcmp(argv[1], "reports") == 0) {
    CHECK(sigprocmask(SIG_BLOCK, &all, &old) == 0 && !sigismember(&old, SIGSEGV));
    CHECK(sigprocmask(SIG_BLOCK, NULL, &old) == 0 && sigismember(&old, SIGSEGV) && sigismember(&old, SIGBUS));
    sigemptyset(&all);
    sigaddset(&all, SIGSEGV);
    CHECK(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &old) == 0 && !sigismember(&old, SIGSEGV) &&
          sigismember(&old, SIGBUS));
    CHECK(sigprocmask(SIG_BLOCK, NULL, &old) == 0 && sigismember(&old, SIGSEGV) &&
          !sigismember(&old, SIGUSR1));
    CHECK(sigset(SIGUSR1, SIG_HOLD) == SIG_DFL && sigset(SIGUSR1, measure) == SIG_HOLD);
    raise(SIGUSR1);
    struct sigaction action;
    set_handler(SIGUSR2, measure);
    CHECK(sigaction(SIGUSR2, NULL, &action) == 0 && sigismember(&action.sa_mask, SIGSEGV));
  } else if (strcmp(argv[1], "inherited") == 0) {
    // Started by a program that blocks all signals.
    posix_spawnattr_t attributes;
    pid_t child;
    char* arguments[] = {argv[0], "blocked", NULL};
    CHECK(posix_spawnattr_init(&attributes) == 0 && posix_spawnattr_setsigmask(&attributes, &all) == 0);
    CHECK(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK) == 0);
    CHECK(posix_spawn(&child, "/proc/self/exe", NULL, &attributes, arguments, environ) == 0);
    expect_end(child);
    measure(0);
  } else if (strcmp(argv[1], "blocked") == 0) {
    measure_in_thread(NULL);
  } else if (strcmp(argv[1], "thread") == 0) {
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setsigmask_np(&attributes, &all) == 0);
    CHECK(pthread_create(&thread, &attributes, measure_in_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  } else if (strcmp(argv[1], "fault") == 0) {
    signal(SIGSEGV, measure);
    CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    fault_again(0);
  } else {
    signal(SIGSEGV, fault_again);
    fault_again(0);
  }
  CHECK(measured == kLetters);
  printf("%s\n", argv[1]);
  return 0;
}
