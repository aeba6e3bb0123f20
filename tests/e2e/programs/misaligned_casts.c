// Misaligned objects read and written through pointers of an aligned type, at every offset around page edges:
// against the rules of C, and common on x86.
// levels: O0 O2
// expect: cache.evictions>=50 spill.crossings>=100
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPages = 1024, kPage = 4096 };

// Not inlined: the compiler must not see where the pointer comes from.
__attribute__((noinline)) static uint64_t get8(const uint64_t *p) { return *p; }
__attribute__((noinline)) static void put8(uint64_t *p, uint64_t v) { *p = v; }
__attribute__((noinline)) static void add8(uint64_t *p, uint64_t v) { *p += v; }
__attribute__((noinline)) static uint32_t get4(const uint32_t *p) { return *p; }
__attribute__((noinline)) static void put2(uint16_t *p, uint16_t v) { *p = v; }
__attribute__((noinline)) static double getd(const double *p) { return *p; }

int main(void) {
  unsigned char *memory = aligned_alloc(kPage, (size_t)kPages * kPage);
  uint64_t sum = 0, state = 88172645463325252u;
  for (size_t i = 0; i < (size_t)kPages * kPage; ++i) memory[i] = (unsigned char)(i * 131 >> 3);
  for (int round = 0; round < 40000; ++round) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    size_t edge = (state >> 20) % (kPages - 1) + 1;
    unsigned char *p = memory + edge * kPage - 16 + state % 24;
    switch (state >> 60) {
      case 0:
      case 1: put8((uint64_t *)p, state); break;
      case 2:
      case 3: add8((uint64_t *)p, state); break;
      case 4: put2((uint16_t *)p, (uint16_t)state); break;
      case 5:
      case 6: sum = sum * 31 + get4((uint32_t *)p); break;
      case 7: {
        double d = getd((double *)p);
        uint64_t bits;
        memcpy(&bits, &d, 8);
        sum = sum * 31 + bits;
        break;
      }
      default: sum = sum * 31 + get8((uint64_t *)p);
    }
  }
  for (size_t i = 0; i < (size_t)kPages * kPage; ++i) sum = sum * 31 + memory[i];
  printf("%llu\n", (unsigned long long)sum);
  free(memory);
}
