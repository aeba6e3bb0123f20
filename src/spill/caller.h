// Whose code an address is part of; above all, who calls the malloc family under its own names: code that spillcc
// compiled calls the runtime's.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace spill {

enum class Caller { kInstrumented, kForeign, kLibc };

// By its return address; static/caller.cc says what a statically linked program can tell.
Caller foreign_caller(const void* return_address);

// Once, at the start. Before, everybody is foreign.
void find_c_library();

// Do other libraries' calls of malloc, read and their kin reach the runtime? Not where the C library is searched first, since
// spillcc compiled a library, and somebody else linked the program; nor where another malloc comes first. Error: ENOTSUP,
// and what to do. REQUIRES: find_c_library was called; `heap_serves_others`: as in heap.h. May take the loader's lock, and calls malloc.
base::Expected<void> check_search_order(bool (*heap_serves_others)());

// The exported function that `address` is part of, null when there is none. May take the loader's lock.
const char* symbol_of(uint64_t address);

}  // namespace spill
