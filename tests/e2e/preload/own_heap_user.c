// A program with a heap of its own (own_heap.c), which it also calls by names of its own, small blocks and large ones.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t own_size(void *block);
void own_free(void *block);

enum { kLarge = 64, kLargeBytes = 1 << 19 };

int main(void) {
  uint64_t sum = 0;
  for (size_t bytes = 1; bytes < 60000; bytes = bytes * 3 / 2 + 1) {
    char *blocks[] = {malloc(bytes),
                      calloc(1, bytes),
                      memalign(64, bytes),
                      aligned_alloc(32, bytes),
                      realloc(strdup("a word"), bytes + 7),
                      NULL};
    if (posix_memalign((void **)&blocks[5], 128, bytes) != 0) return 1;
    for (int i = 0; i < 6; ++i) {
      if (malloc_usable_size(blocks[i]) < bytes) return 2;
      sum += own_size(blocks[i]);
      if (i % 2 == 0)
        own_free(blocks[i]);
      else
        free(blocks[i]);
    }
  }
  // To large ones and back.
  char *large[kLarge];
  for (int i = 0; i < kLarge; ++i) {
    large[i] = realloc(strdup("a word"), kLargeBytes);
    if (malloc_usable_size(large[i]) < kLargeBytes) return 3;
    memset(large[i] + 7, i, kLargeBytes - 7);
  }
  for (int i = 0; i < kLarge; ++i) {
    for (int j = 7; j < kLargeBytes; j += 512) sum += large[i][j] == i;
    large[i] = realloc(large[i], 100);
    if (strcmp(large[i], "a word") != 0 || large[i][99] != i) return 4;
    sum += own_size(large[i]);
    own_free(large[i]);
  }
  return printf("%llu\n", (unsigned long long)sum) < 0;
}
