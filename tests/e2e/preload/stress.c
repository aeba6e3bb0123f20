// Threads that load and store at random in memory several times the budget, and compare with what each stored last;
// in between memory is grown, advised away, unmapped, read and written by system calls. Compiled by plain clang.
//
//   stress MEGABYTES SECONDS SEED      prints "checked N" when nothing was wrong
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 4, kPage = 4096, kWords = kPage / 8 };

static size_t pages_each;
static double seconds;
static uint64_t seed;
static uint64_t checked_each[kThreads];

struct Area {
  uint64_t* memory;
  // Of each page; 0: zeros. Plain memory: below what spills, or it is small beside the rest.
  uint32_t* version;
  size_t pages;
};

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t word_of(size_t page, uint32_t version, size_t word) {
  return version == 0
             ? 0
             : (page * 0x9e3779b97f4a7c15u) ^ ((uint64_t)version << 32) ^ (word * 0x2545f4914f6cdd1du);
}

static void fail(const char* what, size_t page, uint64_t found, uint64_t expected) {
  fprintf(stderr, "WRONG %s: page %zu is %lx, not %lx\n", what, page, found, expected);
  _exit(3);
}

static void check(struct Area* area, size_t page, const char* what) {
  for (size_t word = 0; word < kWords; word += 37) {
    uint64_t found = area->memory[page * kWords + word], expected = word_of(page, area->version[page], word);
    if (found != expected) fail(what, page, found, expected);
  }
}

static void fill(struct Area* area, size_t page) {
  ++area->version[page];
  for (size_t word = 0; word < kWords; ++word)
    area->memory[page * kWords + word] = word_of(page, area->version[page], word);
}

// Through a pipe: the kernel loads from one page and stores to another.
static void pass(struct Area* area, size_t from, size_t to, const int* ends) {
  if (from == to) return;
  if (write(ends[1], area->memory + from * kWords, kPage) != kPage) exit(4);
  if (read(ends[0], area->memory + to * kWords, kPage) != kPage) exit(4);
  for (size_t word = 0; word < kWords; word += 37) {
    uint64_t found = area->memory[to * kWords + word], expected = word_of(from, area->version[from], word);
    if (found != expected) fail("system call", to, found, expected);
  }
  fill(area, to);
}

static void forget(struct Area* area, size_t page, size_t count) {
  if (page + count > area->pages) count = area->pages - page;
  madvise(area->memory + page * kWords, count * kPage, MADV_DONTNEED);
  memset(area->version + page, 0, count * sizeof area->version[0]);
}

static void grow(struct Area* area) {
  size_t pages = area->pages + area->pages / 8;
  area->memory = mremap(area->memory, area->pages * kPage, pages * kPage, MREMAP_MAYMOVE);
  if (area->memory == MAP_FAILED) exit(5);
  area->version = realloc(area->version, pages * sizeof area->version[0]);
  memset(area->version + area->pages, 0, (pages - area->pages) * sizeof area->version[0]);
  area->pages = pages;
}

static void make(struct Area* area) {
  area->pages = pages_each;
  area->memory = mmap(NULL, area->pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area->memory == MAP_FAILED) exit(5);
  area->version = calloc(area->pages, sizeof area->version[0]);
}

static void* work(void* argument) {
  size_t thread = (size_t)argument;
  uint64_t random = seed * 7919 + thread + 1, checked = 0;
  int ends[2];
  if (pipe(ends) != 0) exit(4);
  struct Area area;
  make(&area);
  double end = now() + seconds;
  while (now() < end) {
    for (int i = 0; i < 200; ++i, ++checked) {
      // Half of all goes to a tenth of the pages, which should stay.
      size_t page = next_random(&random) % (next_random(&random) % 2 ? area.pages : area.pages / 10 + 1);
      unsigned kind = (unsigned)(next_random(&random) % 1000);
      if (kind < 600)
        check(&area, page, "load");
      else if (kind < 950)
        fill(&area, page);
      else if (kind < 990)
        pass(&area, page, next_random(&random) % area.pages, ends);
      else if (kind < 998)
        forget(&area, page, next_random(&random) % 100);
      else if (area.pages < 2 * pages_each)
        grow(&area);
      else {
        munmap(area.memory, area.pages * kPage);
        free(area.version);
        make(&area);
      }
    }
  }
  for (size_t page = 0; page < area.pages; ++page) check(&area, page, "end");
  checked_each[thread] = checked;
  return NULL;
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  pages_each = (size_t)atol(arguments[1]) * 256 / kThreads;
  seconds = atof(arguments[2]);
  seed = (uint64_t)atol(arguments[3]);
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  uint64_t checked = 0;
  for (size_t i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    checked += checked_each[i];
  }
  printf("checked %lu\n", checked);
  return 0;
}
