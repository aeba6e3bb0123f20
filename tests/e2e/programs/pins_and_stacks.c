// What spill_pin and stacks of the program's own keep in memory, together, leaves frames for the rest.
// flags: -pthread
// levels: O2
// memory: 2M
// pages: 4K
// chaos: 1
#define _GNU_SOURCE
#include <pthread.h>

#include "../../../include/spillway/spill.h"
#include "e2e.h"

// Each less than half of the memory.
enum { P = 4096, kPinned = 240 * P, kStack = 200 * P };

int main(void) {
  char* pinned = aligned_alloc(P, kPinned);
  char* stack = aligned_alloc(P, kStack);
  CHECK_SPILLED(pinned);
  CHECK_SPILLED(stack);
  const int is_limited = is_spilled(pinned) && is_spilled(stack);
  memset(pinned, 'p', kPinned);
  pthread_attr_t attributes;
  CHECK(pthread_attr_init(&attributes) == 0);

  CHECK(spill_pin(pinned, kPinned) == 0);
  CHECK(pthread_attr_setstack(&attributes, stack, kStack) == (is_limited ? ENOMEM : 0));
  push_out(4 << 20);
  CHECK(spill_unpin(pinned, kPinned) == 0);

  CHECK(pthread_attr_setstack(&attributes, stack, kStack) == 0);
  errno = 0;
  CHECK(spill_pin(pinned, kPinned) == (is_limited ? -1 : 0) && errno == (is_limited ? ENOMEM : 0));
  push_out(4 << 20);
  for (int at = 0; at < kPinned; at += 100) CHECK(pinned[at] == 'p');
  free(stack);
  CHECK(spill_pin(pinned, kPinned) == 0);
  puts("right");
  return 0;
}
