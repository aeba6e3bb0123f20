// Fuzzes parse_trace: what is accepted must be within its bounds and in order, what is refused says why.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "storage/decorators/trace_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint64_t> aligned(size / 8 + 1);
  char* bytes = reinterpret_cast<char*>(aligned.data());
  if (size > 0) memcpy(bytes, data, size);
  auto trace = storage::parse_trace({bytes, size});
  if (!trace) {
    CHECK_EQ(trace.error().number, EINVAL);
    CHECK(std::string_view(trace.error().message).starts_with("storage: "));
    return 0;
  }
  CHECK_LE(sizeof(storage::TraceHeader) + trace->records.size() * sizeof(storage::TraceRecord), size);
  uint64_t before_ns = 0;
  for (const storage::TraceRecord& record : trace->records) {
    CHECK_LE(before_ns, record.start_ns);
    before_ns = record.start_ns;
    CHECK(record.operation >= 1 && record.operation <= 4);
    CHECK_LE(record.transferred_bytes, record.length_bytes);
    CHECK_LE(record.offset_bytes, trace->header.capacity_bytes);
    CHECK_LE(record.length_bytes, trace->header.capacity_bytes - record.offset_bytes);
    CHECK_EQ((record.offset_bytes | record.length_bytes) % trace->header.block_bytes, 0u);
  }
  return 0;
}
