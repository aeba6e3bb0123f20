// The dump of a key-value store as text, docs/formats/kv-dump.md, read piece by piece and written.
//
//   DumpReader reader;
//   for each piece of the input, until kMalformed:   while ((event = reader.next(piece)) != kMore) ...
//   reader.ended()                                   was that all of it?
//
// Pure: no I/O, and memory for one key; values pass through in pieces. What is read comes from outside, and is fuzzed (kv_dump_fuzz.cc).
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

// What goes before the value, and what after it, and the last line.
std::string dump_record_begin(const DumpRecord& record);
inline constexpr std::string_view kDumpRecordEnd = "\n";
inline constexpr std::string_view kDumpRecordVoid =
    "!\n";  // instead: the value is not what it was, and the record does not count
std::string dump_last_line(uint64_t record_count);

class DumpReader {
 public:
  enum class Event {
    kMore,         // all of `input` was taken; nothing else to say
    kRecord,       // record() begins; its value follows
    kValue,        // value() is a piece of it, not empty
    kEndOfRecord,  // record() was whole
    kVoidRecord,   // it was not, as who wrote it says: it is not to be kept
    kEnd,          // the last line was read; more input is an error
    kMalformed,    // problem() says what, offset() where. For good
  };

  // Takes bytes from the front of `input`.
  Event next(std::string_view& input);

  const DumpRecord& record() const { return record_; }
  // Points into the `input` of the call.
  std::string_view value() const { return value_; }
  // Bytes taken so far: where the problem is.
  uint64_t offset() const { return offset_; }
  uint64_t record_count() const { return record_count_; }  // whole ones
  const std::string& problem() const { return problem_; }
  // To be asked when there is no more input. Else problem() says what is missing.
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
  // Of the line that is being read.
  uint64_t done_bytes_ = 0;  // of the first line, the arrow or the value
  uint64_t number_ = 0;
  unsigned digit_count_ = 0;  // of it
  unsigned field_ = 0;        // which of the line's numbers it is
  uint64_t key_bytes_ = 0;
};

}  // namespace tools
