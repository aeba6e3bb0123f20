// Many threads read a file into spilled memory, each so much at a time that the kernel reads it into the pages themselves: none waits for pages
// that the others keep in memory while they wait for its.
// flags: -pthread
// levels: O2
// memory: 2M
// pages: 4K
// chaos: 1
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
#include "e2e.h"

enum { kThreads = 48, kBytes = 256 << 10, kRounds = 8 };

static int file;
static char* bytes;
static pthread_barrier_t all;

static void* read_on(void* block) {
  for (int round = 0; round < kRounds; ++round) {
    pthread_barrier_wait(&all);
    CHECK(pread(file, block, kBytes, 0) == kBytes);
  }
  CHECK(memcmp(block, bytes, kBytes) == 0);
  return NULL;
}

int main() {
  bytes = spilled_zeros(kBytes);
  for (int i = 0; i < kBytes; ++i) bytes[i] = (char)(i * 7);
  file = fileno(tmpfile());
  CHECK(file >= 0 && write(file, bytes, kBytes) == kBytes);
  char* blocks = spilled_zeros((size_t)kThreads * kBytes);
  pthread_t threads[kThreads];
  pthread_barrier_init(&all, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, read_on, blocks + (size_t)i * kBytes) == 0);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  printf("%d readers\n", kThreads);
  return 0;
}
