// Machine: how long this machine takes for lines of memory, as measured. The model of time is made of it (model.h).
#pragma once
#include "batch/shape.h"

namespace batch {

// Nanoseconds for a line that is in no cache.
struct Machine {
  double latency_ns = 0;  // random lines one after the other, of which each says where the next one is
  double line_ns = 0;     // random lines that are fetched ahead
  double stream_ns = 0;   // neighbouring lines, front to back
  // The size that, by equation 2.1, a cache has with as many hits as were measured: less than the whole one, of which other processors and tenants have a part.
  double cache_bytes = 0;
  double ns_per_cycle = 0;  // of sys::cycle_clock()
};

// Nanoseconds of an update in a table that one CPU's cache holds; stage_ns: of staging a change.
struct BaseCosts {
  double direct_ns = 0;
  double prefetch_ns = 0;
  double tagged_ns = 0;
  double stage_ns = 0;
};

// Measured by the first call of the process, in some 0.2 s and with 128 MiB of memory meanwhile. Any thread.
const Machine& this_machine();

// Measured by each call, in some milliseconds. All 0 if there is no memory. REQUIRES: a table may have the shape.
BaseCosts measure_base_costs(const Shape& shape);

}  // namespace batch
