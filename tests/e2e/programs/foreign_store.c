// Pages that were only read for long, so that nobody compares them any more, and to which only code that spillcc
// did not compile stores: what it stored stays.
// levels: O2
// expect: cache.evictions>=5000 spill.faults>=300 spill.unmaps>=200
#define _GNU_SOURCE
#include <sys/mman.h>
#include "e2e.h"

enum { kPages = 2000, kPage = 4096, kRounds = 5 };

static void read_all(const char* memory) {
  for (int page = 0; page < kPages; ++page) CHECK(memory[page * kPage + 9] == 1);
}

int main(void) {
  char* memory = mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_SPILLED(memory);
  HIDE(memory);
  for (int page = 0; page < kPages; ++page) memory[page * kPage + 9] = 1;
  for (int round = 0; round < kRounds; ++round) {
    for (int again = 0; again < 3; ++again) read_all(memory);
    for (int page = round; page < kPages; page += 29) foreign_increment(memory + page * kPage + 5);
  }
  for (int again = 0; again < 2; ++again) read_all(memory);
  for (int page = 0; page < kPages; ++page) CHECK(memory[page * kPage + 5] == (page % 29 < kRounds));
  return 0;
}
