// A handler comes in the middle of a fault on memory that another thread has just protected, and needs pages that are not in memory: its own
// thread has no lock of theirs.
// flags: -pthread
// levels: O2
// chaos: 0
// memory: 4M
// expect: cache.evictions>=100 spill.guards>=100
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include "e2e.h"

#define P 4096
enum { kRounds = 5000, kWords = 1 << 20 };

static uint64_t* words;
static volatile uint64_t* counted;
static volatile uint64_t seen, sum;
static volatile int is_protected, ends;

static void on_fault(int number) {
  CHECK(number == SIGSEGV && is_protected);
  CHECK(mprotect((void*)counted, P, PROT_READ | PROT_WRITE) == 0);
  is_protected = 0;
}

static void on_alarm(int number) {
  static uint64_t state;
  sum += words[next_random(&state) % kWords] + (uint64_t)number;
}

// What a loop translates once.
__attribute__((noinline)) static void count_on(volatile uint64_t* counter, volatile uint64_t* to) {
  while (!ends) {
    const uint64_t next = *counter + 1;
    *counter = next;
    *to = next;
  }
}
static void* count(void* unused) {
  count_on(counted, &seen);
  return unused;
}

int main(void) {
  words = malloc(kWords * sizeof *words);
  CHECK_SPILLED(words);
  for (size_t i = 0; i < kWords; ++i) words[i] = i;
  counted = mmap(NULL, 16 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(counted != MAP_FAILED);
  CHECK_SPILLED(counted);
  signal(SIGSEGV, on_fault);
  signal(SIGALRM, on_alarm);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, count, NULL) == 0);
  // The other thread's alone.
  sigset_t alarms;
  CHECK(sigemptyset(&alarms) == 0 && sigaddset(&alarms, SIGALRM) == 0);
  CHECK(pthread_sigmask(SIG_BLOCK, &alarms, NULL) == 0);
  CHECK(setitimer(ITIMER_REAL, &(struct itimerval){{0, 100}, {0, 100}}, NULL) == 0);
  for (int round = 0; round < kRounds; ++round) {
    is_protected = 1;
    CHECK(mprotect((void*)counted, P, PROT_NONE) == 0);
    while (is_protected) sched_yield();
  }
  CHECK(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0);
  ends = 1;
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(*counted == seen && sum > 0);
  puts("end");
  return 0;
}
