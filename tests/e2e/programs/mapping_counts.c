// What mappings grow by where they are, and those that are put where nothing is, are in the statistics, to the byte.
// levels: O2
// pages: 4K
// expect: spill.allocated_bytes>=8388608 spill.allocated_bytes<=8388608 spill.live_bytes>=2097152 spill.live_bytes<=2097152
#define _GNU_SOURCE
#include <sys/mman.h>
#include "e2e.h"

enum { HALF = 1 << 20, ACCESS = PROT_READ | PROT_WRITE, FLAGS = MAP_PRIVATE | MAP_ANONYMOUS };

int main(void) {
  char* map = mmap(NULL, 2 * HALF, ACCESS, FLAGS, -1, 0);
  CHECK(map != MAP_FAILED);
  CHECK_SPILLED(map);
  CHECK(munmap(map + HALF, HALF) == 0);
  CHECK(mremap(map, HALF, 2 * HALF, 0) == map);
  // Where there is a mapping already, none is given.
  CHECK(mmap(map, 2 * HALF, ACCESS, FLAGS | MAP_FIXED, -1, 0) == map);
  CHECK(munmap(map + HALF, HALF) == 0);
  CHECK(mmap(map, 2 * HALF, ACCESS, FLAGS | MAP_FIXED, -1, 0) == map);
  CHECK(munmap(map + HALF, HALF) == 0);
  CHECK(mmap(map + HALF, HALF, ACCESS, FLAGS | MAP_FIXED_NOREPLACE, -1, 0) == map + HALF);
  for (int i = 0; i < 3; ++i) push_out(HALF);
  puts("ok");
}
