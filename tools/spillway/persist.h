// The subcommands of `spillway persist`.
//
// To add one: 1) `int persist_NAME(Arguments arguments);` below, 2) define it in persist_NAME.cc, 3) a row in persist.cc's table, 4) its
// cases in tests/persist_check or tests/cli.
#pragma once
#include "command.h"

namespace tools {

// They get the words after their name, and return the exit status.
int persist_check(Arguments arguments);
int persist_run(Arguments arguments);

}  // namespace tools
