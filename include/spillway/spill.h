// What a program may say about its memory, in C and C++: which of it never leaves memory, and how much there is. Needed by none: for memory
// whose address goes where spilled memory is slow or refused (io_submit, a device, a stack that the program makes), and for what is hot.
//
//   SPILLWAY_RESIDENT static char ring[1 << 20];    stays in plain memory under -fspill-globals
//   SPILLWAY_RESIDENT int f(...) { ... }            is not instrumented: what it touches goes by the fault path
//   spill_malloc_resident(bytes)                    malloc in plain memory, whatever its size; free() as ever
//
// Plain memory comes on top of --memory. Compiled by another compiler than spillcc the macro says nothing that matters, and the
// functions are the C library's.
//   spill_set_memory(bytes)                         another budget from now on
//
// Thread contract: any thread. Errors: null with errno ENOMEM, unless it says otherwise.
#ifndef SPILLWAY_SPILL_H
#define SPILLWAY_SPILL_H
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __clang__
#define SPILLWAY_RESIDENT __attribute__((annotate("spill_none")))
#else
#define SPILLWAY_RESIDENT
#endif

#ifdef __cplusplus
extern "C" {
#endif

// The runtime's; null in programs without it.
extern void* __spillway_malloc_resident(size_t bytes) __attribute__((weak));
extern void* __spillway_calloc_resident(size_t count, size_t bytes) __attribute__((weak));
extern void* __spillway_realloc_resident(void* block, size_t bytes) __attribute__((weak));
extern void* __spillway_aligned_alloc_resident(size_t alignment, size_t bytes) __attribute__((weak));

// Each result is given back by free(). Uninitialised.
static inline void* spill_malloc_resident(size_t bytes) {
  return __spillway_malloc_resident ? __spillway_malloc_resident(bytes) : malloc(bytes);
}
// Zeros.
static inline void* spill_calloc_resident(size_t count, size_t bytes) {
  return __spillway_calloc_resident ? __spillway_calloc_resident(count, bytes) : calloc(count, bytes);
}
// Of any block of malloc or of these; the result never leaves memory. On failure the block stays as it is.
static inline void* spill_realloc_resident(void* block, size_t bytes) {
  return __spillway_realloc_resident ? __spillway_realloc_resident(block, bytes) : realloc(block, bytes);
}
// REQUIRES: alignment is a power of two.
static inline void* spill_aligned_alloc_resident(size_t alignment, size_t bytes) {
  return __spillway_aligned_alloc_resident ? __spillway_aligned_alloc_resident(alignment, bytes)
                                           : aligned_alloc(alignment, bytes);
}

// --memory is `bytes` from now on, as `spillway budget` would have it. What exceeds it leaves memory by and by. Returns 0, or an errno:
// EINVAL if that is too small for what the program holds, more than --memory-most or more than the machine has; EAGAIN if a child of fork
// keeps it from growing now; ENOSYS in programs without the runtime, where nothing changes. Cost: some microseconds, and a lock for each part
// of the cache.
extern int __spillway_set_memory(uint64_t bytes) __attribute__((weak));
static inline int spill_set_memory(uint64_t bytes) {
  return __spillway_set_memory ? __spillway_set_memory(bytes) : ENOSYS;
}

#ifdef __cplusplus
}
#endif
#endif
