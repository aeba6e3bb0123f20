// What a look ahead finds missing page after page is loaded in windows, but not in memory that the program goes through at random. The looks are
// made by hand, as in prefetch_looks.c.
// levels: O2
// memory: 2M
// chaos: 0
// expect: cache.prefetches>=2
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../include/spillway/spill.h"
#include "e2e.h"

// Advice is kept by 2 MiB.
enum { P = 4096, kPages = 2048, kAtRandom = 1024, kFirst = 100, kAlignment = 2 << 20 };

struct loop {
  int64_t step_bytes;
  uint64_t bits;
};

static void* (*begin)(const struct loop* loop, uint64_t position, uint64_t left, int64_t* pause);
static int64_t (*next)(void* look);
static void (*note)(void* look, uint64_t address);

static char* memory;
static uint64_t address_of(int page) { return (uint64_t)memory + (uint64_t)page * P; }

// Of the translation table: 0, the page is not in memory.
static int64_t entry(int page) { return ((volatile int64_t*)kTableBase)[address_of(page) >> kTableShift]; }

static void wait_until_there(int page) {
  for (int i = 0; i < 10000 && entry(page) == 0; ++i) usleep(1000);
  CHECK(entry(page) != 0);
}

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
    *(void**)&begin = dlsym(RTLD_DEFAULT, "__spillway_look_ahead_begin");
    *(void**)&next = dlsym(RTLD_DEFAULT, "__spillway_look_ahead_next");
    *(void**)&note = dlsym(RTLD_DEFAULT, "__spillway_look_ahead_note");
    CHECK(begin != NULL && next != NULL && note != NULL);
    look();
  }
  for (int page = 0; page < kPages; ++page) CHECK(memory[(size_t)page * P] == (char)page);
  puts("right");
  return 0;
}
