// What code that spillcc -fspill-persist has compiled calls instead of instructions (spillway/abi.inc).
//
// A fence of the CPU cannot fail, and its caller cannot be told. So if the kernel cannot write a file, the process ends before it treats
// as durable what is not.
#include <cstddef>
#include <cstdint>

#include "capi/persist/objects.h"
#include "persist/own/own.h"

using capi::persisting::number_of;

extern "C" {
#pragma GCC visibility push(default)

void __spillway_persist_flush(const void* address) {
  persist::own::flush(number_of(address), __builtin_return_address(0));
}

void __spillway_persist_flush_ordered(const void* address) {
  persist::own::flush_ordered(number_of(address), __builtin_return_address(0));
}

void __spillway_persist_fence(void) { persist::own::fence_surely(__builtin_return_address(0)); }

void __spillway_persist_store(const void* address, size_t bytes) {
  persist::own::store(number_of(address), bytes, false, __builtin_return_address(0));
}

void __spillway_persist_store_past_caches(const void* address, size_t bytes) {
  persist::own::store(number_of(address), bytes, true, __builtin_return_address(0));
}

void __spillway_persist_sampled(const void* address) { persist::own::sampled(number_of(address)); }

#pragma GCC visibility pop
}  // extern "C"

// When the library is loaded: DT_INIT.
extern "C" void persist_begin();
extern "C" void persist_begin() { persist::own::begin(); }

// At exit(), and when the library is unloaded.
__attribute__((destructor)) static void end_of_process() { persist::own::finish(); }
