// Machine: how long this machine takes to fetch lines of memory, as measured. The model of time is based on it (model.h).
#pragma once
#include "batch/shape.h"

namespace batch {

// The first three are nanoseconds for a line that is in no cache.
struct Machine {
  double latency_ns = 0;  // random lines one after the other; each says where the next one is
  double line_ns = 0;     // random lines that are fetched ahead
  double stream_ns = 0;   // neighbouring lines, front to back
  // The size that equation 2.1 gives for the measured share of hits. It is less than the whole cache, which other processors and tenants use, too.
  double cache_bytes = 0;
  double ns_per_cycle = 0;  // of sys::cycle_clock()
};

// Nanoseconds for an update in a table that fits into one CPU's cache; stage_ns: for staging a change.
struct BaseCosts {
  double direct_ns = 0;
  double prefetch_ns = 0;
  double tagged_ns = 0;
  double stage_ns = 0;
};

// The process's first call measures: that takes some 0.2 s, and 128 MiB of memory meanwhile. Any thread.
const Machine& this_machine();

// Each call measures, which takes some milliseconds. All are 0 if there is too little memory. REQUIRES: a table may have this shape.
BaseCosts measure_base_costs(const Shape& shape);

}  // namespace batch
