// Asks a device for what a trace says.
#pragma once
#include "storage/decorators/trace_reader.h"
#include "storage/device.h"

namespace storage {

struct ReplayParameters {
  bool timed =
      false;  // each request as long after the first as in the trace; else as fast as the device takes them
  size_t depth = 128;  // of the queue; at most so many at a time
};

struct ReplayResult {
  uint64_t request_count = 0;  // of the trace
  uint64_t error_count = 0;    // requests that failed or were short
  uint64_t late_count = 0;     // timed: requests that were started over 1 ms late
  uint64_t duration_ns = 0;
};

// Asks `device` for what the trace says, in the order of its starts. Writes zeros: what the device held is lost. A
// request that touches the bytes of one that is under way waits for that, unless both read. Blocks until all is done.
// Errors: EINVAL if the trace is of a larger device, or one of smaller blocks; ENOMEM, and those of open_queue.
base::Expected<ReplayResult> replay_trace(const Trace& trace, Device& device,
                                          const ReplayParameters& parameters);

}  // namespace storage
