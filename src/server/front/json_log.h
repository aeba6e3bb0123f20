// The log as JSON for programs that read it: each line is an object.
//
//   {"time":"2026-11-29T08:00:00.123Z","level":"info","event":"started","items":3,...,"message":"serve: memcache at 127.0.0.1:11211; 3 items, ..."}
//
// The fields of an event stand between its name and the message, which is the line that the log has as text. Bytes that are no UTF-8 are replaced.
// Fields that might not fit are left out.
#pragma once
#include "base/log.h"

namespace server {

// A base::LogWriter.
void write_json_log(const base::LogLine& line);

// Composes what write_json_log() writes at that time since 1970. REQUIRES: `to` has room for kJsonLogBytes; the line's text is one of base::log().
inline constexpr size_t kJsonLogBytes = 16 << 10;
void compose_json_log(const base::LogLine& line, uint64_t now_ms, base::TextRef& to);

}  // namespace server
