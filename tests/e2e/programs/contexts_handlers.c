// Handlers that are left by setcontext, of signals and of faults, more often than handlers may be nested. What was left before goes on
// afterwards.
// levels: O0 O2 O3
// pages: 4K
// chaos: 1
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "e2e.h"

enum { kTimes = 300, kWords = 1 << 18, kStackBytes = 64 << 10 };

static ucontext_t plain, *spilled, *volatile target, first, other;
static unsigned* words;
static volatile unsigned handled;
static char* closed;

static void leave(int number) {
  words[number << 10] += 1;
  ++handled;
  setcontext(target);
}

static int blocks(int number) {
  sigset_t now;
  CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
  return sigismember(&now, number);
}

static void count(int step) {
  for (unsigned i = 0; i < kWords; i += 512) words[i + 1] += (unsigned)step;
}
static void aside(void) {
  for (int step = 1; step < 4; ++step) {
    count(step);
    CHECK(swapcontext(&other, &first) == 0);
  }
}

// Comes back by the handler of the signal, or of the fault.
static void come_back(int i, int number) {
  target = i % 2 ? &plain : spilled;
  volatile int times = 0;
  CHECK(getcontext(target) == 0);
  if (times++ == 0) {
    if (number == SIGSEGV)
      *(volatile char*)closed = 1;
    else
      raise(number);
    CHECK(!"the handler has returned");
  }
  CHECK(times == 2 && !blocks(number));
}

int main(void) {
  spilled = malloc(sizeof *spilled);
  CHECK_SPILLED(spilled);
  words = calloc(kWords, sizeof *words);
  CHECK_SPILLED(words);
  closed = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK_SPILLED(closed);
  CHECK(getcontext(&other) == 0);
  other.uc_stack.ss_sp =
      mmap(NULL, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  other.uc_stack.ss_size = kStackBytes;
  makecontext(&other, aside, 0);
  CHECK(swapcontext(&first, &other) == 0);
  const struct sigaction action = {.sa_handler = leave};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
  for (volatile int i = 0; i < kTimes; ++i) come_back(i, i % 3 == 0 ? SIGSEGV : SIGUSR1);
  CHECK(swapcontext(&first, &other) == 0 && swapcontext(&first, &other) == 0);
  for (unsigned i = 0; i < kWords; i += 512) CHECK(words[i + 1] == 6);
  CHECK(words[SIGUSR1 << 10] + words[SIGSEGV << 10] == kTimes && handled == kTimes);
  printf("%u and %u\n", words[SIGUSR1 << 10], words[SIGSEGV << 10]);
  return 0;
}
