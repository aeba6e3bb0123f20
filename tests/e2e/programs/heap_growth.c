// What a block grows by where it is counts as handed out, too.
// levels: O2
// pages: 4K
// chaos: 1
// expect: spill.allocated_bytes>=60817408 spill.live_bytes<=100000
#include "e2e.h"

enum { kBytes = 1 << 20, kMax = 24 };

int main(void) {
  push_out(2 * kBytes);
  // Room for the block that grows.
  char* room = malloc(32 * kBytes);
  CHECK_SPILLED(room);
  HIDE(room);
  free(room);
  char* block = malloc(kBytes);
  for (size_t i = 1; i <= kMax; ++i) {
    block = realloc(block, i * kBytes);
    CHECK(block != NULL);
    block[i * kBytes - 1] = (char)i;
  }
  for (size_t i = 1; i <= kMax; ++i) CHECK(block[i * kBytes - 1] == (char)i);
  free(block);
  puts("grown");
  return 0;
}
