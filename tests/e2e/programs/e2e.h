// What the test programs share. A failed check prints its line and ends the program with status 90.
#pragma once
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) {                                           \
      printf("%s:%d: %s\n", __FILE_NAME__, __LINE__, #condition); \
      fflush(stdout);                                             \
      exit(90);                                                   \
    }                                                             \
  } while (0)

// Keeps the optimiser from knowing where a pointer came from, or that its memory is not used.
#define HIDE(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

static inline int runs_spilled(void) { return getenv("SPILLWAY_SPILL_ALL") != NULL; }

#define SPILLWAY_NUMBER(name, value, doc) static const uint64_t k##name __attribute__((unused)) = value;
#include "../../../include/spillway/abi.inc"

static inline int is_spilled(const volatile void* pointer) {
  return (uint64_t)pointer - kRangeBegin < kRangeEnd - kRangeBegin;
}

// Memory that a test is about must be spilled when the program runs spilled.
#define CHECK_SPILLED(pointer) CHECK(!runs_spilled() || is_spilled(pointer))

// A pseudo-random sequence (splitmix64), the same on every run.
static inline uint64_t next_random(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// Pushes other pages out of a small budget: writes `bytes` of spilled memory once and frees them.
static inline void push_out(size_t bytes) {
  char* block = (char*)malloc(bytes);
  HIDE(block);
  for (size_t i = 0; i < bytes; i += 512) block[i] = (char)(i >> 9);
  HIDE(block);
  free(block);
}
