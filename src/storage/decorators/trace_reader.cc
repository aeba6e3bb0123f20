#include "storage/decorators/trace_reader.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "storage/device.h"
#include "storage/opening/device_string.h"
#include "sys/barrier.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace storage {
namespace {

using base::failure;

base::Expected<void> check_header(const TraceHeader& header) {
  if (memcmp(header.magic, kTraceMagic, sizeof kTraceMagic) != 0)
    return failure(EINVAL, "storage: this is not a trace: it does not begin with SPWTRACE");
  if (header.version != kTraceVersion || header.record_bytes != sizeof(TraceRecord))
    return failure(EINVAL, "storage: a trace of version ", header.version, ", with records of ",
                   header.record_bytes, " bytes; this program reads version ", kTraceVersion, ", with ",
                   sizeof(TraceRecord));
  const uint32_t block = header.block_bytes;
  if (block > 4096 || !std::has_single_bit(block) || header.capacity_bytes % block != 0)
    return failure(EINVAL, "storage: a trace of a device of ", header.capacity_bytes, " bytes in blocks of ",
                   block, ": there are none");
  return {};
}

bool is_gap(const TraceRecord& record) {
  constexpr TraceRecord kGap = {};
  return memcmp(&record, &kGap, sizeof record) == 0;
}

// What is wrong with the record; null: nothing.
const char* flaw(const TraceHeader& header, const TraceRecord& record) {
  if (record.operation < 1 || record.operation > 4) return "the operation is none";
  if (record.transferred_bytes > record.length_bytes) return "more was transferred than asked for";
  const bool flush = record.operation == static_cast<uint8_t>(Operation::kFlush) + 1;
  if (flush) return record.length_bytes == 0 && record.offset_bytes == 0 ? nullptr : "a flush has no place";
  if (record.length_bytes == 0) return "it has no length";
  if ((record.offset_bytes | record.length_bytes) % header.block_bytes != 0)
    return "it is not of whole blocks";
  if (record.offset_bytes > header.capacity_bytes ||
      record.length_bytes > header.capacity_bytes - record.offset_bytes)
    return "it lies outside of the device";
  return nullptr;
}

}  // namespace

base::Expected<Trace> parse_trace(std::span<char> bytes) {
  CHECK_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % alignof(TraceRecord), 0u);
  Trace trace = {};
  if (bytes.size() < sizeof(TraceHeader))
    return failure(EINVAL, "storage: this is not a trace: it is too short");
  memcpy(&trace.header, bytes.data(), sizeof(TraceHeader));
  if (auto checked = check_header(trace.header); !checked) return std::unexpected(checked.error());

  TraceRecord* const records = reinterpret_cast<TraceRecord*>(bytes.data() + sizeof(TraceHeader));
  const size_t all_count = (bytes.size() - sizeof(TraceHeader)) / sizeof(TraceRecord);
  size_t count = 0;
  for (size_t i = 0; i < all_count; ++i) {
    if (is_gap(records[i])) continue;
    if (const char* wrong = flaw(trace.header, records[i]); wrong != nullptr)
      return failure(EINVAL, "storage: record ", i, " of the trace: ", wrong);
    records[count++] = records[i];
  }
  std::sort(records, records + count,
            [](const TraceRecord& one, const TraceRecord& other) { return one.start_ns < other.start_ns; });
  trace.records = {records, count};
  return trace;
}

base::Expected<void> TraceReader::open(std::string_view path) {
  CHECK(bytes_ == nullptr);
  if (path.size() > kMaxPathBytes) return failure(ENAMETOOLONG, "storage: the trace's path is too long");
  base::Text<kMaxPathBytes + 1> text;
  text << path;
  auto error = [&](long result) {
    const int number = static_cast<int>(-result);
    return failure(number, "storage: cannot read the trace ", path.substr(0, 90), ": ",
                   base::error_name(number));
  };
  const long file = sys::syscall(SYS_openat, AT_FDCWD, text.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (sys::failed(file)) return error(file);
  const long size = sys::syscall(SYS_lseek, file, 0, 2 /* SEEK_END */);
  long mapped = size > 0 ? sys::syscall(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : 0;
  sys::syscall(SYS_close, file);
  if (sys::failed(size)) return error(size);
  if (sys::failed(mapped)) return error(mapped);
  if (size == 0) return failure(EINVAL, "storage: the trace ", path.substr(0, 90), " is empty");
  sys::note_map();
  bytes_ = reinterpret_cast<char*>(mapped);
  byte_count_ = static_cast<size_t>(size);
  auto parsed = parse_trace({bytes_, byte_count_});
  if (parsed) {
    trace_ = *parsed;
    return {};
  }
  close();
  return std::unexpected(parsed.error());
}

void TraceReader::close() {
  sys::unmap(bytes_, byte_count_);
  *this = TraceReader();
}

}  // namespace storage
