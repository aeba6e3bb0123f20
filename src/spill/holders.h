// The hazard slots of all threads as the cache asks for them (cache::Holders).
#pragma once
#include "cache/holders.h"

namespace spill {

// The one instance. REQUIRES: sys::register_barrier() succeeded before its first use.
cache::Holders& hazard_holders();

// Addresses in [begin, end) leave all slots. REQUIRES: no thread uses memory there any more.
void clear_slots_of_all(uint64_t begin, uint64_t end);

}  // namespace spill
