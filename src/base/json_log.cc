#include "base/json_log.h"

#include <chrono>

#include "base/json_text.h"

namespace base {
namespace {

// Room for the name of a field, or of the message, for the punctuation around its value, and for the value if that is a number.
constexpr size_t kNameBytes = 64;
constexpr std::string_view kEnd = "}\n";

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "";
}

void put_padded(unsigned number, unsigned digits, TextRef& to) {
  unsigned least = 1;
  while (--digits > 0) least *= 10;
  for (; least > 1 && number < least; least /= 10) to << '0';
  to << number;
}

// In the form of RFC 3339, in UTC. Not by the C library, which would take a lock.
void put_time(uint64_t now_ms, TextRef& to) {
  using namespace std::chrono;
  const sys_time<milliseconds> now{milliseconds(now_ms)};
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(now - day);
  put_padded(static_cast<unsigned>(static_cast<int>(date.year())), 4, to);
  to << '-';
  put_padded(static_cast<unsigned>(date.month()), 2, to);
  to << '-';
  put_padded(static_cast<unsigned>(date.day()), 2, to);
  to << 'T';
  put_padded(static_cast<unsigned>(time.hours().count()), 2, to);
  to << ':';
  put_padded(static_cast<unsigned>(time.minutes().count()), 2, to);
  to << ':';
  put_padded(static_cast<unsigned>(time.seconds().count()), 2, to);
  to << '.';
  put_padded(static_cast<unsigned>(time.subseconds().count()), 3, to);
  to << 'Z';
}

void put_head(const LogEvent& event, uint64_t now_ms, TextRef& to) {
  to << "{\"time\":\"";
  put_time(now_ms, to);
  to << "\",\"level\":\"" << name_of(event.level) << "\",\"event\":\"" << event.name << '"';
}

}  // namespace

void compose_json_log(const LogLine& line, uint64_t now_ms, TextRef& to) {
  put_head(line.event, now_ms, to);
  const size_t message_bytes = kNameBytes + json_escaped_bytes(line.text);
  for (const LogField& field : line.event.fields) {
    if (kNameBytes + json_escaped_bytes(field.text) + message_bytes > to.room_bytes()) continue;
    to << ",\"" << field.name << "\":";
    if (field.is_text)
      put_json_string(field.text, message_bytes, to);
    else
      to << field.number;
  }
  to << ",\"message\":";
  put_json_string(line.text, kEnd.size(), to);
  to << kEnd;
}

}  // namespace base
