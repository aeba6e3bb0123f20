// What the programs here share: a file that is mapped and takes stores, flushes and fences as persistent memory does. Plain C with the CPU's intrinsics, for any
// compiler; a program that has the persistence runtime, as spillcc -fspill-persist links it, tells it of the mapping and how far it has come.
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

#include "spillway/persist.h"

#pragma weak spillway_persist_add
#pragma weak spillway_persist_remove
#pragma weak spillway_persist_mark
#pragma weak spillway_persist_error_text

// As it stands: neither left out nor reordered by the compiler.
#define STORE(place, value) (*(volatile __typeof__(*(place))*)(place) = (value))

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

static inline void pm_domain(void* address, size_t bytes) {
  if (spillway_persist_add == NULL) return;
  if (spillway_persist_add(address, bytes, "dram", -1) == SPILLWAY_PERSIST_OK) return;
  fprintf(stderr, "%s\n", spillway_persist_error_text());
  exit(2);
}

static inline void pm_domain_ends(void* address, size_t bytes) {
  if (spillway_persist_remove != NULL) spillway_persist_remove(address, bytes);
}

// So many operations are done, for good: a recovery must find them.
static inline void pm_done(unsigned count) {
  char text[16];
  snprintf(text, sizeof text, "%u", count);
  if (spillway_persist_mark != NULL) spillway_persist_mark(text);
}

static inline int pm_fail(const char* what, unsigned number) {
  printf("%s %u\n", what, number);
  return 1;
}
#endif
