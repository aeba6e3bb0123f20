#include "base/log.h"

#include <atomic>

#include "base/platform.h"

namespace base {
namespace {

void write_text(const LogLine& line) {
  constexpr std::string_view kPrefix = "spillway: ";
  Text<kPrefix.size() + kLogTextBytes + 1> text;
  text << kPrefix << line.text << '\n';
  platform_write_error(text.c_str(), text.size());
}

// Relaxed: it points to code, and orders no data.
constinit std::atomic<LogWriter> log_writer = write_text;

}  // namespace

void set_log_writer(LogWriter writer) {
  log_writer.store(writer != nullptr ? writer : write_text, std::memory_order_relaxed);
}

void write_log(const LogLine& line) { log_writer.load(std::memory_order_relaxed)(line); }

}  // namespace base
