// Reads traces (trace_format.h). trace_replay.h asks a device for the same again.
#pragma once
#include <span>
#include <string_view>

#include "base/error.h"
#include "storage/decorators/trace_format.h"

namespace storage {

struct Trace {
  TraceHeader header;
  std::span<const TraceRecord> records;  // in the order of their starts
};

// What the bytes of a trace file say. They are put in order in place: gaps out, sorted; what is returned points into
// them. Each record lies within the device and its operation is one of the four; offsets and lengths are whole
// blocks. REQUIRES: `bytes` is aligned to 8. Errors: EINVAL, with a message that says what is wrong where.
base::Expected<Trace> parse_trace(std::span<char> bytes);

// A trace file, mapped.
class TraceReader {
 public:
  // Errors: those of opening and mapping it, and of parse_trace.
  base::Expected<void> open(std::string_view path);
  void close();
  const Trace& trace() const { return trace_; }

 private:
  char* bytes_ = nullptr;
  size_t byte_count_ = 0;
  Trace trace_ = {};
};

}  // namespace storage
