// The log as JSON for programs that read it: each line is an object.
//
//   {"time":"2026-11-29T08:00:00.123Z","level":"info","event":"started","items":3,...,"message":"serve: memcache at 127.0.0.1:11211; 3 items, ..."}
//
// The fields of an event stand between its name and the message, which is the line of the log as text. Bytes that are not UTF-8 are replaced.
// A line is always a complete object: fields that do not fit beside the message are left out, and a message that does not fit is cut off at the end.
#pragma once
#include "base/log.h"
#include "base/platform.h"

namespace base {

// The most bytes of a line, which is composed on the stack. In users' programs the stack may be small, such as a signal handler's.
inline constexpr size_t kJsonLogBytes = 16 << 10;
inline constexpr size_t kProgramJsonLogBytes = 1536;
inline constexpr size_t kMinJsonLogBytes = 128;

// Composes the line; `now_ms` is the time since 1970. REQUIRES: `to` is empty and has room for kMinJsonLogBytes; the names of the event and of its
// fields have at most 40 letters each.
void compose_json_log(const LogLine& line, uint64_t now_ms, TextRef& to);

// A LogWriter. Async-signal-safe. Cost: a write, and kBytes of stack.
template <size_t kBytes>
void write_json_log(const LogLine& line) {
  static_assert(kBytes >= kMinJsonLogBytes);
  Text<kBytes> text;
  compose_json_log(line, platform_time_ms(), text);
  platform_write_error(text.c_str(), text.size());
}

}  // namespace base
