// fork while other threads store to spilled memory by code that spillcc did not compile: once the child runs, nothing that
// the parent stores changes what it sees, and the parent's threads lose nothing.
// flags: -pthread
// levels: O2
// pages: 4K 16K
#include <pthread.h>
#include <unistd.h>
#include <wchar.h>
#include "../../../include/spillway/spill.h"
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

// Pages that the program has pinned, while a child lives that has what they were.
static void store_to_pinned(void) {
  enum { kPages = 8, kPage = 16384 };
  char* memory = spilled_zeros(kPages * kPage);
  CHECK(spill_pin(memory, kPages * kPage) == 0);
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    char byte;
    close(ends[1]);
    CHECK(read(ends[0], &byte, 1) == 0);
    int changed = 0;
    for (int i = 0; i < kPages; ++i) changed += memory[i * kPage] != 0;
    _exit(changed);
  }
  for (int i = 0; i < kPages; ++i) foreign_increment(memory + i * kPage);
  for (int i = 0; i < kPages; ++i) CHECK(memory[i * kPage] == 1);
  const pid_t other = fork();
  CHECK(other >= 0);
  if (other == 0) {
    for (int i = 0; i < kPages; ++i) foreign_increment(memory + i * kPage);
    int wrong = 0;
    for (int i = 0; i < kPages; ++i) wrong += memory[i * kPage] != 2;
    _exit(wrong);
  }
  expect_end(other);
  for (int i = 0; i < kPages; ++i) CHECK(memory[i * kPage] == 1);
  close(ends[0]);
  close(ends[1]);
  expect_end(child);
  CHECK(spill_unpin(memory, kPages * kPage) == 0);
  free(memory);
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
  store_to_pinned();
  printf("ok\n");
  return 0;
}
