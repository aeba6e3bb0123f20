// Whose code an address is part of; above all, who calls the malloc family under its own names: code that spillcc
// compiled calls the runtime's.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace spill {

enum class Caller { kInstrumented, kForeign, kLibc };

// Judged by the return address; static/caller.cc says what a statically linked program can tell. The loader counts as the C library: the
// thread-local variables of libraries lie in blocks that it allocates, and nobody translates accesses to these.
Caller foreign_caller(const void* return_address);

// To be called once, at the start. Until then, everybody is foreign.
void find_c_library();

// Do other libraries' calls of malloc, read and their kin reach the runtime? They do not if the C library is searched first, because
// spillcc compiled a library but did not link the program, or if another malloc comes first. Error: ENOTSUP, saying what to do.
// REQUIRES: find_c_library was called; `heap_serves_others`: as in heap.h. May take the loader's lock, and calls malloc.
base::Expected<void> check_search_order(bool (*heap_serves_others)());

// Does the program, or another library, define `function` for everybody, instead of the library that defines `neighbour`? A library with a
// malloc of its own does not count: nobody calls that malloc either. May take the loader's lock.
bool is_replaced(const void* function, const void* neighbour);

// The exported function that `address` is part of, null when there is none. May take the loader's lock.
const char* symbol_of(uint64_t address);

}  // namespace spill
