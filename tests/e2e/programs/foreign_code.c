// Code that spillcc did not compile and code that it did change the same bytes in turn, on many more pages than
// may be mapped for the former; and neither reaches what has been freed.
// chaos: 3
// levels: O2
// expect: cache.evictions>=500 spill.faults>=500 spill.unmaps>=300
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include "e2e.h"

enum { kPages = 600, kPage = 4096, kRounds = 6 };

static sigjmp_buf back;
static void jump(int number) { siglongjmp(back, number); }

int main(void) {
  char* memory = mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_SPILLED(memory);
  HIDE(memory);
  for (int round = 0; round < kRounds; ++round) {
    for (int page = 0; page < kPages; ++page) {
      char* cell = memory + page * kPage + page * 5 % kPage;
      foreign_increment(cell);
      CHECK(*cell == 2 * round + 1);
      // The page before is still mapped.
      if (page > 0) foreign_increment(cell - kPage + 64);
      *cell += 1;
      foreign_increment(cell + 1024 - (page * 5 % kPage > 2000 ? 2048 : 0));
    }
    push_out(1500000);
  }
  for (int page = 0; page < kPages; ++page) {
    char* cell = memory + page * kPage + page * 5 % kPage;
    CHECK(*cell == 2 * kRounds);
    CHECK(cell[1024 - (page * 5 % kPage > 2000 ? 2048 : 0)] == kRounds);
    if (page + 1 < kPages && (page + 1) * 5 % kPage > 100)
      CHECK(memory[page * kPage + (page + 1) * 5 % kPage + 64] == kRounds);
  }
  signal(SIGSEGV, jump);
  volatile int faults = 0;
  for (volatile int round = 0; round < 20; ++round) {
    char* freed = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_SPILLED(freed);
    for (int page = 0; page < 60; ++page) foreign_increment(freed + page * kPage);
    HIDE(freed);
    munmap(freed, 1 << 20);
    if (sigsetjmp(back, 1) == 0)
      foreign_increment(freed + (32 + round) * kPage);  // larger pages at the ends belong to others too
    else
      ++faults;
  }
  printf("%d faults\n", faults);
  return 0;
}
