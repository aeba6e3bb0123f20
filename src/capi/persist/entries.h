// What the preload library (preload/) calls in libspillway_persist.so, so that a process has one runtime, whichever library loads it
// first.
//
// `site` is always where the program has called the preload library.
#pragma once
#include <stddef.h>

extern "C" {
#pragma GCC visibility push(default)

// How a copy is written: as the runtime likes, through the CPU's caches, or past them.
enum { kCachesChoose = 0, kCachesThrough = 1, kCachesPast = 2 };

void __spillway_persist_flush_from(const void* address, size_t bytes, const void* site);
// Returns 0, or an errno value if the kernel cannot write a file.
int __spillway_persist_fence_from(const void* site);
// The same for callers that cannot be told: instead of an error, the process ends with a line.
void __spillway_persist_fence_surely_from(const void* site);
// As memmove and memset, with flushes of what was copied.
void __spillway_persist_copy_from(void* to, const void* from, size_t bytes, int caches, const void* site);
void __spillway_persist_set_from(void* to, int byte, size_t bytes, int caches, const void* site);
// Reports a store that is not flushed.
void __spillway_persist_stored_from(const void* address, size_t bytes, const void* site);

// persist::own::begin_mapping and end_mapping.
void __spillway_persist_begin_mapping(const void* address, size_t bytes, int is_memory);
void __spillway_persist_end_mapping(const void* address, size_t bytes);
// Is the address in a domain that the kernel writes?
int __spillway_persist_is_file(const void* address);
// Does the option `domain` say that the caches' content is saved when power fails?
int __spillway_persist_is_flush_on_fail(void);

#pragma GCC visibility pop
}
