// Threads that have ended take nothing of what those that live may load ahead of use.
// flags: -pthread
// levels: O2
// memory: 4M
// chaos: 0
// expect: cache.prefetches>=100
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "e2e.h"

// More threads than may load ahead at a time; and steps that are too long for one read.
enum { kThreads = 40, kPages = 4096, kStep = 5, kWordsPerPage = 4096 / sizeof(uint64_t) };

static pthread_barrier_t all_are_there;

static void* meet(void* none) {
  pthread_barrier_wait(&all_are_there);
  return none;
}

__attribute__((noinline)) static uint64_t sum_in_steps(const uint64_t* words) {
  uint64_t sum = 0;
  for (size_t page = 0; page < kPages; page += kStep) sum += words[page * kWordsPerPage];
  return sum;
}

int main(void) {
  pthread_t threads[kThreads];
  CHECK(pthread_barrier_init(&all_are_there, NULL, kThreads) == 0);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, meet, NULL) == 0);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  usleep(500000);  // the runtime looks now and then who has ended

  uint64_t* words = malloc(kPages * 4096);
  CHECK_SPILLED(words);
  uint64_t expected = 0;
  for (size_t page = 0; page < kPages; ++page) {
    words[page * kWordsPerPage] = page * page;
    if (page % kStep == 0) expected += page * page;
  }
  for (int round = 0; round < 3; ++round) CHECK(sum_in_steps(words) == expected);
  puts("right");
  return 0;
}
