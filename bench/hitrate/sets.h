// A cache of sets (cache/sets/set_policy.h): a hash of the page chooses the set, another part of it is its fingerprint.
#pragma once
#include "cache/sets/set_policy.h"
#include "hitrate/trace.h"

namespace hitrate {

// The hits of a whole trace with room for `size` pages, rounded down to whole sets.
// REQUIRES: size >= ways, which is 8, 16 or 32.
uint64_t count_set_hits(const Trace& trace, uint64_t size, cache::SetPolicy policy, uint32_t ways);

}  // namespace hitrate
