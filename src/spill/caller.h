// Whose code an address is part of; above all, who calls the malloc family under its own names: code that spillcc
// compiled calls the runtime's.
#pragma once
#include <cstdint>

namespace spill {

enum class Caller { kInstrumented, kForeign, kLibc };

// By its return address; static/caller.cc says what a statically linked program can tell.
Caller foreign_caller(const void* return_address);

// Once, at the start. Before, everybody is foreign.
void find_c_library();

// The exported function that `address` is part of, null when there is none. May take the loader's lock.
const char* symbol_of(uint64_t address);

}  // namespace spill
