// What stands for persistent memory: a mapping at an address that the programs and the stand-in know, and that the
// thread sanitizer lets a program have. And what calls the programs expect to be compiled to.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#define REGION ((char*)0x7e9000000000)
enum { kRegionBytes = 1 << 20, kLineBytes = 64 };

// Calls that the program should make. "ordered": of PersistFence, by what orders flushes and is no sfence.
static struct {
  unsigned flushes, flushes_ordered, fences, ordered;
} expected;

static inline void map_region(void) {
  void* got = mmap(REGION, kRegionBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != REGION) perror("mmap"), __builtin_trap();
}

static inline void print_region(void) {
  uint64_t sum = 0;
  for (int i = 0; i < kRegionBytes; ++i) sum = sum * 31 + (unsigned char)REGION[i];
  printf("region %016llx\n", (unsigned long long)sum);
  printf("calls %u %u %u\n", expected.flushes, expected.flushes_ordered, expected.fences + expected.ordered);
}
