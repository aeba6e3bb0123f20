// Starting the program that `spillway run` was given: found as the shell finds it, named in every message.
#pragma once
#include <string>

#include "command.h"

namespace tools {

// Becomes the program (execve); its name is program[0], looked for in PATH when it has no '/'. Says in one
// line on standard error when the program does not use the runtime, since the budget then only holds for what
// it starts. Throws WrongInput when it cannot be started. REQUIRES: program is not empty.
[[noreturn]] void become(Arguments program);

// Whether the file at `path` is an ELF executable for this machine that neither names the runtime among the
// libraries that it needs nor has the note of a statically linked runtime. False for scripts, and for all that
// cannot be read or understood.
bool is_native_program(const std::string& path);

}  // namespace tools
