// What the program frees of others' blocks makes no room for its own in a small heap, what others free of the program's does, and what
// others make larger bit by bit is spilled once it is large.
// levels: O2
// memory: 16M
// evictions: none, it is about what is not spilled
#define _GNU_SOURCE
#include <dlfcn.h>

#include "e2e.h"

enum { kKept = 100000, kBlockBytes = 100, kStep = 1000, kSteps = 200 };
// Of such a budget half a megabyte may be plain, and as much beside it that others have.
enum { kMaxPlain = 12000 };

static char* blocks[kKept];

// A library that spillcc did not compile frees what it was given: a small heap stays one.
static void give_away(void) {
  void (*const release)(void*) = (void (*)(void*))dlsym(RTLD_DEFAULT, "free");
  for (int i = 0; i < 2 * kKept; ++i) {
    char* block = malloc(kBlockBytes);
    CHECK(block != NULL && (!is_spilled(block) || runs_spilled()));
    block[0] = (char)i;
    HIDE(block);
    release(block);
  }
}

// A block of the C library's is freed for each that is kept.
static void keep_and_free(void) {
  size_t plain = 0;
  for (int i = 0; i < kKept; ++i) {
    char* text;
    CHECK(asprintf(&text, "%0100d", i) == kBlockBytes);
    blocks[i] = malloc(kBlockBytes);
    CHECK(blocks[i] != NULL);
    blocks[i][0] = (char)i;
    plain += (size_t)!is_spilled(blocks[i]);
    free(text);
  }
  CHECK(plain < kMaxPlain || getenv("SPILLWAY_MEMORY") == NULL);
  for (int i = 0; i < kKept; ++i) {
    CHECK(blocks[i][0] == (char)i);
    free(blocks[i]);
  }
}

// As a library calls it that spillcc did not compile.
static void grow(void) {
  void* (*const resize)(void*, size_t) = (void* (*)(void*, size_t))dlsym(RTLD_DEFAULT, "realloc");
  char* block = NULL;
  for (size_t bytes = kStep; bytes <= kStep * kSteps; bytes += kStep) {
    block = resize(block, bytes);
    CHECK(block != NULL);
    block[bytes - 1] = (char)(bytes / kStep);
  }
  for (size_t i = 1; i <= kSteps; ++i) CHECK(block[i * kStep - 1] == (char)i);
  CHECK(is_spilled(block) || getenv("SPILLWAY_MEMORY") == NULL);
  free(block);
}

int main(void) {
  keep_and_free();
  give_away();
  grow();
  puts("others");
  return 0;
}
