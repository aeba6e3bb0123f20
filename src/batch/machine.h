// Machine: what this one takes for lines of memory, measured: what a model of time is made of (model.h).
#pragma once
#include "batch/shape.h"

namespace batch {

// Nanoseconds for a line that is in no cache.
struct Machine {
  double latency_ns = 0;  // one after the other: each says where the next one is
  double line_ns = 0;     // random ones, fetched ahead
  double stream_ns = 0;   // neighbours, front to back
  // As large as a cache would be that has as many hits as a random part of memory has here: of what processors and other tenants share a part
  // (equation 2.1).
  double cache_bytes = 0;
  double ns_per_cycle = 0;  // of sys::cycle_clock()
};

// Nanoseconds of an update, of a table that is in the cache of one CPU; staged: what it takes to put a change away.
struct BaseCosts {
  double direct_ns = 0;
  double prefetch_ns = 0;
  double tagged_ns = 0;
  double stage_ns = 0;
};

// Measured when it is first asked for, in some 0.2 s and with 128 MiB of memory for that time; the same for all of the process. Any thread.
const Machine& this_machine();

// Measured in some milliseconds; REQUIRES: the shape may be a table's. All 0: no memory.
BaseCosts measure_base_costs(const Shape& shape);

}  // namespace batch
