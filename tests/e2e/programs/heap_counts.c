// What small blocks take is in the statistics when the program ends, to the byte, by whichever thread they were allocated and freed.
// levels: O2
// pages: 4K
// flags: -pthread
// expect: spill.allocated_bytes>=2119552 spill.allocated_bytes<=2119552 spill.live_bytes>=5600 spill.live_bytes<=5600
#include <pthread.h>
#include "e2e.h"

enum { COUNT = 100, BYTES = 112 };
static void* blocks[2][COUNT];

static void* fill(void* of_thread) {
  void** mine = of_thread;
  for (int i = 0; i < COUNT; ++i) CHECK((mine[i] = malloc(BYTES)) != NULL);
  return NULL;
}

int main(void) {
  pthread_t thread;
  push_out(1 << 20);
  push_out(1 << 20);
  CHECK(pthread_create(&thread, NULL, fill, blocks[1]) == 0);
  fill(blocks[0]);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_SPILLED(blocks[1][0]);
  for (int i = 0; i < COUNT; ++i) free(blocks[1][i]);
  for (int i = 0; i < COUNT / 2; ++i) free(blocks[0][i]);
  puts("ok");
}
