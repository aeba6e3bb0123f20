// The C library's own functions, which the runtime's interposers hide.
//
// In a process with a sanitizer, the sanitizer's interceptors count as the C library: it must see each thread begin,
// and neither heap can free blocks of the other.
#pragma once
#include <cstddef>

namespace sys {

// The definition of `name` that follows the runtime's own: that of symbol version `version`, if `version` is not null
// and there is one, else the default version. Returns null if there is no definition. May block (the loader's lock).
void* find_c_function(const char* name, const char* version);

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SPILLWAY_C_HEAP(name) "__interceptor_" #name
#else
#define SPILLWAY_C_HEAP(name) "__libc_" #name
#endif

// The C library's heap, under names that nobody interposes.
extern "C" {
void* c_malloc(size_t bytes) asm(SPILLWAY_C_HEAP(malloc));
void* c_calloc(size_t count, size_t bytes) asm(SPILLWAY_C_HEAP(calloc));
void* c_realloc(void* block, size_t bytes) asm(SPILLWAY_C_HEAP(realloc));
void* c_memalign(size_t alignment, size_t bytes) asm(SPILLWAY_C_HEAP(memalign));
void c_free(void* block) asm(SPILLWAY_C_HEAP(free));
}
#undef SPILLWAY_C_HEAP

}  // namespace sys
