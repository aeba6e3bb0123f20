// Whether this process spills, and the start of preload mode.
//
// The library is preloaded into the program that `spillway run` starts, and into all that this one starts. In programs that
// use the runtime for compiled code it does nothing. Others run natively until all large allocations that they have ever
// made come to more than 4 MiB or 1/32 of the budget, so that the many small programs of a build or a shell script cost
// nothing. From then on large allocations spill.
#pragma once
#include <cstddef>
#include <cstdint>

#include "spill/abi.h"

namespace spill::preload {

// Allocations from here on may spill.
inline constexpr size_t kLargeBytes = 64 * 1024;

// Should an allocation of `bytes` spill? Starts the service when it is time; ends the process with one line when that
// fails. Not in a child of fork: it has the rest of its life in plain memory.
bool spills(size_t bytes);

// Does the process spill? Not a child of fork, whose parent's memory is not its own.
bool is_on();

// From now on nothing spills. False when something does already.
bool stay_plain();

// Has the process the runtime for compiled code?
bool is_passive();

}  // namespace spill::preload
