// The trace decorator: a device over another device, which records each request in a file (trace_format.h). trace_reader.h reads the file, and
// trace_replay.h makes the same requests of another device.
//
// Each queue gathers records and writes them 1,024 at a time, and the rest when it is closed, by a blocking call in the thread that uses
// it. If that fails (a full disk, the process's limit on file sizes), one line of log says so and tracing ends, but the I/O continues. What a
// child of fork does is not recorded. Requests are passed on unchanged.
#pragma once
#include <string_view>

#include "storage/device.h"

namespace storage {

// Takes over `inner`, even on errors, and closes it when it is closed itself. The file at `path` is created, or truncated if it is empty or a
// trace. Errors: EEXIST if the file has other content; EBUSY if another trace is being written to it; those of opening it; ENOMEM.
// REQUIRES: path.size() <= kMaxPathBytes.
base::Expected<Device*> make_trace_device(Device* inner, std::string_view path);

}  // namespace storage
