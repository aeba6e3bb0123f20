// What spill_pin and stacks of the program's own keep in memory, together, leaves frames for the rest.
// flags: -pthread
// levels: O2
// memory: 4M
// pages: 4K
// chaos: 1
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "../../../include/spillway/spill.h"
#include "e2e.h"

// Each less than half of the memory.
enum { P = 4096, kPinned = 480 * P, kStack = 400 * P };

static char *pinned, *stack;

// Of the translation table: 0, the page is not in memory.
static int64_t entry(const char* page) {
  return ((volatile int64_t*)kTableBase)[(uint64_t)page >> kTableShift];
}

static void* pin(void* none) {
  CHECK(spill_pin(pinned, kPinned) == 0);
  return none;
}

int main(void) {
  pinned = aligned_alloc(P, kPinned);
  stack = aligned_alloc(P, kStack);
  CHECK_SPILLED(pinned);
  CHECK_SPILLED(stack);
  const int is_limited = is_spilled(pinned) && is_spilled(stack);
  memset(pinned, 'p', kPinned);
  pthread_attr_t attributes;
  CHECK(pthread_attr_init(&attributes) == 0);

  CHECK(spill_pin(pinned, kPinned) == 0);
  CHECK(pthread_attr_setstack(&attributes, stack, kStack) == (is_limited ? ENOMEM : 0));
  push_out(8 << 20);
  CHECK(spill_unpin(pinned, kPinned) == 0);

  // Also while another thread still loads what it pins, of which the first page is there.
  push_out(8 << 20);
  CHECK(madvise(pinned, P, MADV_DONTNEED) == 0);
  CHECK(!is_limited || entry(pinned) == 0);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, pin, NULL) == 0);
  while (is_limited && entry(pinned) == 0) {
  }
  CHECK(pthread_attr_setstack(&attributes, stack, kStack) == (is_limited ? ENOMEM : 0));
  CHECK(pthread_join(other, NULL) == 0);
  CHECK(spill_unpin(pinned, kPinned) == 0);
  memset(pinned, 'p', P);

  CHECK(pthread_attr_setstack(&attributes, stack, kStack) == 0);
  errno = 0;
  CHECK(spill_pin(pinned, kPinned) == (is_limited ? -1 : 0) && errno == (is_limited ? ENOMEM : 0));
  push_out(8 << 20);
  for (int at = 0; at < kPinned; at += 100) CHECK(pinned[at] == 'p');
  free(stack);
  CHECK(spill_pin(pinned, kPinned) == 0);
  puts("right");
  return 0;
}
