// The spill heap: malloc for instrumented code, from the spill range.
//
// jemalloc arenas (all symbols renamed, cmake/SpillHeap.cmake) whose extents are address space from
// address_space.h; its metadata lies outside the blocks, so that malloc and free never touch a spilled
// page. Objects up to 1 KiB do not straddle an OS page: their slabs are one page, or their size divides it.
//
// Where an allocation goes:
//   instrumented code    plain memory while the plain heap is below runtime.plain_limit_bytes or the
//                        size below --min-alloc; else spilled
//   other libraries      plain memory below kForeignSpillBytes, else spilled
//   the C library        plain memory: it hands its buffers to the kernel, which sees no spilled memory
//   the loader           plain memory: thread-local variables of libraries lie in it, and nobody translates accesses to these
//   a thread that ends   plain memory, once jemalloc has destroyed the thread's caches: what it gave to key destructors after that would
//                        come from the arena of its own metadata
// Freed memory of a megabyte and more is discarded at once, unless half of the frames are free and no page has had to leave yet; smaller
// blocks are discarded when jemalloc purges them.
//
// Thread contract: any thread. Errors: null with errno ENOMEM.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "spill/caller.h"

namespace spill {

base::Expected<void> open_heap();

// To be called once, at the start: finds out whose operators new and delete the program calls (intercept/heap.cc). May take the loader's
// lock.
void find_own_operators();

// Has anybody but compiled code allocated here yet?
bool heap_serves_others();

// `alignment` 0: what malloc gives. Zeroed memory costs no I/O.
void* heap_allocate(size_t bytes, size_t alignment, bool zeroed, Caller caller);
// The same in plain memory, whatever the size. It takes room from the plain memory of small heaps.
void* heap_allocate_resident(size_t bytes, size_t alignment, bool zeroed);
// The same in spilled memory, whatever its size and however small the heap; `alignment` 0 or a power of two.
void* heap_allocate_spilled(size_t bytes, size_t alignment);
// Null is allowed.
void heap_free(void* block, Caller caller);
void* heap_resize(void* block, size_t bytes, Caller caller);
// Resizes any block; the result is plain memory. 0 bytes count as 1.
void* heap_resize_resident(void* block, size_t bytes);
size_t heap_usable_bytes(void* block);

// jemalloc is about to destroy the calling thread's caches (heap_system.cc).
void heap_leave_thread();

// Adds to the statistics what threads have allocated and freed since they last did so themselves, up to 64 KiB each. For the end of the
// program: what another thread allocates meanwhile may be counted twice, or not at all.
void heap_count_bytes();

// Bytes of the heap's metadata that are in memory. One thread only. Cost: 10 us for each MiB of metadata.
uint64_t heap_metadata_bytes();

}  // namespace spill
