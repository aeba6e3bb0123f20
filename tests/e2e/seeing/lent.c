// Threads that allocate, each less than it counts at a time, and one that frees all of it; then it waits for the end of its input.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 2, kBlocks = 50, kBlockBytes = 1200 };

static void* blocks[kThreads][kBlocks];
static pthread_barrier_t all;

static void* fill(void* mine) {
  for (int i = 0; i < kBlocks; ++i) ((void**)mine)[i] = malloc(kBlockBytes);
  pthread_barrier_wait(&all);
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&all, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, fill, blocks[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i)
    for (int j = 0; j < kBlocks; ++j) free(blocks[i][j]);
  puts("ready");
  fflush(stdout);
  return getchar() == EOF ? 0 : 1;
}
