// All hazard slots: those of threads, and those that suspended tasks keep (banks.h). The cache asks for them as cache::Holders.
#pragma once
#include "cache/holders.h"

namespace spill {

// The one instance. REQUIRES: sys::register_barrier() succeeded before its first use.
cache::Holders& hazard_holders();

// Calls f(context, address) for each slot that holds an address in [begin, end), whoever's it is.
void for_each_held(uint64_t begin, uint64_t end, void (*f)(void* context, uint64_t address), void* context);

// Clears all slots that hold an address in [begin, end), whoever's they are. REQUIRES: no thread uses memory there any more.
void clear_slots_of_all(uint64_t begin, uint64_t end);

}  // namespace spill
