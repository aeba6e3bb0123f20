// fork while other threads miss, evict, store, and wait in system calls on spilled memory: the child has what the forking
// thread had, and what others had under a lock that was held for fork; the parent's threads lose nothing.
// flags: -pthread
// levels: O2
// pages: 4K 16K
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 300000, kPairs = 1500, kThreads = 3 };

static unsigned* quiet;
static uint64_t* pairs;  // both of a pair are the same, under the lock
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;

static void* change_pairs(void* seed) {
  uint64_t random = (uint64_t)seed;
  while (!stop) {
    const unsigned at = next_random(&random) % kPairs;
    pthread_mutex_lock(&lock);
    CHECK(pairs[at * 300] == pairs[at * 300 + 299]);
    pairs[at * 300] += 1;
    pairs[at * 300 + 299] += 1;
    pthread_mutex_unlock(&lock);
    sched_yield();  // the lock is nobody's for a moment
  }
  return NULL;
}

static void* use_files(void* unused) {
  (void)unused;
  char* block = malloc(100000);
  FILE* file = tmpfile();
  CHECK(file != NULL);
  for (unsigned turn = 0; !stop; ++turn) {
    memset(block, (int)turn, 100000);
    CHECK(pwrite(fileno(file), block, 100000, 0) == 100000);
    memset(block, 0, 100000);
    CHECK(pread(fileno(file), block, 100000, 0) == 100000);
    for (int i = 0; i < 100000; i += 999) CHECK(block[i] == (char)turn);
  }
  return NULL;
}

int main(void) {
  quiet = malloc(kWords * 4);
  pairs = calloc(kPairs * 300, 8);
  CHECK_SPILLED(quiet);
  for (unsigned i = 0; i < kWords; ++i) quiet[i] = i * 7;
  pthread_t threads[kThreads + 1];
  for (uintptr_t t = 0; t < kThreads; ++t)
    CHECK(pthread_create(&threads[t], NULL, change_pairs, (void*)(t + 1)) == 0);
  CHECK(pthread_create(&threads[kThreads], NULL, use_files, NULL) == 0);
  for (unsigned turn = 0; turn < 6; ++turn) {
    usleep(5000);
    for (unsigned i = turn; i < kWords; i += 500) quiet[i] += 1;
    pthread_mutex_lock(&lock);
    pid_t child = fork();
    pthread_mutex_unlock(&lock);
    CHECK(child >= 0);
    if (child == 0) {
      uint64_t sum = 0;
      for (int look = 0; look < 2; ++look) {
        uint64_t now = 0;
        for (unsigned at = 0; at < kPairs; ++at) {
          if (pairs[at * 300] != pairs[at * 300 + 299]) _exit(3);
          now += pairs[at * 300];
        }
        if (look == 1 && now != sum) _exit(4);
        sum = now;
      }
      for (unsigned i = 0; i < kWords; ++i)
        if (quiet[i] != i * 7 + (i % 500 <= turn)) _exit(5);
      _exit(0);
    }
    expect_end(child);
  }
  stop = 1;
  for (int t = 0; t <= kThreads; ++t) pthread_join(threads[t], NULL);
  for (unsigned at = 0; at < kPairs; ++at) CHECK(pairs[at * 300] == pairs[at * 300 + 299]);
  printf("ok\n");
  return 0;
}
