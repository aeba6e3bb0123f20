// Anonymous memory reads as zeros: fresh, mapped again after munmap, dropped by madvise, grown by mremap,
// and from calloc, although frames and storage held other bytes before.
// expect: cache.evictions>=2000 cache.zero_fills>=1000 storage.write_bytes>=1000000
#define _GNU_SOURCE
#include <sys/mman.h>
#include "e2e.h"

#define BYTES (4u << 20)

static char* map(size_t bytes) {
  char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_SPILLED(memory);
  return memory;
}
static void expect_zeros(const char* memory, size_t bytes) {
  uint64_t any = 0;
  for (size_t i = 0; i < bytes; i += 8) any |= *(const uint64_t*)(memory + i);
  CHECK(any == 0);
}

int main(void) {
  for (int round = 0; round < 3; ++round) {
    char* memory = map(BYTES);
    expect_zeros(memory, BYTES);
    memset(memory, 0xab, BYTES);
    // A hole in the middle, at no boundary of larger pages.
    CHECK(madvise(memory + 5 * 4096, 37 * 4096, MADV_DONTNEED) == 0);
    expect_zeros(memory + 5 * 4096, 37 * 4096);
    CHECK(memory[5 * 4096 - 1] == (char)0xab && memory[42 * 4096] == (char)0xab);
    CHECK(munmap(memory + BYTES / 2, BYTES / 2) == 0);
    char* more = map(BYTES / 2);
    expect_zeros(more, BYTES / 2);
    more[12345] = 1;
    CHECK((unsigned char)memory[BYTES / 2 - 1] == 0xab);
    char* grown = mremap(memory, BYTES / 2, BYTES, MREMAP_MAYMOVE);
    CHECK(grown != MAP_FAILED);
    CHECK(grown[0] == (char)0xab && grown[BYTES / 2 - 1] == (char)0xab);
    expect_zeros(grown + BYTES / 2, BYTES / 2);
    CHECK(more[12345] == 1);
    munmap(grown, BYTES);
    munmap(more, BYTES / 2);
    char* block = malloc(BYTES / 4);
    memset(block, 0xcd, BYTES / 4);
    HIDE(block);
    free(block);
    for (int i = 0; i < 8; ++i) {
      size_t bytes = BYTES / 4 >> i;
      char* zeros = calloc(bytes, 1);
      CHECK_SPILLED(zeros);
      expect_zeros(zeros, bytes & ~7u);
      memset(zeros, 0xef, bytes);
      HIDE(zeros);
      free(zeros);
    }
  }
  printf("zeros\n");
  return 0;
}
