// What the programs here share: a file that is mapped and takes stores, flushes and fences as persistent memory does. Plain C with the CPU's
// intrinsics; a header that is included before may have other definitions of STORE and its kin, which tell of what is done.
#ifndef PM_H
#define PM_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// As it stands: neither left out nor reordered by the compiler.
#ifndef STORE
#define STORE(place, value) (*(volatile __typeof__(*(place))*)(place) = (value))
#endif
#ifndef PM_DOMAIN
#define PM_DOMAIN(address, bytes, path) ((void)0)
#define PM_DOMAIN_ENDS(address, bytes) ((void)0)
#define PM_MARKER(text) ((void)0)
#endif

#define PERSIST_FENCE() _mm_sfence()
#define PERSIST_FLUSH(address, bytes)                               \
  do {                                                              \
    for (uintptr_t pm_line = (uintptr_t)(address) & ~(uintptr_t)63; \
         pm_line < (uintptr_t)(address) + (bytes); pm_line += 64)   \
      _mm_clwb((void*)pm_line);                                     \
  } while (0)

static inline void* pm_open(const char* path, size_t bytes) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) {
    perror(path);
    exit(2);
  }
  void* const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    perror(path);
    exit(2);
  }
  close(file);
  return memory;
}

// So many operations are done, for good: a recovery must find them.
static inline void pm_done(unsigned count) {
  char text[16];
  snprintf(text, sizeof text, "%u", count);
  PM_MARKER(text);
}

static inline int pm_fail(const char* what, unsigned number) {
  printf("%s %u\n", what, number);
  return 1;
}
#endif
