// What a program may say about its memory, in C and C++: which of it never leaves memory, what it will do with the rest, and how
// much there is. Needed by none: the first is for memory whose address goes where spilled memory is slow or refused (io_submit, a
// device, a stack that the program makes), and for what is hot; the second for what nothing else can know.
//
//   SPILLWAY_RESIDENT static char ring[1 << 20];    stays in plain memory under -fspill-globals
//   SPILLWAY_RESIDENT int f(...) { ... }            is not instrumented: what it touches goes by the fault path
//   spill_malloc_resident(bytes)                    malloc in plain memory, whatever its size; free() as ever
//   spill_prefetch(p, bytes)                        begins to load what is not in memory, and returns
//   spill_pin(p, bytes), spill_unpin(p, bytes)      between the two the pages stay in memory
//   spill_flush(p, bytes)                           writes what was changed, so that it can leave memory at once later
//   spill_alloc(bytes, alignment), spill_free(p)    spilled memory, whatever its size (C++: spillway::allocator, spill.hpp)
//   spill_set_memory(bytes)                         another budget from now on
//
// Plain memory comes on top of --memory. Compiled by another compiler than spillcc the macro says nothing that matters, the
// functions that allocate are the C library's, and the others do nothing.
// Thread contract: any thread. Errors: null with errno ENOMEM, or as said.
#ifndef SPILLWAY_SPILL_H
#define SPILLWAY_SPILL_H
#include <errno.h>
#include <malloc.h>
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
                                           : memalign(alignment, bytes);  // C99 has no aligned_alloc
}

// --memory is `bytes` from now on, as `spillway budget` would have it. What exceeds it leaves memory by and by. Returns 0, or an errno:
// EINVAL if that is too small for what the program holds, more than --memory-most or more than the machine has; EAGAIN if a child of fork
// keeps it from growing now; ENOSYS in programs without the runtime, where nothing changes. Cost: some microseconds, and a lock for each part
// of the cache.
extern int __spillway_set_memory(uint64_t bytes) __attribute__((weak));
static inline int spill_set_memory(uint64_t bytes) {
  return __spillway_set_memory ? __spillway_set_memory(bytes) : ENOSYS;
}

// The runtime's, as above.
extern void __spillway_prefetch(const void* p, size_t bytes) __attribute__((weak));
extern int __spillway_pin(const void* p, size_t bytes) __attribute__((weak));
extern int __spillway_unpin(const void* p, size_t bytes) __attribute__((weak));
extern int __spillway_flush(const void* p, size_t bytes) __attribute__((weak));
extern void* __spillway_alloc(size_t bytes, size_t alignment) __attribute__((weak));
extern void __spillway_free(void* p) __attribute__((weak));

// Begins to load the pages of [p, p + bytes) that are on storage and not in memory, from the front, as many as there are free frames for
// and 256 reads bring (none if --prefetch is 0); the rest is left to whoever uses it. Any addresses; those that are not spilled cost nothing. Returns before
// anything is read; evicts nothing, reports no errors. Cost: some 100 ns for each page that is not in memory, a system call for
// eight reads; less than 10 ns for one that is.
static inline void spill_prefetch(const void* p, size_t bytes) {
  if (__spillway_prefetch) __spillway_prefetch(p, bytes);
}
// Loads the pages of [p, p + bytes), which stay in memory until spill_unpin of the same range, as often. Returns 0, or -1 and
// errno: ENOMEM when half of the frames would be pinned, with stacks that are kept in memory three quarters, or less of fewer
// than 8192, or more than 256 ranges; EINVAL for mapped files, protected memory, and ranges that are spilled in part only; EIO
// and others when a page cannot be read. Then nothing is pinned. Plain memory is never anywhere else: 0. The memory may be freed
// while it is pinned: its frames stay taken; but pins of a library's globals end when it is unloaded. A child of fork has its
// parent's pins. Cost: a lock for each page; I/O for those that are not in memory.
static inline int spill_pin(const void* p, size_t bytes) {
  return __spillway_pin ? __spillway_pin(p, bytes) : 0;
}
// Returns 0, or -1 and errno EINVAL: that range was not pinned.
static inline int spill_unpin(const void* p, size_t bytes) {
  return __spillway_unpin ? __spillway_unpin(p, bytes) : 0;
}
// Writes the pages of [p, p + bytes) that were changed to storage, where they stay in memory; pages that are pinned, or that
// another thread is just using, are left. It makes nothing durable. Returns 0, or -1 and errno: EIO when a write failed, EINVAL as
// spill_pin. Cost: I/O; a hash of each page that is in memory.
static inline int spill_flush(const void* p, size_t bytes) {
  return __spillway_flush ? __spillway_flush(p, bytes) : 0;
}
// Uninitialised; `alignment` is a power of two, or 0 for malloc's. Owned by the caller until spill_free, which free() is as good as.
static inline void* spill_alloc(size_t bytes, size_t alignment) {
  if (__spillway_alloc) return __spillway_alloc(bytes, alignment);
  return alignment <= sizeof(void*) ? malloc(bytes) : memalign(alignment, bytes);
}
// Null is allowed.
static inline void spill_free(void* p) {
  if (__spillway_free)
    __spillway_free(p);
  else
    free(p);
}

#ifdef __cplusplus
}
#endif
#endif
