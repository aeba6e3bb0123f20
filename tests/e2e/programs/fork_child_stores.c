// A child of fork that goes on, and so does its parent: each reads what there was when they parted, and stores what is
// its own. Everything is several times as large as the budget, so that it goes to storage and back in both.
// case: parent
// case: child
// case: both
// case: several
// case: generations
// case: foreign
// case: freed
// case: again
// levels: O2
// chaos: 2
// pages: 4K 64K
// expect: cache.evictions>=500
#include <unistd.h>
#include <wchar.h>
#include "e2e.h"

enum { kWords = 600000, kStep = 37 };

static unsigned* data;

static void fill(unsigned by) {
  for (unsigned i = 0; i < kWords; ++i) data[i] = i * 3 + by;
}
static int holds(unsigned by) {
  for (unsigned i = 0; i < kWords; ++i)
    if (data[i] != i * 3 + by) return 0;
  return 1;
}
// In an order that storage does not like.
static int holds_scattered(unsigned by) {
  for (unsigned n = 0, i = 0; n < kWords / 500; ++n, i = (i + 7919 * 64) % kWords)
    if (data[i] != i * 3 + by) return 0;
  return 1;
}

// The child looks while and after its parent changes everything, twice.
static void run_parent(void) {
  int gone_on[2];
  CHECK(pipe(gone_on) == 0);
  pid_t child = fork();
  if (child == 0) {
    char go;
    if (!holds_scattered(0)) _exit(3);
    for (int turn = 0; turn < 2; ++turn) {
      if (read(gone_on[0], &go, 1) != 1) _exit(4);
      if (!holds(0) || !holds_scattered(0)) _exit(5);
    }
    _exit(0);
  }
  for (unsigned turn = 1; turn <= 2; ++turn) {
    fill(turn);
    CHECK(holds(turn));
    CHECK(write(gone_on[1], "g", 1) == 1);
  }
  expect_end(child);
  CHECK(holds(2));
  fill(3);
  CHECK(holds(3));
}

static void run_child(void) {
  pid_t child = fork();
  if (child == 0) {
    for (unsigned turn = 1; turn <= 3; ++turn) {
      fill(turn);
      if (!holds(turn)) _exit(3);
    }
    _exit(0);
  }
  for (int turn = 0; turn < 4; ++turn) CHECK(holds(0));
  expect_end(child);
  CHECK(holds(0));
}

static void run_both(void) {
  pid_t child = fork();
  const unsigned by = child == 0 ? 100 : 0;
  for (unsigned turn = 1; turn <= 4; ++turn) {
    for (unsigned i = turn % kStep; i < kWords; i += kStep) {
      CHECK(data[i] == i * 3);
      data[i] += by + turn;
    }
    for (unsigned i = 0; i < kWords; ++i) {
      const unsigned of = i % kStep;
      CHECK(data[i] == i * 3 + (of >= 1 && of <= turn ? by + of : 0));
    }
  }
  if (child == 0) _exit(0);
  expect_end(child);
}

// Each child has what there was at its own time; they end in another order.
static void run_several(void) {
  enum { kChildren = 5 };
  pid_t children[kChildren];
  int ends[2];
  CHECK(pipe(ends) == 0);
  for (unsigned n = 0; n < kChildren; ++n) {
    fill(n);
    children[n] = fork();
    if (children[n] == 0) {
      char go;
      if (read(ends[0], &go, 1) != 1) _exit(4);
      if (!holds(n)) _exit(3);
      for (unsigned i = n; i < kWords; i += kStep) data[i] = n;
      for (unsigned i = n; i < kWords; i += kStep)
        if (data[i] != n) _exit(5);
      _exit(0);
    }
    CHECK(children[n] > 0);
  }
  fill(50);
  for (int n = 0; n < kChildren; ++n) CHECK(write(ends[1], "g", 1) == 1);
  for (int n = kChildren - 1; n >= 0; --n) {
    expect_end(children[n]);
    CHECK(holds_scattered(50));
  }
  fill(51);
  CHECK(holds(51));
}

// A child's child has what the child had; the child ends first.
static void run_generations(void) {
  int done[2];
  CHECK(pipe(done) == 0);
  pid_t child = fork();
  if (child == 0) {
    for (unsigned i = 0; i < kWords; i += 2) data[i] += 1;
    if (fork() == 0) {
      if (fork() == 0) {
        usleep(20000);
        for (int turn = 0; turn < 2; ++turn)
          for (unsigned i = 0; i < kWords; ++i)
            if (data[i] != i * 3 + (i % 2 == 0)) _exit(3);
        fill(7);
        if (!holds(7)) _exit(4);
        if (write(done[1], "g", 1) != 1) _exit(5);
        _exit(0);
      }
      fill(8);
      _exit(holds(8) && write(done[1], "g", 1) == 1 ? 0 : 6);
    }
    fill(9);
    _exit(holds(9) ? 0 : 7);
  }
  fill(1);
  expect_end(child);
  close(done[1]);
  fill(2);
  CHECK(holds(2));
  char byte;
  for (int n = 0; n < 2; ++n) CHECK(read(done[0], &byte, 1) == 1);
  CHECK(holds(2));
}

// Code that spillcc did not compile sees the same, before the parent's frames are its own again and after.
static void run_foreign(void) {
  wchar_t* text = malloc(3000 * sizeof *text);
  CHECK_SPILLED(text);
  wmemset(text, L'a', 2999);
  text[2999] = 0;
  for (int turn = 0; turn < 3; ++turn) {
    pid_t child = fork();
    if (child == 0) {
      for (int n = 0; n < 3; ++n) {
        if (wcslen(text) != 2999u - n) _exit(3);
        text[2998 - n] = 0;
        wmemset(text, L'b' + n, 10);
        if (!holds_scattered(turn) || text[9] != L'b' + n || text[10] != L'a' + turn) _exit(4);
        fill(turn);
      }
      _exit(0);
    }
    for (int n = 0; n < 4; ++n) {
      CHECK(wcslen(text) == 2999 && text[9] == L'a' + turn);
      CHECK(holds_scattered(turn + n));
      fill(turn + n + 1);
    }
    expect_end(child);
    wmemset(text, L'a' + turn + 1, 2999);
    fill(turn + 1);
  }
}

// Memory that one of the two frees is still the other's, and what it allocates then is its own.
static void run_freed(void) {
  enum { kBlocks = 100, kBlock = 20000 };
  char* blocks[kBlocks];
  for (int n = 0; n < kBlocks; ++n) memset(blocks[n] = malloc(kBlock), n, kBlock);
  int gone_on[2];
  CHECK(pipe(gone_on) == 0);
  pid_t child = fork();
  if (child == 0) {
    char go;
    if (read(gone_on[0], &go, 1) != 1) _exit(4);
    if (!holds(0)) _exit(3);
    for (int n = 0; n < kBlocks; ++n)
      for (int i = 0; i < kBlock; ++i)
        if (blocks[n][i] != n) _exit(5);
    for (int n = 0; n < kBlocks; n += 2) free(blocks[n]);
    char* own = calloc(40, kBlock);
    for (int i = 0; i < 40 * kBlock; ++i)
      if (own[i] != 0) _exit(6);
    _exit(0);
  }
  for (int n = 0; n < kBlocks; n += 2) free(blocks[n]);
  char* own = malloc(kBlocks / 2 * kBlock);
  memset(own, 99, kBlocks / 2 * kBlock);
  free(data);
  CHECK(write(gone_on[1], "g", 1) == 1);
  expect_end(child);
  for (int n = 1; n < kBlocks; n += 2)
    for (int i = 0; i < kBlock; ++i) CHECK(blocks[n][i] == n);
  for (int i = 0; i < kBlocks / 2 * kBlock; ++i) CHECK(own[i] == 99);
}

// One after the other, as a server saves: storage is used again.
static void run_again(void) {
  for (unsigned turn = 0; turn < 6; ++turn) {
    pid_t child = fork();
    if (child == 0) _exit(holds(turn) ? 0 : 3);
    fill(turn + 1);
    expect_end(child);
    usleep(30000);
    CHECK(holds(turn + 1));
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  data = malloc(kWords * 4);
  CHECK_SPILLED(data);
  fill(0);
  switch (argv[1][0]) {
    case 'p': run_parent(); break;
    case 'c': run_child(); break;
    case 'b': run_both(); break;
    case 's': run_several(); break;
    case 'g': run_generations(); break;
    case 'f': argv[1][1] == 'o' ? run_foreign() : run_freed(); break;
    case 'a': run_again(); break;
  }
  printf("%s\n", argv[1]);
  return 0;
}
