// An allocator that reserves far more than it uses and commits pieces of it by mprotect, as mimalloc, jemalloc and the
// engines of languages do: what it has committed is spilled, and takes no more memory than the budget.
// case: keep
// case: advise
// case: map
// storage: /var/tmp
// expect: cache.evictions>=2000 spill.faults<=0 spill.protections>=100
// pages: 64K 4K 16K
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

#define P 4096
#define RW (PROT_READ | PROT_WRITE)
#define AN (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
enum { kSlots = 400, kLargest = 25 * P };  // each with room for the largest block
#define STRIDE ((size_t)160 << 20)         // slots lie all over the reservation

static char* reserved;
static struct {
  size_t bytes;  // committed
  uint64_t seed;
} slots[kSlots];

static char* at(int slot) { return reserved + (size_t)slot * STRIDE + (size_t)(slot % 7) * 3 * P; }

static void write_block(int slot) {
  uint64_t random = slots[slot].seed;
  uint64_t* words = (uint64_t*)at(slot);
  for (size_t i = 0; i < slots[slot].bytes / 8; i += 16) words[i] = next_random(&random);
}
static void check_block(int slot) {
  uint64_t random = slots[slot].seed;
  const uint64_t* words = (const uint64_t*)at(slot);
  for (size_t i = 0; i < slots[slot].bytes / 8; i += 16)
    CHECK(words[i] == next_random(&random) && words[i + 1] == 0);
}

static void commit(int slot, size_t bytes, uint64_t seed) {
  CHECK(mprotect(at(slot), bytes, RW) == 0);
  slots[slot].bytes = bytes;
  slots[slot].seed = seed;
  write_block(slot);
}
static void decommit(int slot, const char* how) {
  char* block = at(slot);
  check_block(slot);
  if (strcmp(how, "map") == 0) {
    CHECK(mmap(block, slots[slot].bytes, PROT_NONE, AN | MAP_FIXED, -1, 0) == block);
  } else {
    if (strcmp(how, "keep") == 0) memset(block, 0, slots[slot].bytes);
    CHECK(mprotect(block, slots[slot].bytes, PROT_NONE) == 0);
    if (strcmp(how, "advise") == 0) CHECK(madvise(block, slots[slot].bytes, MADV_DONTNEED) == 0);
  }
  slots[slot].bytes = 0;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const size_t before = resident_bytes();
  reserved = mmap(NULL, (size_t)64 << 30, PROT_NONE, AN, -1, 0);
  CHECK(reserved != MAP_FAILED);
  CHECK_SPILLED(reserved);
  CHECK(resident_bytes() - before < 2 << 20);
  uint64_t random = 1, live = 0, most = 0;
  for (int step = 0; step < 3000; ++step) {
    const int slot = (int)(next_random(&random) % kSlots);
    live -= slots[slot].bytes;
    if (slots[slot].bytes != 0 && next_random(&random) % 4 != 0)
      check_block(slot);
    else if (slots[slot].bytes != 0)
      decommit(slot, argv[1]);
    else
      commit(slot, (1 + next_random(&random) % (kLargest / P)) * P, next_random(&random));
    live += slots[slot].bytes;
    if (live > most) most = live;
    // Frames are mapped twice, tables and metadata come on top: far less than what the program has in use.
    if (runs_spilled() && step % 100 == 0 && live > 12 << 20) CHECK(resident_bytes() - before < 10 << 20);
  }
  for (int slot = 0; slot < kSlots; ++slot) check_block(slot);
  printf("%lu bytes at most, %lu at the end\n", most, live);
  CHECK(most > 12 << 20);
  CHECK(munmap(reserved, (size_t)64 << 30) == 0);
  return 0;
}
