// One-line messages to the user, on the process's original standard error and with the prefix "spillway: ", unless set_log_writer() has set another
// writer (json_log.h). Async-signal-safe. A line is one write, so lines of several threads do not mix.
//
//   base::log("cannot write to ", name);
//   base::log({.name = "store_failed", .level = base::LogLevel::kError, .fields = {{"error", 5}}}, "cannot write to ", name);
//
// The second form is for programs that read the log: the event has a name that does not change, and its values are separate fields. The text says all
// of that, too.
#pragma once
#include <concepts>
#include <initializer_list>

#include "base/text.h"

namespace base {

enum class LogLevel : uint8_t { kInfo, kWarning, kError };

struct LogField {
  LogField(const char* field, std::integral auto value) : name(field), number(static_cast<uint64_t>(value)) {}
  LogField(const char* field, std::string_view value) : name(field), text(value), is_text(true) {}
  LogField(const char* field, const char* value) : LogField(field, std::string_view(value)) {}

  const char* name;  // says what the value is, its unit last: "close_ms"
  uint64_t number = 0;
  std::string_view text = {};
  bool is_text = false;
};

struct LogEvent {
  const char* name = "message";
  LogLevel level = LogLevel::kWarning;
  std::initializer_list<LogField> fields = {};
};

// What one call of log() hands to the writer; valid until the writer returns.
struct LogLine {
  const LogEvent& event;
  std::string_view text;  // without the prefix and the end of the line
};
using LogWriter = void (*)(const LogLine& line);
// From now on `writer` writes all lines, in the thread that logs and possibly in a signal handler. Null: lines are written as text again.
void set_log_writer(LogWriter writer);
void write_log(const LogLine& line);

inline constexpr size_t kLogTextBytes = 500;  // longer texts are cut off

template <class... Parts>
void log(const LogEvent& event, const Parts&... parts) {
  Text<kLogTextBytes> text;
  (text << ... << parts);
  write_log({event, text.view()});
}

template <class... Parts>
void log(const Parts&... parts) {
  log(LogEvent(), parts...);
}

}  // namespace base
