// fork while native code runs, in one thread and while another one stores: each process has its own from then on. vfork and what
// is made of it share memory as ever, and end nothing.
// levels: O2
// spillcc: -DSPILLED
// flags: -pthread
// memory: 24M
// chaos: 6
// expect: spill.native_ms>=1 spill.native_end==3 cache.regions_mapped>=3
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <unistd.h>
#include "native.h"

enum { kWords = 3 << 18, kRounds = 3 };  // two regions of each array are whole, wherever it lies

static uint64_t* other;
static volatile int stop;
extern char** environ;

NATIVE static void* store_all_the_time(void* unused) {
  for (uint64_t value = 1; !stop; ++value)
    for (size_t at = 0; at < kWords; at += 64) {
      other[at] = value;
      other[at + 1] = value;
    }
  return unused;
}

static void check_other(void) {
  // The thread stores the second word after the first.
  for (size_t at = 0; at < kWords; at += 64) {
    const uint64_t second = load_native(&other[at + 1]), first = load_native(&other[at]);
    CHECK(first == second || first == second + 1);
  }
}

int main(void) {
  uint64_t* mine = malloc(kWords * sizeof *mine);
  other = calloc(kWords, sizeof *other);
  CHECK_SPILLED(mine);
  CHECK_SPILLED(other);
  fill(mine, 0, kWords, 1);

  char* arguments[] = {"true", NULL};
  pid_t child;
  CHECK(posix_spawnp(&child, "true", NULL, NULL, arguments, environ) == 0);
  expect_end(child);
  child = vfork();
  if (child == 0) {
    store_native(&mine[77], 5);
    _exit(0);
  }
  expect_end(child);
  CHECK(mine[77] == 5);
  fill(mine, 77, 78, 1);

  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, store_all_the_time, NULL) == 0);
  for (int round = 0; round < kRounds; ++round) {
    fflush(stdout);
    child = fork();
    if (child == 0) {
      check_other();
      CHECK(wrong_words_native(mine, 0, kWords, 613, 1) == 0);
      CHECK(wrong_words(mine, 0, kWords, 1) == 0);
      for (size_t at = 0; at < kWords; at += 700) store_native(&mine[at], at);
      fill(mine, kWords / 2, kWords, 2);
      for (size_t at = 0; at < kWords / 2; at += 700) CHECK(mine[at] == at);
      CHECK(wrong_words(mine, kWords / 2, kWords, 2) == 0);
      _exit(0);
    }
    // The parent goes on meanwhile.
    for (size_t at = 1; at < kWords; at += 900) store_native(&mine[at], round);
    for (size_t at = 1; at < kWords; at += 900) CHECK(mine[at] == (uint64_t)round);
    expect_end(child);
    fill(mine, 0, kWords, 1);
  }
  stop = 1;
  CHECK(pthread_join(thread, NULL) == 0);
  check_other();
  CHECK(wrong_words(mine, 0, kWords, 1) == 0);
  puts("each its own");
}
