// Native bodies: code that spillcc compiled with two bodies runs the native one, which accesses memory as if nothing were
// spilled, until something has to leave memory. Spilled memory is mapped at its own addresses until then, by regions of 2 MiB
// (cache/pages/regions.h); everything else, entries and slots, is as always, so that instrumented code, interceptors and system
// calls go on beside it. A byte at kNativeBodies (abi.inc) says which body is to run: 1 and then 0, for good.
//
// Code that is in a native body when the byte becomes 0 stays there until it asks again. What it needs then is still mapped,
// until pages of it are evicted; after that its accesses fault and are made good page by page (fault.h).
//
// Nothing of this begins in a process without such code.
#pragma once
#include <cstdint>

#include "cache/pages/regions.h"

namespace spill {

// Maps the byte. Errors: EEXIST, ENOMEM.
base::Expected<void> open_native();
// Native bodies run from here on, if there are some, the options allow it and memory is large enough for it.
// REQUIRES: the cache is there, and nothing in it.
void begin_native();
// Whether they run now. Cost: a load.
bool runs_native();
// Ends them. What is mapped stays mapped until it is evicted; the caller unmaps what must not (Cache::unmap_regions).
// Cost: a load if they do not run.
void end_native(cache::RegionsEnd why);

// An access at a page's own address faulted: maps the page, if it is part of a region or can be. May block and do I/O.
// REQUIRES: in_range, allocated, allowed.
bool map_native(uint64_t address);

// Sets the statistic of how long they ran, if they still do.
void count_native_time();

}  // namespace spill
