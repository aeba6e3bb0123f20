// Reads and checks traces (trace_format.h), which are untrusted input.
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

// Parses the bytes of a trace file, in place: gaps are removed and the records sorted, and the result points into `bytes`. Each record in
// it lies within the device, is one of the four operations, and covers whole blocks. REQUIRES: `bytes` is aligned to 8. Errors: EINVAL, with
// a message that says what is wrong and where.
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
