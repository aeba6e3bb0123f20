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

// Do other libraries' calls of malloc, read and their kin reach the runtime? Not where the C library is searched first: then
// spillcc compiled a library, and somebody else linked the program. Error: ENOTSUP, and what to do. REQUIRES:
// find_c_library was called. May take the loader's lock.
base::Expected<void> check_search_order();

// The exported function that `address` is part of, null when there is none. May take the loader's lock.
const char* symbol_of(uint64_t address);

}  // namespace spill
