// What the test programs share. A failed check prints its line and ends the program with status 90.
#pragma once
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

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

// Zeros in spilled memory, wherever the heap has room.
static inline void* spilled_zeros(size_t bytes) {
  void* memory = malloc(bytes);
  CHECK_SPILLED(memory);
  memset(memory, 0, bytes);
  HIDE(memory);
  return memory;
}

// Code that spillcc does not translate: assembly with the address in a register.
static inline unsigned char foreign_load(const char* address) {
  unsigned value;
  __asm__ volatile("movzbl (%1), %0" : "=r"(value) : "r"(address));
  return (unsigned char)value;
}
static inline void foreign_increment(char* address) {
  __asm__ volatile("incb (%0)" : : "r"(address) : "memory");
}

// A child process ends, or has ended, with status 0.
static inline void expect_end(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  if (status != 0) printf("status %x\n", status);
  CHECK(status == 0);
}

// What the process has in memory, of all kinds.
static inline size_t resident_bytes(void) {
  unsigned long all, resident;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%lu %lu", &all, &resident) == 2);
  fclose(file);
  return resident * 4096;
}

// Pushes other pages out of a small budget: writes `bytes` of spilled memory once and frees them.
static inline void push_out(size_t bytes) {
  char* block = (char*)malloc(bytes);
  HIDE(block);
  for (size_t i = 0; i < bytes; i += 512) block[i] = (char)(i >> 9);
  HIDE(block);
  free(block);
}
