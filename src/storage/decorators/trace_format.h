// Trace files: the requests made of a device, and how each ended (docs/formats/trace.md). A header, then records of the same size, in no
// particular order; little-endian.
//
//   offset  bytes   header                          offset  bytes   record
//   0       8       "SPWTRACE"                      0       8       start_ns: of submission, since the trace began
//   8       4       version, 1                      8       8       offset_bytes
//   12      4       record_bytes, 48                16      8       length_bytes
//   16      8       capacity_bytes of the device    24      8       transferred_bytes
//   24      4       block_bytes of the device       32      8       latency_ns: from submission to completion
//   28      4       0                               40      4       queue: counts from 0
//                                                   44      2       error: an errno value, or 0
//                                                   46      1       operation: 1 read 2 write 3 discard 4 flush
//                                                   47      1       0
//
// A record of zeros is a gap where records could not be written. A file may end inside a record.
#pragma once
#include <cstddef>
#include <cstdint>

namespace storage {

inline constexpr char kTraceMagic[8] = {'S', 'P', 'W', 'T', 'R', 'A', 'C', 'E'};
inline constexpr uint32_t kTraceVersion = 1;

struct TraceHeader {
  char magic[8];
  uint32_t version;
  uint32_t record_bytes;
  uint64_t capacity_bytes;
  uint32_t block_bytes;
  uint32_t zero;
};
static_assert(sizeof(TraceHeader) == 32 && offsetof(TraceHeader, capacity_bytes) == 16);

struct TraceRecord {
  uint64_t start_ns;
  uint64_t offset_bytes;
  uint64_t length_bytes;
  uint64_t transferred_bytes;
  uint64_t latency_ns;
  uint32_t queue;
  uint16_t error;
  uint8_t operation;  // Operation + 1
  uint8_t zero;
};
static_assert(sizeof(TraceRecord) == 48 && offsetof(TraceRecord, queue) == 40 &&
              offsetof(TraceRecord, operation) == 46);

}  // namespace storage
