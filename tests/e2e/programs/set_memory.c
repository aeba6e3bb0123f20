// The budget goes up and down while threads check what they have stored; natively nothing changes.
// flags: -pthread
// memory: 16M
// expect: cache.evictions>=1000
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "e2e.h"

#include "../../../include/spillway/spill.h"

enum { kThreads = 3, kWords = 1 << 20, kRounds = 24 };  // 8 MiB a thread

static _Atomic int changes;

static void* run(void* argument) {
  uint64_t random = 77 + (uint64_t)(uintptr_t)argument;
  uint64_t* words = malloc(kWords * sizeof *words);
  for (size_t i = 0; i < kWords; ++i) words[i] = (i * 977) << 16;
  // Until all changes are made, and once more.
  for (int rounds = 0; rounds < 2; rounds += atomic_load(&changes) == kRounds) {
    for (int n = 0; n < 20000; ++n) {
      size_t i = next_random(&random) % kWords;
      CHECK(words[i] >> 16 == i * 977);
      words[i] += 1;
    }
  }
  for (size_t i = 0; i < kWords; ++i) CHECK(words[i] >> 16 == i * 977);
  free(words);
  return NULL;
}

int main(void) {
  static const uint64_t kSizes[] = {8 << 20, 32 << 20, 16 << 20, 64 << 20};
  pthread_t threads[kThreads];
  for (uintptr_t t = 0; t < kThreads; ++t) CHECK(pthread_create(&threads[t], NULL, run, (void*)t) == 0);
  const int without_runtime = getenv("SPILLWAY_MEMORY") == NULL;
  CHECK(spill_set_memory(16 << 20) == (without_runtime ? ENOSYS : 0));
  for (int i = 0; i < kRounds; ++i) {
    const int result = spill_set_memory(kSizes[i % 4]);
    CHECK(result == (without_runtime ? ENOSYS : 0));
    usleep(20000);
    atomic_fetch_add(&changes, 1);
  }
  CHECK(spill_set_memory(1000) == (without_runtime ? ENOSYS : EINVAL));
  CHECK(spill_set_memory((uint64_t)65 << 20) == (without_runtime ? ENOSYS : EINVAL));
  CHECK(spill_set_memory((uint64_t)1 << 60) == (without_runtime ? ENOSYS : EINVAL));
  for (int t = 0; t < kThreads; ++t) CHECK(pthread_join(threads[t], NULL) == 0);
  puts("all as it was stored");
  return 0;
}
