// Replays a trace: asks a device for the same requests again.
#pragma once
#include "storage/decorators/trace_reader.h"
#include "storage/device.h"

namespace storage {

struct ReplayParameters {
  // Starts each request as long after the first one as in the trace; otherwise as fast as the device takes them.
  bool timed = false;
  size_t depth = 128;  // of the queue: at most so many requests are under way at once
};

struct ReplayResult {
  uint64_t request_count = 0;  // of the trace
  uint64_t error_count = 0;    // requests that failed or were short
  uint64_t late_count = 0;     // timed: requests that were started over 1 ms late
  uint64_t duration_ns = 0;
};

// Makes the requests of the trace of `device`, in the order in which they were started. Writes write zeros: what the device held is lost. A
// request waits while another one for some of the same bytes is under way, unless both read. Blocks until all have ended.
// Errors: EINVAL if the trace is of a larger device, or of one with smaller blocks; ENOMEM, and those of open_queue.
base::Expected<ReplayResult> replay_trace(const Trace& trace, Device& device,
                                          const ReplayParameters& parameters);

}  // namespace storage
