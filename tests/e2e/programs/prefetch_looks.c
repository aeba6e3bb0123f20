// What a look ahead does to pages that are in memory, and what misses in steps do beside a loop that walks. The looks are made by hand.
// levels: O2
// memory: 2M
// chaos: 0
// expect: cache.prefetches>=5
#define _GNU_SOURCE
#include "looks.h"

enum { kPages = 1024, kGroupPages = 16, kWalk = 19 * kGroupPages, kFarFromIt = 400 };

static void looks_touch(void) {
  static const struct loop loop = {8, 0};
  enum { kNoted = 100, kLoaded = 110, kNeither = 120 };
  for (int page = kNoted; page <= kNeither; page += 10) {
    CHECK(entry(page) == 0);
    spill_prefetch((void*)address_of(page), P);
    wait_until_there(page);
    CHECK(entry(page) < -1);
  }
  int64_t pause;
  void* const look = begin(&loop, 0, 64, &pause);
  CHECK(look != NULL && next(look) == 0);
  note(look, address_of(kNoted));
  CHECK(load(look, address_of(kLoaded), 8, 0) != 0);
  while (next(look) >= 0) {
  }
  CHECK(entry(kNoted) > 1 && entry(kLoaded) > 1 && entry(kNeither) < -1);
}

__attribute__((noinline)) static char read_byte(const char* at) { return *at; }

static void miss_in_steps(int first) {
  // Volatile: the compiler does not look ahead to where it leads.
  for (volatile int page = first; page <= first + 4; page += 2) {
    CHECK(entry(page) == 0);
    CHECK(read_byte((char*)address_of(page)) == (char)page);
  }
}

// A loop reports three pages in order: it walks, and the rest of their group is loaded.
static void steps_beside_a_walk(void) {
  static const struct loop loop = {8, kLookAheadIsAddress};
  for (int page = 0; page < 3; ++page) {
    int64_t pause;
    void* const look = begin(&loop, address_of(kWalk + page), 1 << 20, &pause);
    while (look != NULL && next(look) >= 0) {
    }
  }
  enum { kBehind = kWalk + kGroupPages };
  wait_until_there(kBehind - 1);
  miss_in_steps(kBehind);
  usleep(50000);
  for (int page = kBehind + 6; page <= kBehind + 12; page += 2) CHECK(entry(page) == 0);
  miss_in_steps(kFarFromIt);
  wait_until_there(kFarFromIt + 6);
}

int main(void) {
  memory = aligned_alloc(kGroupPages * P, kPages * P);
  CHECK_SPILLED(memory);
  for (int page = 0; page < kPages; ++page) memory[(size_t)page * P] = (char)page;
  push_out(1 << 20);  // leaves free frames behind
  if (runs_spilled()) {
    find_calls();
    looks_touch();
    steps_beside_a_walk();
  }
  for (int page = 0; page < kPages; ++page) CHECK(memory[(size_t)page * P] == (char)page);
  puts("right");
  return 0;
}
