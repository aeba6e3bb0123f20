#include "server/front/json_log.h"

#include <chrono>
#include <ctime>

#include "base/platform.h"
#include "server/text.h"

namespace server {
namespace {

constexpr size_t kEscapedBytes = 6;  // \u001f, for one
constexpr size_t kNameBytes = 64;    // of a field, and what stands around its value
constexpr size_t kMessageBytesMost = kNameBytes + kEscapedBytes * base::kLogTextBytes;

const char* name_of(base::LogLevel level) {
  switch (level) {
    case base::LogLevel::kInfo: return "info";
    case base::LogLevel::kWarning: return "warning";
    case base::LogLevel::kError: return "error";
  }
  return "";
}

void put_string(std::string_view text, base::TextRef& to) {
  to << '"';
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (bytes == 0)
      to << "\\ufffd";
    else if (first == '"' || first == '\\')
      to << '\\' << text.front();
    else if (first < 0x20)
      to << "\\u00" << "0123456789abcdef"[first >> 4] << "0123456789abcdef"[first & 15];
    else
      to << text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  to << '"';
}

void put_padded(unsigned number, unsigned digits, base::TextRef& to) {
  unsigned least = 1;
  while (--digits > 0) least *= 10;
  for (; least > 1 && number < least; least /= 10) to << '0';
  to << number;
}

// As RFC 3339 has it, in UTC. Not by the C library, which would take a lock.
void put_time(uint64_t now_ms, base::TextRef& to) {
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

void put_head(const base::LogEvent& event, uint64_t now_ms, base::TextRef& to) {
  to << "{\"time\":\"";
  put_time(now_ms, to);
  to << "\",\"level\":\"" << name_of(event.level) << "\",\"event\":\"" << event.name << '"';
}

void put_message(std::string_view text, base::TextRef& to) {
  to << ",\"message\":";
  put_string(text, to);
  to << "}\n";
}

}  // namespace

void compose_json_log(const base::LogLine& line, uint64_t now_ms, base::TextRef& to) {
  put_head(line.event, now_ms, to);
  for (const base::LogField& field : line.event.fields) {
    if (to.size() + kNameBytes + kEscapedBytes * field.text.size() + kMessageBytesMost > kJsonLogBytes)
      continue;
    to << ",\"" << field.name << "\":";
    if (field.is_text)
      put_string(field.text, to);
    else
      to << field.number;
  }
  put_message(line.text, to);
}

void write_json_log(const base::LogLine& line) {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t now_ms =
      static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
  base::Text<kJsonLogBytes> text;
  compose_json_log(line, now_ms, text);
  base::platform_write_error(text.c_str(), text.size());
}

}  // namespace server
