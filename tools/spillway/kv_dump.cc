#include "kv_dump.h"

#include <algorithm>
#include <limits>

#include "command.h"

namespace tools {
namespace {

constexpr std::string_view kArrow = "->";

// The four numbers of a record's line, then the one of the last line, in the order in which they are read.
struct Field {
  const char* name;
  uint64_t least;
  uint64_t most;
  char end;  // the character behind it
};
constexpr Field kFields[] = {
    {"bytes of a key", 1, 64 << 10, ','},
    {"bytes of a value", 0, uint64_t{4} << 30, ','},
    {"flags", 0, std::numeric_limits<uint32_t>::max(), ','},
    {"time of expiry", 0, (uint64_t{1} << 48) - 1, ':'},
    {"count of records", 0, std::numeric_limits<uint64_t>::max(), '\n'},
};
constexpr unsigned kLastOfRecord = 3, kCount = 4;

std::string quoted(char c) { return concat('\'', printable(std::string_view(&c, 1)), '\''); }

}  // namespace

std::string dump_record_begin(const DumpRecord& record) {
  return concat('+', record.key.size(), ',', record.value_bytes, ',', record.flags, ',', record.expires_ms,
                ':', record.key, kArrow);
}

std::string dump_last_line(uint64_t record_count) { return concat('.', record_count, '\n'); }

void DumpReader::take(std::string_view& input, size_t bytes) {
  input.remove_prefix(bytes);
  offset_ += bytes;
}

DumpReader::Event DumpReader::malformed(std::string problem) {
  state_ = State::kMalformed;
  problem_ = std::move(problem);
  return Event::kMalformed;
}

// Each step takes its part of the input. It returns kMore when there is nothing to tell yet, and the loop goes on with the next step.
DumpReader::Event DumpReader::next(std::string_view& input) {
  // An empty value ends without input.
  while (!input.empty() || (state_ == State::kValue && done_bytes_ == record_.value_bytes)) {
    Event event = Event::kMore;
    switch (state_) {
      case State::kFirstLine: event = first_line(input); break;
      case State::kLine: event = line(input); break;
      case State::kNumbers: event = numbers(input); break;
      case State::kKey: event = key(input); break;
      case State::kArrow: event = arrow(input); break;
      case State::kValue: event = value(input); break;
      case State::kEndOfRecord: event = end_of_record(input); break;
      case State::kEndOfVoid: event = end_of_void(input); break;
      case State::kEnd: return malformed("nothing may come after the last line");
      case State::kMalformed: return Event::kMalformed;
    }
    if (event != Event::kMore) return event;
  }
  return Event::kMore;
}

DumpReader::Event DumpReader::first_line(std::string_view& input) {
  const char c = input[0];
  if (c != kDumpFirstLine[done_bytes_]) {
    constexpr size_t kVersionAt = kDumpFirstLine.size() - 2;
    if (done_bytes_ == kVersionAt && c >= '2' && c <= '9')
      return malformed("a dump of a newer version; this program reads version 1");
    return malformed("not a dump: it does not begin with 'spillway-dump 1'");
  }
  take(input, 1);
  if (++done_bytes_ == kDumpFirstLine.size()) state_ = State::kLine;
  return Event::kMore;
}

DumpReader::Event DumpReader::line(std::string_view& input) {
  const char c = input[0];
  if (c != '+' && c != '.')
    return malformed(concat("'+' of a record or '.' of the last line should be here, not ", quoted(c)));
  take(input, 1);
  state_ = State::kNumbers;
  field_ = c == '+' ? 0 : kCount;
  number_ = digit_count_ = 0;
  return Event::kMore;
}

// False: malformed.
bool DumpReader::take_digit(char c) {
  const Field& field = kFields[field_];
  if (c < '0' || c > '9') {
    malformed(concat("a digit of the ", field.name, " should be here, not ", quoted(c)));
    return false;
  }
  const auto digit = static_cast<uint64_t>(c - '0');
  if (digit_count_ == 1 && number_ == 0) {
    malformed(concat("the ", field.name, " begins with a 0"));
    return false;
  }
  if (number_ > (field.most - digit) / 10) {
    malformed(concat("the ", field.name, " is more than ", field.most));
    return false;
  }
  number_ = 10 * number_ + digit;
  ++digit_count_;
  return true;
}

DumpReader::Event DumpReader::numbers(std::string_view& input) {
  const Field& field = kFields[field_];
  const char c = input[0];
  if (digit_count_ == 0 || c != field.end) {
    if (!take_digit(c)) return Event::kMalformed;
    take(input, 1);
    return Event::kMore;
  }
  if (number_ < field.least) return malformed(concat("the ", field.name, " is less than ", field.least));
  if (field_ == kCount && number_ != record_count_)
    return malformed(concat("the last line counts ", number_, " records, but there are ", record_count_));
  take(input, 1);
  const uint64_t number = number_;
  number_ = digit_count_ = 0;
  switch (field_++) {
    case 0: key_bytes_ = number; break;
    case 1: record_.value_bytes = number; break;
    case 2: record_.flags = static_cast<uint32_t>(number); break;
    case kLastOfRecord:
      record_.expires_ms = number;
      record_.key.clear();
      state_ = State::kKey;
      break;
    case kCount: state_ = State::kEnd; return Event::kEnd;
  }
  return Event::kMore;
}

DumpReader::Event DumpReader::key(std::string_view& input) {
  const size_t bytes = std::min(input.size(), key_bytes_ - record_.key.size());
  record_.key.append(input.substr(0, bytes));
  take(input, bytes);
  done_bytes_ = 0;
  if (record_.key.size() == key_bytes_) state_ = State::kArrow;
  return Event::kMore;
}

DumpReader::Event DumpReader::arrow(std::string_view& input) {
  if (input[0] != kArrow[done_bytes_])
    return malformed(concat("'->' should be here, after ", key_bytes_, " bytes of key"));
  take(input, 1);
  if (++done_bytes_ < kArrow.size()) return Event::kMore;
  done_bytes_ = 0;
  state_ = State::kValue;
  return Event::kRecord;
}

DumpReader::Event DumpReader::value(std::string_view& input) {
  const size_t bytes = std::min<uint64_t>(input.size(), record_.value_bytes - done_bytes_);
  value_ = input.substr(0, bytes);
  take(input, bytes);
  done_bytes_ += bytes;
  if (done_bytes_ == record_.value_bytes) state_ = State::kEndOfRecord;
  return bytes > 0 ? Event::kValue : Event::kMore;
}

DumpReader::Event DumpReader::end_of_record(std::string_view& input) {
  if (input[0] == kDumpRecordVoid[0]) {
    take(input, 1);
    state_ = State::kEndOfVoid;
    return Event::kMore;
  }
  if (input[0] != '\n')
    return malformed(concat("a newline should be here, after ", record_.value_bytes, " bytes of value, not ",
                            quoted(input[0])));
  take(input, 1);
  ++record_count_;
  state_ = State::kLine;
  return Event::kEndOfRecord;
}

DumpReader::Event DumpReader::end_of_void(std::string_view& input) {
  if (input[0] != '\n')
    return malformed(concat("a newline should be here, after '!', not ", quoted(input[0])));
  take(input, 1);
  state_ = State::kLine;
  return Event::kVoidRecord;
}

bool DumpReader::ended() {
  if (state_ == State::kEnd) return true;
  if (state_ != State::kMalformed)
    problem_ = offset_ == 0 ? "nothing is in it; a dump begins with 'spillway-dump 1'"
                            : "it ends here, without its last line: it was cut short";
  return false;
}

}  // namespace tools
