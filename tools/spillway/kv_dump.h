// Reads, piece by piece, and writes the dump of a key-value store (docs/formats/kv-dump.md).
//
//   DumpReader reader;
//   for each piece of the input, until kMalformed:   while ((event = reader.next(piece)) != kMore) ...
//   reader.ended()                                   was the dump complete?
//
// Does no I/O, and needs memory for one key: values pass through in pieces. The input is not trusted, so the reader is fuzzed
// (kv_dump_fuzz.cc).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tools {

inline constexpr std::string_view kDumpFirstLine = "spillway-dump 1\n";

struct DumpRecord {
  std::string key;
  uint64_t value_bytes = 0;
  uint32_t flags = 0;
  uint64_t expires_ms = 0;  // since 1970; 0: never
};

// A record is dump_record_begin(), its value, and one of the two ends; dump_last_line() follows the last record.
std::string dump_record_begin(const DumpRecord& record);
inline constexpr std::string_view kDumpRecordEnd = "\n";
// The value could not be read whole: the record does not count.
inline constexpr std::string_view kDumpRecordVoid = "!\n";
std::string dump_last_line(uint64_t record_count);

class DumpReader {
 public:
  enum class Event {
    kMore,         // all of `input` was taken; call again with the next piece
    kRecord,       // record() is known; its value follows
    kValue,        // value() is the next piece of the value, not empty
    kEndOfRecord,  // record() and its value are complete
    kVoidRecord,   // record() ends, but its writer could not read the value whole: forget it
    kEnd,          // the last line was read; more input is an error
    kMalformed,    // problem() says what is wrong, offset() where; the reader reads no further
  };

  // Takes bytes from the front of `input`.
  Event next(std::string_view& input);

  const DumpRecord& record() const { return record_; }
  // Points into the `input` of the call.
  std::string_view value() const { return value_; }
  // How many bytes were taken so far; after kMalformed where the problem is.
  uint64_t offset() const { return offset_; }
  uint64_t record_count() const { return record_count_; }  // without void ones
  const std::string& problem() const { return problem_; }
  // To be called at the end of the input: was the dump complete? If not, problem() says what is wrong.
  bool ended();

 private:
  enum class State {
    kFirstLine,
    kLine,
    kNumbers,
    kKey,
    kArrow,
    kValue,
    kEndOfRecord,
    kEndOfVoid,
    kEnd,
    kMalformed
  };

  Event first_line(std::string_view& input);
  Event line(std::string_view& input);
  Event numbers(std::string_view& input);
  Event key(std::string_view& input);
  Event arrow(std::string_view& input);
  Event value(std::string_view& input);
  Event end_of_record(std::string_view& input);
  Event end_of_void(std::string_view& input);
  bool take_digit(char c);
  void take(std::string_view& input, size_t bytes);
  Event malformed(std::string problem);

  State state_ = State::kFirstLine;
  DumpRecord record_;
  std::string_view value_;
  uint64_t offset_ = 0;
  uint64_t record_count_ = 0;
  std::string problem_;
  // About the line that is being read.
  uint64_t done_bytes_ = 0;   // of the first line, the arrow or the value
  uint64_t number_ = 0;       // the number that is being read, as far as it was
  unsigned digit_count_ = 0;  // its digits so far
  unsigned field_ = 0;        // which number of the line it is
  uint64_t key_bytes_ = 0;
};

}  // namespace tools
