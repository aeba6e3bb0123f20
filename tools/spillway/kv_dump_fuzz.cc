// Fuzzes the reader of dumps. It says the same of an input however that is cut into pieces; an input that it takes for a whole
// dump is exactly what is written for the records that it read.
//
//   first byte   even: the others are the dump; odd: what comes after its first line
//   second       bytes of a piece
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "kv_dump.h"

namespace {

using tools::DumpReader;

struct Reading {
  std::string text;  // written again
  bool is_whole = false;
  uint64_t offset = 0;
  std::string problem = {};
};

Reading read(std::string_view input, size_t piece_bytes) {
  DumpReader reader;
  Reading reading = {.text = std::string(tools::kDumpFirstLine)};
  uint64_t value_bytes = 0;
  bool is_malformed = false;
  for (size_t at = 0; at < input.size() && !is_malformed; at += piece_bytes) {
    std::string_view piece = input.substr(at, piece_bytes);
    for (;;) {
      const DumpReader::Event event = reader.next(piece);
      is_malformed = event == DumpReader::Event::kMalformed;
      if (is_malformed || event == DumpReader::Event::kMore) break;
      if (event == DumpReader::Event::kRecord) {
        value_bytes = 0;
        reading.text += tools::dump_record_begin(reader.record());
      }
      if (event == DumpReader::Event::kValue) {
        CHECK(!reader.value().empty());
        value_bytes += reader.value().size();
        reading.text += reader.value();
      }
      if (event == DumpReader::Event::kEndOfRecord) {
        CHECK_EQ(value_bytes, reader.record().value_bytes);
        reading.text += tools::kDumpRecordEnd;
      }
      if (event == DumpReader::Event::kVoidRecord) {
        CHECK_EQ(value_bytes, reader.record().value_bytes);
        reading.text += tools::kDumpRecordVoid;
      }
      if (event == DumpReader::Event::kEnd) reading.text += tools::dump_last_line(reader.record_count());
    }
  }
  reading.is_whole = !is_malformed && reader.ended();
  reading.offset = reader.offset();
  reading.problem = reader.problem();
  return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string input = data[0] % 2 == 0 ? "" : std::string(tools::kDumpFirstLine);
  input.append(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Reading whole = read(input, input.size() + 1);
  CHECK_LE(whole.offset, input.size());
  CHECK(whole.is_whole ? whole.text == input : !whole.problem.empty());
  CHECK(whole.problem.find('\n') == std::string::npos);
  const Reading pieces = read(input, size_t{data[1]} + 1);
  CHECK(pieces.text == whole.text && pieces.is_whole == whole.is_whole && pieces.offset == whole.offset &&
        pieces.problem == whole.problem);
  return 0;
}
