// Loops that look ahead, of which most iterations leave out what they might access, after a look at a value: that is not loaded. What they
// compute is what they would compute without, also where values change between the look and the iteration, and where they end with the memory.
// If what is left out were loaded, too, they would begin twice as many reads or more.
// expect: cache.prefetches>=200 cache.prefetches<=850 cache.ahead_used>=100
// levels: O2
// pages: 4K
// chaos: 2
#define _GNU_SOURCE
#include <sys/mman.h>

#include "e2e.h"

enum { P = 4096, ROWS = 1 << 15, VALUES = 1 << 19, KINDS = 512, LONGEST = 32 };

static uint64_t* values;
static uint32_t* places;
static uint64_t* offsets;

__attribute__((noinline)) static uint64_t sum_of_kind(const uint32_t* kinds, uint32_t kind, const uint32_t* p,
                                                      const uint64_t* x, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) {
    if (kinds[i] != kind) continue;
    s = s * 3 + x[p[i]];
  }
  return s;
}

// Other threads might change what is looked at. Some rows are empty.
__attribute__((noinline)) static uint64_t rows_of_kind(const uint32_t* kinds, uint32_t kind,
                                                       const uint64_t* begins, const uint64_t* x, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) {
    if (__atomic_load_n(&kinds[i], __ATOMIC_RELAXED) != kind) continue;
    for (uint64_t e = begins[i]; e < begins[i + 1]; ++e) s = s * 5 + x[e];
  }
  return s;
}

// Each iteration changes the kind of one to come.
__attribute__((noinline)) static uint64_t sum_and_change(uint32_t* kinds, const uint32_t* p, uint64_t* x,
                                                         size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i + 50 < n; ++i) {
    if (kinds[i] % 4 == 0) {
      s = s * 7 + x[p[i]];
      x[p[i]] += i;
    }
    kinds[i + 50] += (uint32_t)(s % 3);
  }
  return s;
}

// Its end is in the data, where nothing is known of a condition ahead.
__attribute__((noinline)) static uint64_t until(const uint32_t* kinds, uint32_t end, const uint32_t* p,
                                                const uint64_t* x) {
  uint64_t s = 0;
  for (size_t i = 0; kinds[i] != end; ++i)
    if (kinds[i] % 8 == 0) s = s * 11 + x[p[i]];
  return s;
}

// Kinds that end where memory ends, plain and spilled.
static void at_the_end(int flags) {
  char* memory = mmap(NULL, 3 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  CHECK(memory != MAP_FAILED && munmap(memory + 2 * P, P) == 0);
  uint32_t* kinds = (uint32_t*)memory;
  const size_t n = 2 * P / sizeof *kinds;
  uint64_t seed = 5;
  for (size_t i = 0; i < n; ++i) kinds[i] = (uint32_t)(next_random(&seed) % KINDS);
  kinds[n - 1] = ~0u;
  static const uint32_t zeros[2 * P / sizeof(uint32_t)];
  for (int round = 0; round < 2; ++round)
    printf("%llx %llx %llx\n", (unsigned long long)until(kinds, ~0u, zeros, values),
           (unsigned long long)sum_of_kind(kinds, 7, places, values, n),
           (unsigned long long)rows_of_kind(kinds, 7, offsets, values, n));
  CHECK(munmap(memory, 2 * P) == 0);
}

int main(void) {
  uint64_t seed = 1;
  values = malloc(VALUES * sizeof *values);
  places = malloc(ROWS * sizeof *places);
  offsets = malloc((ROWS + 1) * sizeof *offsets);
  uint32_t* kinds = malloc(ROWS * sizeof *kinds);
  CHECK_SPILLED(values);
  uint64_t entries = 0;
  for (size_t i = 0; i < ROWS; ++i) {
    places[i] = (uint32_t)(next_random(&seed) % VALUES);
    kinds[i] = (uint32_t)(next_random(&seed) % KINDS);
    offsets[i] = entries;
    entries += i % 5 == 0 ? 0 : next_random(&seed) % LONGEST;
  }
  offsets[ROWS] = entries;
  CHECK(entries <= VALUES);
  for (size_t i = 0; i < VALUES; ++i) values[i] = next_random(&seed);
  for (uint32_t kind = 0; kind < 2; ++kind) {
    printf("sum %llx\n", (unsigned long long)sum_of_kind(kinds, kind, places, values, ROWS));
    printf("rows %llx\n", (unsigned long long)rows_of_kind(kinds, kind, offsets, values, ROWS));
  }
  at_the_end(0);
  at_the_end(MAP_STACK);
  printf("changing %llx\n", (unsigned long long)sum_and_change(kinds, places, values, 1024));
  printf("sum %llx\n", (unsigned long long)sum_of_kind(kinds, 2, places, values, ROWS));
  return 0;
}
