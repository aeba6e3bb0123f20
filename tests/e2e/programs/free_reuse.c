// Memory that is freed is used again: neither addresses nor storage grow, though 30 times more than the
// storage holds is written in all.
// storage: memory:16M
// expect: cache.evictions>=2000 cache.discards>=2000 spill.allocated_bytes>=300000000 spill.live_bytes<=4000000
#include <sys/mman.h>
#include "e2e.h"

static uintptr_t lowest = ~(uintptr_t)0, highest = 0;

static void note(void* block, size_t bytes) {
  uintptr_t at = (uintptr_t)block;
  if (!runs_spilled()) return;
  CHECK_SPILLED(block);
  if (at < lowest) lowest = at;
  if (at + bytes > highest) highest = at + bytes;
}

int main(void) {
  static char* kept[32];
  static size_t kept_bytes[32];
  uint64_t random = 3;
  for (int round = 0; round < 300; ++round) {
    char* map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    note(map, 1 << 20);
    for (size_t i = 0; i < 1 << 20; i += 1024) map[i] = (char)round;
    unsigned k = next_random(&random) % 32;
    CHECK(kept[k] == NULL || kept[k][kept_bytes[k] - 1] == (char)k);
    free(kept[k]);
    kept_bytes[k] = 1 + next_random(&random) % 100000;
    kept[k] = malloc(kept_bytes[k]);
    note(kept[k], kept_bytes[k]);
    kept[k][0] = kept[k][kept_bytes[k] - 1] = (char)k;
    CHECK(map[1 << 19] == (char)round);
    munmap(map, 1 << 20);
  }
  for (int round = 0; round < 100; ++round) {
    char* block = malloc(2 << 20);
    CHECK(block != NULL);
    note(block, 2 << 20);
    for (size_t i = 0; i < 2 << 20; i += 4096) block[i] = (char)(i >> 12);
    for (size_t i = 0; i < 2 << 20; i += 4096) CHECK(block[i] == (char)(i >> 12));
    free(block);
  }
  for (unsigned k = 0; k < 32; ++k) free(kept[k]);
  if (runs_spilled()) CHECK(highest - lowest < 64 << 20);
  printf("reused\n");
  return 0;
}
