// On a device that does what it is asked for before it returns nobody looks ahead; pages side by side come with a miss all the same, and
// what the program asks for by hand is loaded.
// levels: O2
// memory: 3M
// storage: memory:64M
// chaos: 1
// pages: 4K
// expect: cache.misses>=1000 cache.read_aheads>=1000 cache.prefetches>=1 cache.prefetches<=64
#include <sys/mman.h>

#include "../../../include/spillway/spill.h"
#include "e2e.h"

enum { kWords = 1 << 20, kIndices = 1 << 18, kWordsPerPage = 4096 / sizeof(uint64_t) };

__attribute__((noinline)) static uint64_t gather(const uint64_t* words, const uint32_t* indices) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kIndices; ++i) sum += words[indices[i]];
  return sum;
}

int main(void) {
  uint64_t* words = aligned_alloc(4096, kWords * sizeof *words);
  uint32_t* indices = aligned_alloc(4096, kIndices * sizeof *indices);
  CHECK_SPILLED(words);
  for (size_t i = 0; i < kWords; ++i) words[i] = i * 0x9e3779b97f4a7c15;
  uint64_t state = 1, expected = 0;
  for (size_t i = 0; i < kIndices; ++i) {
    indices[i] = (uint32_t)(next_random(&state) % kWords);
    expected += indices[i] * 0x9e3779b97f4a7c15;
  }
  for (int round = 0; round < 2; ++round) CHECK(gather(words, indices) == expected);
  // From front to back, and in steps.
  for (size_t i = 0; i < kWords; ++i) CHECK(words[i] == i * 0x9e3779b97f4a7c15);
  // The front is long evicted then, which it need not be after the steps: all the pages that they touch fit.
  spill_prefetch(words, 16 * 4096);
  CHECK(words[0] == 0);
  for (size_t i = 0; i < kWords; i += 3 * kWordsPerPage) CHECK(words[i] == i * 0x9e3779b97f4a7c15);
  puts("right");
  return 0;
}
