// What a C or C++ program that spillcc compiled may say about its memory: what must never be spilled, what it will use next, and
// how much memory it may take. No program has to say any of this. Plain memory, which is never spilled, is for data that is hot, and
// for addresses that go where spilled memory is slow or refused (io_submit, a device, a stack that the program makes); prefetches
// and pins are for what the runtime cannot know by itself. (docs/spill.md)
//
//   SPILLWAY_RESIDENT static char ring[1 << 20];    stays in plain memory under -fspill-globals
//   SPILLWAY_RESIDENT int f(...) { ... }            is not instrumented: its accesses to spilled memory are served by page faults
//   spill_malloc_resident(bytes)                    malloc in plain memory, whatever the size; free() gives it back
//   spill_prefetch(p, bytes)                        begins to load what is not in memory, and returns
//   spill_pin(p, bytes), spill_unpin(p, bytes)      between the two calls the pages stay in memory
//   spill_flush(p, bytes)                           writes what was changed, so that it can leave memory at once later
//   spill_alloc(bytes, alignment), spill_free(p)    spilled memory, whatever the size (C++: spillway::allocator, spill.hpp)
//   spill_set_memory(bytes)                         changes the budget
//
// Plain memory is not part of --memory. In a program without the runtime (one that spillcc did not link) the functions that allocate
// are the C library's, spill_set_memory() returns ENOSYS, and the others do nothing. Sizes are in bytes. Spilled memory is loaded and
// written in pages (--page, 4 KiB by default): ranges may begin and end anywhere, and stand for all pages that they touch.
//
// Thread contract: any thread. Ownership: a block is the caller's until it is freed. Errors: functions that allocate return null with
// errno ENOMEM; the others as they say.
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

// The runtime's functions, which are null in programs without the runtime. Programs call those below.
extern void* __spillway_malloc_resident(size_t bytes) __attribute__((weak));
extern void* __spillway_calloc_resident(size_t count, size_t bytes) __attribute__((weak));
extern void* __spillway_realloc_resident(void* block, size_t bytes) __attribute__((weak));
extern void* __spillway_aligned_alloc_resident(size_t alignment, size_t bytes) __attribute__((weak));

// `bytes` of plain memory, uninitialised. free() gives the result back, as those of the next three. Cost: that of the C library's malloc.
static inline void* spill_malloc_resident(size_t bytes) {
  return __spillway_malloc_resident ? __spillway_malloc_resident(bytes) : malloc(bytes);
}
// The same for `count` elements of `bytes` each, filled with zeros.
static inline void* spill_calloc_resident(size_t count, size_t bytes) {
  return __spillway_calloc_resident ? __spillway_calloc_resident(count, bytes) : calloc(count, bytes);
}
// Moves a block of any kind, spilled or plain, to plain memory of `bytes` bytes, as realloc does; null: allocates. On failure the block
// stays as it is. Cost: a copy.
static inline void* spill_realloc_resident(void* block, size_t bytes) {
  return __spillway_realloc_resident ? __spillway_realloc_resident(block, bytes) : realloc(block, bytes);
}
// As spill_malloc_resident(), aligned. REQUIRES: alignment is a power of two.
static inline void* spill_aligned_alloc_resident(size_t alignment, size_t bytes) {
  return __spillway_aligned_alloc_resident ? __spillway_aligned_alloc_resident(alignment, bytes)
                                           : memalign(alignment, bytes);  // C99 has no aligned_alloc
}

// Sets the budget (--memory) to `bytes` from now on, as `spillway budget` does from outside. What exceeds a smaller budget leaves memory
// gradually. Returns 0, or an errno, and then nothing has changed: EINVAL if `bytes` is too small for what the program holds in memory,
// more than --memory-most or more than the machine has; EAGAIN if the budget cannot grow while a child of fork lives, or if the runtime
// has not started; ENOSYS in programs without the runtime. Cost: some microseconds, and a lock for each part of the cache.
extern int __spillway_set_memory(uint64_t bytes) __attribute__((weak));
static inline int spill_set_memory(uint64_t bytes) {
  return __spillway_set_memory ? __spillway_set_memory(bytes) : ENOSYS;
}

// The runtime's functions, as above.
extern void __spillway_prefetch(const void* p, size_t bytes) __attribute__((weak));
extern int __spillway_pin(const void* p, size_t bytes) __attribute__((weak));
extern int __spillway_unpin(const void* p, size_t bytes) __attribute__((weak));
extern int __spillway_flush(const void* p, size_t bytes) __attribute__((weak));
extern void* __spillway_alloc(size_t bytes, size_t alignment) __attribute__((weak));
extern void __spillway_free(void* p) __attribute__((weak));

// Begins to load the pages of [p, p + bytes) that are on storage and not in memory, and returns before anything is read. Begins at the
// front, and stops when there are no free frames or after 256 reads (at once if --prefetch is 0); later pages are loaded when they are
// used. Evicts nothing and reports no errors. Any address is allowed; plain memory costs nothing. Cost: some 100 ns for each page that is
// not in memory, and a system call for eight reads; less than 10 ns for a page that is in memory.
static inline void spill_prefetch(const void* p, size_t bytes) {
  if (__spillway_prefetch) __spillway_prefetch(p, bytes);
}
// Loads the pages of [p, p + bytes), which stay in memory until spill_unpin() has been called for the same range as often as spill_pin().
// Returns 0, also for plain memory, where there is nothing to do; or -1 with errno, and then nothing is pinned:
//   ENOMEM   more than half of the frames would be pinned; more than three quarters would be, counted with the stacks that are kept in
//            memory (a smaller share of fewer than 8192 frames); or 256 ranges are pinned already
//   EINVAL   the range lies in a mapped file or in protected memory, or only a part of it is spilled
//   EIO and others: a page could not be read
// Memory that is freed while it is pinned goes on taking its frames; pins of a library's globals end when the library is unloaded. A
// child of fork has its parent's pins. Cost: a lock for each page; I/O for those that are not in memory.
static inline int spill_pin(const void* p, size_t bytes) {
  return __spillway_pin ? __spillway_pin(p, bytes) : 0;
}
// Ends one pin of exactly this range. Returns 0; or -1 with errno EINVAL if the range is spilled and not pinned. Cost: a lock for each page.
static inline int spill_unpin(const void* p, size_t bytes) {
  return __spillway_unpin ? __spillway_unpin(p, bytes) : 0;
}
// Writes those pages of [p, p + bytes) that were changed to storage; they stay in memory. Leaves out pages that are pinned or that another
// thread is using at this moment. Makes nothing durable. Returns 0; or -1 with errno: EIO if a write failed or storage is full, EINVAL as
// spill_pin(). Cost: I/O, and a hash of each page that is in memory.
static inline int spill_flush(const void* p, size_t bytes) {
  return __spillway_flush ? __spillway_flush(p, bytes) : 0;
}
// `bytes` of spilled memory, uninitialised. `alignment`: a power of two, or 0 for that of malloc. The block is the caller's until
// spill_free() or free(). Cost: that of malloc.
static inline void* spill_alloc(size_t bytes, size_t alignment) {
  if (__spillway_alloc) return __spillway_alloc(bytes, alignment);
  return alignment <= sizeof(void*) ? malloc(bytes) : memalign(alignment, bytes);
}
// Gives back a block of spill_alloc(), or of any other function that allocates. Null is allowed.
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
