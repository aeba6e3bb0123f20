// The trace decorator: a device over a device that records each request in a file (trace_format.h), for trace_reader.h
// to read and replay.
//
// Each queue gathers records and writes 1,024 at a time, and the rest when it is closed, by a blocking call of the
// thread that uses it. When that fails (a full disk, the process's limit on file sizes) one line says so and tracing
// ends; the I/O goes on. What a child of fork does is not recorded. Requests are handed on as they are.
#pragma once
#include <string_view>

#include "storage/device.h"

namespace storage {

// Owns `inner` from now on, also on errors, and closes it when it is closed. The file at `path` is made, or emptied if
// it is empty or a trace. Errors: EEXIST if it is something else, EBUSY if another trace is being written to it, those
// of opening it, ENOMEM. REQUIRES: path.size() <= kMaxPathBytes.
base::Expected<Device*> make_trace_device(Device* inner, std::string_view path);

}  // namespace storage
