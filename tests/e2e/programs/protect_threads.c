// Threads protect and open OS pages of their own to and fro while others work on their neighbours, which share the cache's
// pages with them; and a thread that is in the middle of a loop over memory stops when another one protects it.
// flags: -pthread
// case: own
// case: stop
// levels: O2
// pages: 64K 4K 16K
// memory: 4M
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

#define P 4096
#define RW (PROT_READ | PROT_WRITE)
enum { kThreads = 4, kPages = 2000 };

static char* area;
static __thread sigjmp_buf back;
static __thread int expects_fault;
static __thread char* fault_at;

static volatile uint64_t* volatile counted;
static volatile int is_waiting, may_go_on, ends;

static void on_fault(int number, siginfo_t* info, void* context) {
  (void)context;
  CHECK(number == SIGSEGV);
  if (!expects_fault && (uint64_t*)info->si_addr == counted) {
    // Until whoever protected it opens it again.
    is_waiting = 1;
    while (!may_go_on) usleep(100);
    may_go_on = 0;
    return;
  }
  CHECK(expects_fault);
  fault_at = info->si_addr;
  siglongjmp(back, 1);
}

static int faults(volatile char* at, int stores) {
  expects_fault = 1;
  if (sigsetjmp(back, 1) == 0) {
    if (stores)
      *at = *at + 1;
    else
      (void)*at;
    expects_fault = 0;
    return 0;
  }
  expects_fault = 0;
  CHECK(fault_at == at);
  return 1;
}

// Pages number, number + kThreads, ...
static void* own(void* given) {
  const int number = (int)(uintptr_t)given;
  enum { kOwn = kPages / kThreads };
  uint64_t random = (uint64_t)number + 1;
  char value[kOwn] = {0}, state[kOwn] = {0};  // 0 open, 1 no access, 2 to be read
  for (int step = 0; step < 3000; ++step) {
    const int i = (int)(next_random(&random) % kOwn);
    char* page = area + (size_t)(i * kThreads + number) * P;
    const size_t at = next_random(&random) % (P - 300);
    if (state[i] == 1) {
      CHECK(faults(page + at, 0) && faults(page + at, 1));
    } else {
      for (size_t k = 0; k < 300; ++k) CHECK(page[at + k] == value[i]);
      if (state[i] == 2) CHECK(faults(page + at, 1));
    }
    switch (next_random(&random) % 5) {
      case 0:
        CHECK(mprotect(page, P, PROT_NONE) == 0);
        state[i] = 1;
        break;
      case 1:
        CHECK(mprotect(page, P, PROT_READ) == 0);
        state[i] = 2;
        break;
      case 2:
        CHECK(madvise(page, P, MADV_DONTNEED) == 0);
        value[i] = 0;
        break;
      default:
        CHECK(mprotect(page, P, RW) == 0);
        state[i] = 0;
        value[i] = (char)next_random(&random);
        memset(page, value[i], P);
    }
  }
  for (int i = 0; i < kOwn; ++i) {
    char* page = area + (size_t)(i * kThreads + number) * P;
    CHECK(mprotect(page, P, RW) == 0);
    for (size_t k = 0; k < P; ++k) CHECK(page[k] == value[i]);
  }
  return NULL;
}

// What a loop translates once.
__attribute__((noinline)) static void count_on(volatile uint64_t* counter, volatile uint64_t* seen) {
  while (!ends) {
    const uint64_t next = *counter + 1;
    *counter = next;
    *seen = next;
  }
}
static volatile uint64_t seen;
static void* count(void* unused) {
  (void)unused;
  count_on(counted, &seen);
  return NULL;
}

static void stop(void) {
  char* page = area + 7 * P;
  counted = (uint64_t*)(page + 1000);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, count, NULL) == 0);
  for (int round = 0; round < 60; ++round) {
    const uint64_t begin = seen;
    while (seen < begin + 1000) usleep(100);
    CHECK(mprotect(page, P, round % 2 == 0 ? PROT_NONE : PROT_READ) == 0);
    // What it stored before it may tell of now.
    const uint64_t then = seen;
    usleep(500);
    while (!is_waiting) usleep(100);
    CHECK(seen <= then + 1);
    const uint64_t now = seen;
    CHECK(mprotect(page, P, PROT_READ) == 0);
    CHECK(*counted == now);
    if (round % 7 == 0) push_out(6 << 20);
    CHECK(mprotect(page, P, RW) == 0);
    is_waiting = 0;
    may_go_on = 1;
  }
  ends = 1;
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(*counted == seen);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  area = mmap(NULL, kPages * P, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(area != MAP_FAILED);
  CHECK_SPILLED(area);
  if (strcmp(argv[1], "own") == 0) {
    pthread_t threads[kThreads];
    for (uintptr_t t = 0; t < kThreads; ++t) CHECK(pthread_create(&threads[t], NULL, own, (void*)t) == 0);
    for (int t = 0; t < kThreads; ++t) CHECK(pthread_join(threads[t], NULL) == 0);
  } else {
    stop();
  }
  puts("end");
  return 0;
}
