// realloc keeps what both sizes have, growing and shrinking, for blocks of a byte to a few megabytes.
// expect: cache.evictions>=1000
#include <malloc.h>
#include "e2e.h"

#define BLOCKS 64

static unsigned char value_of(unsigned block, size_t i) {
  return (unsigned char)(block * 53 + i * 7 + (i >> 12) * 3);
}

int main(void) {
  static unsigned char* blocks[BLOCKS];
  static size_t sizes[BLOCKS];
  uint64_t random = 5;
  uint64_t sum = 0;
  for (unsigned round = 0; round < 1500; ++round) {
    unsigned b = next_random(&random) % BLOCKS;
    unsigned magnitude = next_random(&random) % 19;
    size_t size = 1 + next_random(&random) % ((size_t)1 << magnitude);
    if (round % 200 == 199) size = 3000000 + round;
    unsigned char* moved = realloc(blocks[b], size);
    CHECK(moved != NULL);
    CHECK_SPILLED(moved);
    CHECK(malloc_usable_size(moved) >= size);
    size_t kept = sizes[b] < size ? sizes[b] : size;
    size_t step = kept > 5000 ? 61 : 1;
    for (size_t i = 0; i < kept; i += step) CHECK(moved[i] == value_of(b, i));
    if (kept > 0) CHECK(moved[kept - 1] == value_of(b, kept - 1));
    for (size_t i = kept; i < size; ++i) moved[i] = value_of(b, i);
    blocks[b] = moved;
    sizes[b] = size;
    sum += size;
  }
  void* none = realloc(NULL, 100);
  CHECK(none != NULL);
  free(none);
  errno = 0;
  void* block = blocks[0];
  HIDE(block);
  CHECK(realloc(block, (size_t)1 << 62) == NULL && errno == ENOMEM);
  for (size_t i = 0; i < sizes[0]; i += 61) CHECK(blocks[0][i] == value_of(0, i));
  CHECK(reallocarray(block, (size_t)1 << 33, (size_t)1 << 33) == NULL);
  for (unsigned b = 0; b < BLOCKS; ++b) free(blocks[b]);
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
