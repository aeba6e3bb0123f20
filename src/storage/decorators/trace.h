// The trace decorator: a device over a device that records each request in a file (trace_format.h). trace_reader.h reads it, and
// trace_replay.h asks another device for the same.
//
// Each queue gathers records and writes them 1,024 at a time, and the rest when it is closed, by a blocking call of the thread that uses
// it. When that fails (a full disk, the process's limit on file sizes), one line of log says so and tracing ends, but the I/O goes on. What
// a child of fork does is not recorded. Requests are handed on as they are.
#pragma once
#include <string_view>

#include "storage/device.h"

namespace storage {

// Owns `inner` from now on, also on errors, and closes it when it is closed. The file at `path` is created; one that is empty or a trace is
// emptied. Errors: EEXIST if the file has other content; EBUSY if another trace is being written to it; those of opening it; ENOMEM.
// REQUIRES: path.size() <= kMaxPathBytes.
base::Expected<Device*> make_trace_device(Device* inner, std::string_view path);

}  // namespace storage
