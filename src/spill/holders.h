// The hazard slots of all threads as the cache asks for them (cache::Holders).
#pragma once
#include "cache/holders.h"

namespace spill {

// The one instance. REQUIRES: sys::register_barrier() succeeded before its first use.
cache::Holders& hazard_holders();

}  // namespace spill
