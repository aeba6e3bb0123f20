// What the tests of looks ahead share: looks are made by hand, by the calls that compiled code makes (compiler/loops/Prefetch.h), so that
// nothing else is accessed.
#pragma once
#include <dlfcn.h>
#include <unistd.h>

#include "../../../include/spillway/spill.h"
#include "e2e.h"

enum { P = 4096 };

struct loop {
  int64_t step_bytes;
  uint64_t bits;
};

static void* (*begin)(const struct loop* loop, uint64_t position, uint64_t left, int64_t* pause);
static int64_t (*next)(void* look);
static uint64_t (*load)(void* look, uint64_t address, uint64_t bytes, uint64_t bits);
static void (*note)(void* look, uint64_t address);

// Of a program that runs spilled.
static void find_calls(void) {
  *(void**)&begin = dlsym(RTLD_DEFAULT, "__spillway_look_ahead_begin");
  *(void**)&next = dlsym(RTLD_DEFAULT, "__spillway_look_ahead_next");
  *(void**)&load = dlsym(RTLD_DEFAULT, "__spillway_look_ahead_load");
  *(void**)&note = dlsym(RTLD_DEFAULT, "__spillway_look_ahead_note");
  CHECK(begin != NULL && next != NULL && load != NULL && note != NULL);
}

static char* memory;  // the test's
static uint64_t address_of(int page) { return (uint64_t)memory + (uint64_t)page * P; }

// Of the translation table: 0, the page is not in memory; negative, it is there and cooling: nobody has touched it lately.
static int64_t entry(int page) { return ((volatile int64_t*)kTableBase)[address_of(page) >> kTableShift]; }

static void wait_until_there(int page) {
  for (int i = 0; i < 10000 && entry(page) == 0; ++i) usleep(1000);
  CHECK(entry(page) != 0);
}
