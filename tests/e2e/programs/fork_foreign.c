// fork while other threads store to spilled memory by code that spillcc did not compile: once the child runs, nothing that
// the parent stores changes what it sees, and the parent's threads lose nothing.
// flags: -pthread
// levels: O2
// pages: 4K 16K
#include <pthread.h>
#include <unistd.h>
#include <wchar.h>
#include "e2e.h"

enum { kThreads = 3, kBlocks = 120, kBlock = 1000 };  // of wide characters: a block is about a page

static wchar_t* text;
static volatile int stop;

static void* store(void* number) {
  const uintptr_t thread = (uintptr_t)number;
  uint64_t random = thread;
  for (wchar_t value = 1; !stop; ++value) {
    wchar_t* block = text + (thread * kBlocks + next_random(&random) % kBlocks) * kBlock;
    wmemset(block, value, kBlock);
    CHECK(wmemchr(block, value, kBlock) == block && block[kBlock - 1] == value);
  }
  return NULL;
}

// Looked at by compiled code, which makes pages come and go.
static uint64_t sum(void) {
  uint64_t result = 0;
  for (int i = 0; i < kThreads * kBlocks * kBlock; i += 20) result = result * 31 + (uint64_t)text[i];
  return result;
}

int main(void) {
  text = calloc(kThreads * kBlocks * kBlock, sizeof *text);
  CHECK_SPILLED(text);
  pthread_t threads[kThreads];
  for (uintptr_t t = 0; t < kThreads; ++t) CHECK(pthread_create(&threads[t], NULL, store, (void*)t) == 0);
  for (int turn = 0; turn < 12; ++turn) {
    usleep(3000);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      const uint64_t first = sum();
      usleep(5000);
      if (sum() != first) _exit(3);
      for (int i = 0; i < kThreads * kBlocks * kBlock; i += kBlock) {
        wmemset(text + i, L'c', kBlock);
        if (text[i] != L'c' || text[i + kBlock - 1] != L'c') _exit(4);
      }
      _exit(sum() == 0);
    }
    expect_end(child);
  }
  stop = 1;
  for (int t = 0; t < kThreads; ++t) pthread_join(threads[t], NULL);
  printf("ok\n");
  return 0;
}
