// Programs that page by themselves: their SIGSEGV handler brings a page in, and takes away another one that the interrupted
// code may be about to use; and a collector's write barrier, which must see every first store to a page.
// case: page 2
// case: page 3
// case: page 9
// case: barrier
// levels: O0 O2 O3
// pages: 4K 64K 16K
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

#define P 4096
#define RW (PROT_READ | PROT_WRITE)
enum { N = 120 };

typedef struct {
  volatile uint64_t words[P / 8];
} Page;

static Page* pages;
static Page disk[N];
static int present[N], queue[N], queue_begin, queue_end, most_present;
static long faults, stores;

static void page_in(int number, siginfo_t* info, void* context) {
  (void)context;
  const size_t wanted = ((uintptr_t)info->si_addr - (uintptr_t)pages) / P;
  CHECK(number == SIGSEGV && wanted < N && !present[wanted]);
  ++faults;
  if (queue_end - queue_begin == most_present) {
    const int victim = queue[queue_begin++ % N];
    memcpy(&disk[victim], &pages[victim], P);
    CHECK(mprotect(&pages[victim], P, PROT_NONE) == 0);
    // What is there no more must not be seen.
    if (victim % 2 == 0) CHECK(madvise(&pages[victim], P, MADV_DONTNEED) == 0);
    present[victim] = 0;
  }
  CHECK(mprotect(&pages[wanted], P, RW) == 0);
  memcpy(&pages[wanted], &disk[wanted], P);
  queue[queue_end++ % N] = (int)wanted;
  present[wanted] = 1;
}

// Each page again and again, with others in between: what was translated for one is used after another has faulted.
__attribute__((noinline)) static uint64_t mix(Page* a, Page* b, Page* c, unsigned i) {
  uint64_t sum = 0;
  for (unsigned k = i; k < i + 12; k += 4) {
    sum += a->words[k];
    b->words[k + 1] += sum;
    sum = sum * 31 + a->words[k + 1];
    c->words[k + 2] ^= sum;
    a->words[k + 2] = sum + b->words[k + 1];
    sum += c->words[k + 3] + b->words[k + 2];
  }
  return sum;
}
// Loops that keep to a page each.
__attribute__((noinline)) static void add(volatile uint64_t* to, const volatile uint64_t* from,
                                          unsigned count) {
  for (unsigned i = 0; i < count; ++i) to[i] += from[i] * 3;
}

static void set(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
}

static void page(int most) {
  most_present = most;
  set(page_in);
  pages = mmap(NULL, N * P, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED);
  CHECK_SPILLED(pages);
  uint64_t random = 3, sum = 0;
  for (int i = 0; i < N; ++i) disk[i].words[i] = (uint64_t)i;
  for (int step = 0; step < 3000; ++step) {
    Page* a = &pages[next_random(&random) % N];
    Page* b = &pages[next_random(&random) % N];
    Page* c = &pages[next_random(&random) % N];
    const unsigned i = (unsigned)(next_random(&random) % 400);
    switch (next_random(&random) % 4) {
      case 0: add(a->words + i / 2, b->words + i, 100); break;
      case 1:
        // Copies a page's piece onto another, by the C library.
        if (a != b) memcpy((void*)&a->words[i], (void*)&b->words[i], 300);
        break;
      default: sum = sum * 31 + mix(a, b, c, i);
    }
    if (step % 500 == 0) push_out(1 << 20);
  }
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < P / 8; ++k) sum = sum * 31 + pages[i].words[k];
  // How often it faults depends on how the program was compiled.
  printf("%lu %d\n", sum, faults > 1000);
}

static int dirty[N];
static void note_store(int number, siginfo_t* info, void* context) {
  (void)context;
  const size_t page = ((uintptr_t)info->si_addr - (uintptr_t)pages) / P;
  CHECK(number == SIGSEGV && page < N && !dirty[page]);
  dirty[page] = 1;
  ++stores;
  CHECK(mprotect(&pages[page], P, RW) == 0);
}

static void barrier(void) {
  set(note_store);
  pages = mmap(NULL, N * P, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED);
  CHECK_SPILLED(pages);
  uint64_t random = 5, sum = 0;
  for (int round = 0; round < 60; ++round) {
    memset(dirty, 0, sizeof dirty);
    CHECK(mprotect(pages, N * P, PROT_READ) == 0);
    memcpy(disk, pages, N * P);
    const int steps = (int)(next_random(&random) % 40);
    for (int step = 0; step < steps; ++step) {
      Page* a = &pages[next_random(&random) % N];
      Page* b = &pages[next_random(&random) % N];
      const unsigned i = (unsigned)(next_random(&random) % 400);
      if (step % 2 == 0)
        add(a->words + i / 2, b->words + i, 50);
      else
        sum += mix(a, b, a, i);
      a->words[i] += 1;
      b->words[i] += 1;
    }
    if (round % 10 == 0) push_out(1 << 20);
    for (int i = 0; i < N; ++i) {
      CHECK(dirty[i] == (memcmp((void*)&disk[i], (void*)&pages[i], P) != 0));
      sum = sum * 31 + (uint64_t)dirty[i];
    }
  }
  printf("%lu %ld\n", sum, stores);
}

int main(int argc, char** argv) {
  CHECK(argc >= 2);
  if (strcmp(argv[1], "page") == 0)
    page(atoi(argv[2]));
  else
    barrier();
  return 0;
}
