// What the preload library (preload/) calls of libspillway_persist.so, so that a process has one runtime, whoever loaded it first.
//
// Every `site` is where the program called the preload library.
#pragma once
#include <stddef.h>

extern "C" {
#pragma GCC visibility push(default)

// How a copy is written: as the runtime likes, through the CPU's caches, or past them.
enum { kCachesChoose = 0, kCachesThrough = 1, kCachesPast = 2 };

void __spillway_persist_flush_from(const void* address, size_t bytes, const void* site);
// 0, or an errno value: of a file that the kernel cannot write.
int __spillway_persist_fence_from(const void* site);
// The same for a caller who cannot be told: the process ends instead, with a line.
void __spillway_persist_fence_surely_from(const void* site);
// As memmove and memset, and flushed.
void __spillway_persist_copy_from(void* to, const void* from, size_t bytes, int caches, const void* site);
void __spillway_persist_set_from(void* to, int byte, size_t bytes, int caches, const void* site);
// A store that is not flushed.
void __spillway_persist_stored_from(const void* address, size_t bytes, const void* site);

// persist::own::begin_mapping and end_mapping.
void __spillway_persist_begin_mapping(const void* address, size_t bytes, int is_memory);
void __spillway_persist_end_mapping(const void* address, size_t bytes);
// Is what is mapped there a domain that the kernel writes?
int __spillway_persist_is_file(const void* address);
// Does the option `domain` say that the caches' content is saved when power fails?
int __spillway_persist_is_flush_on_fail(void);

#pragma GCC visibility pop
}
