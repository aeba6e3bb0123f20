// What the tests of system calls and of the C library's wrappers share: structures and texts that cross the end of a
// page of spilled memory, and calls that may be refused.
#pragma once
#include "e2e.h"

static inline void* zeros(size_t n) {
  char* block = (char*)aligned_alloc(4096, 12288);
  CHECK_SPILLED(block);
  memset(block, 0, 12288);
  HIDE(block);
  return block + 8192 - n / 2 / 8 * 8;
}
#define NEW(T) ((T*)zeros(sizeof(T)))
static inline char* text(const char* of) { return strcpy((char*)zeros(4000), of); }

// Refused for want of rights or of what is asked for, but not as a bad address.
#define CHECK_REACHES(call)                \
  do {                                     \
    errno = 0;                             \
    CHECK((call) >= 0 || errno != EFAULT); \
  } while (0)
