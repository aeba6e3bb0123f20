// Starting the program that `spillway run` was given: found as the shell finds it, named in every message.
#pragma once
#include <string>

#include "command.h"

namespace tools {

// Becomes the program (execve); its name is program[0], looked for in PATH when it has no '/'. A program that does not
// use the runtime gets the library of preload mode, unless `preload` is false; then, or where the kernel does not let
// pages be supplied, one line on standard error says that the budget only holds for what it starts. Throws WrongInput
// when it cannot be started, or preload mode cannot work in it. REQUIRES: program is not empty.
[[noreturn]] void become(Arguments program, bool preload);

// How the program in a file gets its memory.
enum class Kind {
  kUnknown,   // cannot be read or understood
  kCompiled,  // by the runtime: spillcc built it
  kDynamic,   // by the C library that preload mode knows
  kStatic,    // the same, but linked into it
  kForeign,   // by another C library
  k32Bit,
};
// A script counts as its interpreter.
Kind kind_of_program(const std::string& path);

}  // namespace tools
