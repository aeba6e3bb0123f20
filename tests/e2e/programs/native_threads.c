// Threads that touch the same regions for the first time, native and instrumented code at once, with a handler that interrupts
// them and touches other ones, until memory is full and beyond.
// levels: O2
// spillcc: -DSPILLED
// flags: -pthread
// memory: 24M
// chaos: 6
// expect: spill.native_ms>=1 spill.native_end>=1 cache.regions_mapped>=6 cache.regions_unmapped>=1 cache.evictions>=1000
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include "native.h"

enum { kThreads = 4, kWords = 5 << 20, kLines = 8, kTicks = 1 << 17 };

static uint64_t* shared;  // word i is thread i % kThreads's, but for each kLines-th line
static uint64_t* ticks;
static volatile unsigned tick_count;

NATIVE static void tick(int number) {
  (void)number;
  const unsigned i = __atomic_fetch_add(&tick_count, 1, __ATOMIC_RELAXED) % kTicks;
  __atomic_fetch_add(&ticks[(uint64_t)i * 40503 % kTicks * 16], 1, __ATOMIC_RELAXED);
}

NATIVE static size_t store_native_words(size_t at, size_t end, uint64_t self) {
  for (; at < end && native(); at += kThreads) shared[at] = at ^ self;
  return at;
}
static void store_words(size_t at, size_t end, uint64_t self) {
  for (; at < end; at += kThreads) shared[at] = at ^ self;
}

static void* run(void* argument) {
  const size_t self = (size_t)argument;
  // In pieces, of which each thread does each in its own way; all come to a region at about the same time.
  enum { kPiece = 16384 };
  for (size_t piece = 0; piece < kWords; piece += kPiece) {
    size_t at = piece + self;
    if ((piece / kPiece + self) % 3 != 0) at = store_native_words(at, piece + kPiece, self);
    store_words(at, piece + kPiece, self);
  }
  for (size_t at = self; at < kWords; at += kThreads) CHECK(shared[at] == (at ^ self));
  for (size_t at = self; at < kWords; at += kThreads * 1024 * 3)
    CHECK(load_native(&shared[at]) == (at ^ self));
  return NULL;
}

int main(void) {
  shared = malloc(kWords * sizeof *shared);
  ticks = calloc(kTicks * 16, sizeof *ticks);
  CHECK_SPILLED(shared);
  CHECK_SPILLED(ticks);
  struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, run, (void*)i) == 0);
  for (size_t i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  const struct itimerval never = {{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  uint64_t sum = 0;
  for (size_t i = 0; i < kTicks; ++i) sum += ticks[i * 16];
  CHECK(sum == tick_count);
  for (size_t i = 0; i < kWords; ++i) CHECK(shared[i] == (i ^ i % kThreads));
  puts("all there");
}
