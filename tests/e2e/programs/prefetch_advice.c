// What a look ahead finds missing page after page is loaded in windows, but not in memory that the program goes through at random. The looks are
// made by hand.
// levels: O2
// memory: 2M
// chaos: 0
// expect: cache.prefetches>=2
#define _GNU_SOURCE
#include <sys/mman.h>

#include "looks.h"

// Advice is kept by 2 MiB.
enum { kPages = 2048, kAtRandom = 1024, kFirst = 100, kAlignment = 2 << 20 };

// An iteration that will access three pages, one behind the other.
static void look_at(const struct loop* loop, int first) {
  for (int page = first; page < first + 16; ++page) CHECK(entry(page) == 0);
  int64_t pause;
  void* const look = begin(loop, 0, 64, &pause);
  CHECK(look != NULL && next(look) == 0);
  for (int page = first; page < first + 3; ++page) note(look, address_of(page));
  while (next(look) >= 0) {
  }
  for (int page = first; page < first + 3; ++page) wait_until_there(page);
}

static void look(void) {
  static const struct loop in_order = {8, 0}, at_random = {8, 0};
  // Has the thread get what it loads by.
  spill_prefetch((void*)address_of(0), P);
  look_at(&in_order, kFirst);
  wait_until_there(kFirst + 4);
  look_at(&at_random, kAtRandom + kFirst);
  usleep(50000);
  for (int page = kAtRandom + kFirst + 3; page < kAtRandom + kFirst + 16; ++page) CHECK(entry(page) == 0);
}

int main(void) {
  memory = aligned_alloc(kAlignment, kPages * P);
  CHECK_SPILLED(memory);
  for (int page = 0; page < kPages; ++page) memory[(size_t)page * P] = (char)page;
  CHECK(madvise((void*)address_of(kAtRandom), (kPages - kAtRandom) * P, MADV_RANDOM) == 0);
  push_out(1 << 20);  // leaves free frames behind
  if (runs_spilled()) {
    find_calls();
    look();
  }
  for (int page = 0; page < kPages; ++page) CHECK(memory[(size_t)page * P] == (char)page);
  puts("right");
  return 0;
}
