// jemalloc's API under the names that cmake/SpillHeap.cmake gives it.
#pragma once
#include <cstddef>

extern "C" {
typedef struct extent_hooks_s extent_hooks_t;
struct extent_hooks_s {
  void* (*alloc)(extent_hooks_t*, void*, size_t, size_t, bool*, bool*, unsigned);
  bool (*dalloc)(extent_hooks_t*, void*, size_t, bool, unsigned);
  void (*destroy)(extent_hooks_t*, void*, size_t, bool, unsigned);
  bool (*commit)(extent_hooks_t*, void*, size_t, size_t, size_t, unsigned);
  bool (*decommit)(extent_hooks_t*, void*, size_t, size_t, size_t, unsigned);
  bool (*purge_lazy)(extent_hooks_t*, void*, size_t, size_t, size_t, unsigned);
  bool (*purge_forced)(extent_hooks_t*, void*, size_t, size_t, size_t, unsigned);
  bool (*split)(extent_hooks_t*, void*, size_t, size_t, size_t, bool, unsigned);
  bool (*merge)(extent_hooks_t*, void*, size_t, void*, size_t, bool, unsigned);
};

// The shorter ways of mallocx and dallocx without flags; nallocx says what malloc's block has.
void* spillje_malloc(size_t bytes);
void spillje_sdallocx(void* block, size_t bytes, int flags);
size_t spillje_nallocx(size_t bytes, int flags);
void* spillje_mallocx(size_t bytes, int flags);
size_t spillje_xallocx(void* block, size_t bytes, size_t extra, int flags);
size_t spillje_sallocx(const void* block, int flags);
int spillje_mallctl(const char* name, void* old, size_t* old_length, void* value, size_t value_length);
// Read once, by jemalloc's constructor.
extern const char* spillje_malloc_conf;
}

// The alignment flag of mallocx: log2 in the low bits.
#define MALLOCX_ALIGN(alignment) (__builtin_ctzll(alignment))
