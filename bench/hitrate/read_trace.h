// Readers of the formats that cache traces are published in. A page is what the format counts in: an object, a block, a number.
//
//   name     a record                                              accesses
//   oracle   24 bytes, little-endian: u32 time, u64 id, u32 size,  one. libCacheSim's oracleGeneral
//            i64 next access
//   csv      a line: time,id,... or only id. Where the first line  one
//            has names, the column called id, obj_id, object_id,
//            key, page or block
//   spc      a line: unit,block,bytes,r|w,seconds[,...]; blocks    one for each 4-KiB page of the unit that it touches
//            of 512 bytes. Storage Performance Council's
//   arc      a line: block count ignored ignored. ARC's traces     `count`, from the block on
//   lirs     a line: a block, or * between sections. LIRS's        one
//   u32      4 bytes, little-endian: an id                         one
//   u64      8 bytes, little-endian: an id                         one
//
// Lines end in \n or \r\n; empty ones are nothing. Ids are numbers below 2^64, decimal or hexadecimal with 0x.
#pragma once
#include <string_view>

#include "base/error.h"
#include "hitrate/trace.h"

namespace hitrate {

enum class Format { kOracle, kCsv, kSpc, kArc, kLirs, kU32, kU64 };
inline constexpr unsigned kFormatCount = 7;

// Errors: EINVAL, with all names that there are.
base::Expected<Format> parse_format(std::string_view name);

// Adds the accesses of a file's content. `file` is its name, for errors: EINVAL, with the line (from 1) or the offset of the record that
// is wrong, and what is. Content without an access is wrong, too.
base::Expected<void> read_trace(Format format, std::string_view content, std::string_view file,
                                TraceBuilder& to);

// The same of a file on disk. Errors: also those of reading it.
base::Expected<Trace> read_trace_file(Format format, const char* path, uint64_t most);

}  // namespace hitrate
