// Who calls the malloc family under its own names: code that spillcc compiled calls the runtime's.
#pragma once
namespace spill {

enum class Caller { kInstrumented, kForeign, kLibc };

// By its return address; static/caller.cc says what a statically linked program can tell.
Caller foreign_caller(const void* return_address);

// Once, at the start. Before, everybody is foreign.
void find_c_library();

}  // namespace spill
