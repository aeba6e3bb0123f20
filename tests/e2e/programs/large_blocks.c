// Large blocks that are freed and allocated again, with memory for more than all of them: their pages are missed once, as a rule. Of a
// block that takes most of the memory they are given up.
// memory: 32M
// levels: O2
// pages: 4K
// expect: cache.evictions==0 spill.translations_slow<=80000 cache.discards>=5000
#include "e2e.h"

enum { BYTES = 2 << 20, MOST_BYTES = 20 << 20, ROUNDS = 400 };

int main(void) {
  uint64_t sum = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    unsigned char* block = malloc(BYTES);
    CHECK(block != NULL);
    CHECK_SPILLED(block);
    for (size_t i = 0; i < BYTES; i += 512) block[i] = (unsigned char)(i / 512 + (size_t)round);
    for (size_t i = 0; i < BYTES; i += 512) CHECK(block[i] == (unsigned char)(i / 512 + (size_t)round));
    free(block);
  }
  // What was used before is zeros where that is asked for.
  unsigned char* zeros = calloc(1, BYTES / 16);
  CHECK(zeros != NULL);
  for (size_t i = 0; i < BYTES / 16; ++i) sum += zeros[i];
  CHECK(sum == 0);
  free(zeros);
  unsigned char* most = malloc(MOST_BYTES);
  CHECK(most != NULL);
  HIDE(most);
  for (size_t i = 0; i < MOST_BYTES; i += 4096) most[i] = 1;
  free(most);
  puts("done");
  return 0;
}
