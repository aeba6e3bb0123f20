// What programs do to mappings while native code runs: memory is freed and used again, protected and opened, moved, given advice,
// handed to the kernel; native code finds what is to be found at each step, or faults.
// levels: O2
// spillcc: -DSPILLED
// memory: 24M
// chaos: 6
// expect: spill.native_ms>=1 cache.regions_mapped>=4
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "native.h"

#define RW (PROT_READ | PROT_WRITE)
enum { kPage = 4096, kPages = 700, kPageWords = kPage / 8 };

static sigjmp_buf back;
static void jump(int number) { siglongjmp(back, number); }

static uint64_t* map(size_t pages) {
  uint64_t* memory = mmap(NULL, pages * kPage, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_SPILLED(memory);
  return memory;
}
static int faults(uint64_t* word, int stores) {
  if (sigsetjmp(back, 1) != 0) return 1;
  if (stores)
    store_native(word, 1);
  else
    load_native(word);
  return 0;
}
NATIVE static void fill_pages(uint64_t* memory, size_t begin, size_t end, uint64_t seed) {
  for (size_t i = begin * kPageWords; i < end * kPageWords; ++i) memory[i] = seed + i;
}
NATIVE static size_t other_than(const uint64_t* memory, size_t begin, size_t end, uint64_t seed) {
  size_t count = 0;
  for (size_t i = begin * kPageWords; i < end * kPageWords; ++i) count += memory[i] != seed + i;
  return count;
}
NATIVE static size_t not_zero(const uint64_t* memory, size_t begin, size_t end) {
  size_t count = 0;
  for (size_t i = begin * kPageWords; i < end * kPageWords; ++i) count += memory[i] != 0;
  return count;
}

static void frees(void) {
  uint64_t* memory = map(kPages);
  fill_pages(memory, 0, kPages, 3);
  CHECK(munmap(memory + 10 * kPageWords, 20 * kPage) == 0);
  CHECK(faults(memory + 10 * kPageWords, 0));
  CHECK(faults(memory + 29 * kPageWords, 1));
  CHECK(other_than(memory, 0, 10, 3) == 0 && other_than(memory, 30, kPages, 3) == 0);
  // Used again, at the same place.
  CHECK(mmap(memory + 10 * kPageWords, 20 * kPage, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        memory + 10 * kPageWords);
  CHECK(not_zero(memory, 10, 30) == 0);
  fill_pages(memory, 10, 30, 3);
  CHECK(other_than(memory, 0, kPages, 3) == 0);
  CHECK(munmap(memory, kPages * kPage) == 0);
  CHECK(faults(memory, 0));
  for (int round = 0; round < 30; ++round) {
    uint64_t* again = map(kPages);
    CHECK(not_zero(again, 0, kPages) == 0);
    fill_pages(again, 0, kPages, round);
    CHECK(other_than(again, 0, kPages, round) == 0);
    CHECK(munmap(again, kPages * kPage) == 0);
  }
}

static void advice(void) {
  uint64_t* memory = map(kPages);
  fill_pages(memory, 0, kPages, 9);
  CHECK(madvise(memory + 5 * kPageWords, 300 * kPage, MADV_DONTNEED) == 0);
  CHECK(not_zero(memory, 5, 305) == 0);
  CHECK(other_than(memory, 0, 5, 9) == 0 && other_than(memory, 305, kPages, 9) == 0);
  fill_pages(memory, 100, 200, 1);
  uint64_t sum = 0;
  for (size_t i = 0; i < kPages * kPageWords; ++i) sum += memory[i];  // by translation
  uint64_t expected = 0;
  for (size_t i = 0; i < kPages * kPageWords; ++i) {
    const size_t page = i / kPageWords;
    expected += page >= 100 && page < 200 ? 1 + i : page >= 5 && page < 305 ? 0 : 9 + i;
  }
  CHECK(sum == expected);
  CHECK(munmap(memory, kPages * kPage) == 0);
}

static void grows(void) {
  uint64_t* block = malloc(200 * kPage);
  fill_pages(block, 0, 200, 5);
  for (size_t pages = 250; pages < 1500; pages += 250) {
    block = realloc(block, pages * kPage);
    CHECK(other_than(block, 0, 200, 5) == 0);
    fill_pages(block, 200, pages, 7);
  }
  CHECK(other_than(block, 0, 200, 5) == 0 && other_than(block, 200, 1250, 7) == 0);
  free(block);
  uint64_t* memory = map(kPages);
  fill_pages(memory, 0, kPages, 11);
  memory = mremap(memory, kPages * kPage, 2 * kPages * kPage, MREMAP_MAYMOVE);
  CHECK(memory != MAP_FAILED);
  CHECK(other_than(memory, 0, kPages, 11) == 0 && not_zero(memory, kPages, 2 * kPages) == 0);
  CHECK(munmap(memory, 2 * kPages * kPage) == 0);
}

static void protects(void) {
  uint64_t* memory = map(kPages);
  fill_pages(memory, 0, kPages, 13);
  CHECK(mprotect(memory + 50 * kPageWords, 10 * kPage, PROT_NONE) == 0);
  CHECK(mprotect(memory + 60 * kPageWords, 10 * kPage, PROT_READ) == 0);
  CHECK(faults(memory + 55 * kPageWords, 0));
  CHECK(!faults(memory + 65 * kPageWords, 0));
  CHECK(faults(memory + 65 * kPageWords, 1));
  CHECK(other_than(memory, 0, 50, 13) == 0 && other_than(memory, 60, kPages, 13) == 0);
  fill_pages(memory, 0, 50, 14);
  CHECK(mprotect(memory + 50 * kPageWords, 20 * kPage, RW) == 0);
  CHECK(other_than(memory, 50, kPages, 13) == 0);
  fill_pages(memory, 50, kPages, 14);
  CHECK(other_than(memory, 0, kPages, 14) == 0);
  // What has only been reserved until now.
  uint64_t* reserved = mmap(NULL, 2 * kPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(reserved != MAP_FAILED);
  CHECK(faults(reserved + 10, 0));
  for (size_t at = 0; at < kPages; at += 100) {
    CHECK(mprotect(reserved + at * kPageWords, 100 * kPage, RW) == 0);
    CHECK(not_zero(reserved, at, at + 100) == 0);
    fill_pages(reserved, at, at + 100, 15);
    CHECK(faults(reserved + (at + 100) * kPageWords, 1));
  }
  CHECK(other_than(reserved, 0, kPages, 15) == 0);
  CHECK(munmap(reserved, 2 * kPages * kPage) == 0);
  CHECK(munmap(memory, kPages * kPage) == 0);
}

static void calls(void) {
  uint64_t* memory = map(kPages);
  int ends[2];
  CHECK(pipe(ends) == 0);
  // Memory that nobody has touched.
  CHECK(write(ends[1], memory + 100, 1000) == 1000);
  CHECK(write(ends[1], "0123456", 8) == 8);
  CHECK(read(ends[0], memory + 300 * kPageWords, 1000) == 1000);
  CHECK(read(ends[0], (char*)(memory + 600 * kPageWords) - 4, 8) == 8);
  CHECK(memcmp((char*)(memory + 600 * kPageWords) - 4, "0123456", 8) == 0);
  CHECK(not_zero(memory, 0, 300) == 0);
  char name[] = "/tmp/native_mappings_XXXXXX";
  const int file = mkstemp(name);
  CHECK(file >= 0 && unlink(name) == 0);
  fill_pages(memory, 0, kPages, 21);
  CHECK(pwrite(file, memory, kPages * kPage, 0) == kPages * kPage);
  uint64_t* copy = map(kPages);
  CHECK(pread(file, copy, kPages * kPage, 0) == kPages * kPage);
  CHECK(other_than(copy, 0, kPages, 21) == 0);
  memset(memory + 3 * kPageWords, 0, 4 * kPage);
  CHECK(not_zero(memory, 3, 7) == 0 && other_than(memory, 7, kPages, 21) == 0);
  // A mapping of the kernel's in the middle.
  uint64_t* shared = mmap(memory + 20 * kPageWords, 10 * kPage, RW, MAP_SHARED | MAP_FIXED, file, 20 * kPage);
  CHECK(shared == memory + 20 * kPageWords);
  fill_pages(memory, 7, kPages, 22);
  CHECK(other_than(memory, 7, kPages, 22) == 0);
  CHECK(pread(file, copy, kPages * kPage, 0) == kPages * kPage);
  CHECK(other_than(copy, 20, 30, 22) == 0 && other_than(copy, 30, kPages, 21) == 0);
  CHECK(munmap(memory, kPages * kPage) == 0);
  CHECK(munmap(copy, kPages * kPage) == 0);
  CHECK(close(file) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
}

int main(void) {
  struct sigaction action = {.sa_handler = jump};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  frees();
  advice();
  grows();
  protects();
  calls();
  puts("as natively");
}
