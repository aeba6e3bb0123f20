// Whether this process spills, and the start of preload mode.
//
// The library is preloaded into the program that `spillway run` starts, and into all that this one starts. In programs that
// use the runtime for compiled code it does nothing. Others run natively until the large allocations that they have made
// add up to more than 4 MiB or 1/32 of the budget, whichever is less, so that the many small programs of a build or a shell
// script cost nothing. From then on large allocations spill.
#pragma once
#include <cstddef>
#include <cstdint>

#include "spill/abi.h"

namespace spill::preload {

// Allocations of this size and above may spill.
inline constexpr size_t kLargeBytes = 64 * 1024;

// Should an allocation of `bytes` spill? Starts the service when it is due; ends the process with one line if that
// fails. Never in a child of fork, which stays in plain memory for the rest of its life.
bool spills(size_t bytes);

// Does the process spill? False in a child of fork, which does not have its parent's memory.
bool is_on();

// From now on nothing will spill. False if something has spilled already.
bool stay_plain();

// Does the process have the runtime for compiled code?
bool is_passive();

}  // namespace spill::preload
