#include "persist/check/modules.h"

#include <fcntl.h>

#include "sys/kernel.h"

namespace persist {
namespace {

// Takes a hexadecimal number off the text's begin.
uint64_t take_hex(std::string_view& text) {
  uint64_t value = 0;
  while (!text.empty()) {
    const char c = text.front();
    if (c >= '0' && c <= '9')
      value = value << 4 | static_cast<uint64_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value << 4 | static_cast<uint64_t>(c - 'a' + 10);
    else
      break;
    text.remove_prefix(1);
  }
  return value;
}

}  // namespace

bool Modules::knows(uint64_t site) {
  if (last_ < count_ && site - ranges_[last_].begin < ranges_[last_].end - ranges_[last_].begin) return true;
  for (uint32_t i = 0; i < count_; ++i)
    if (site - ranges_[i].begin < ranges_[i].end - ranges_[i].begin) {
      last_ = i;
      return true;
    }
  return false;
}

void Modules::note(const void* site, LogWriter& log) {
  const uint64_t address = reinterpret_cast<uint64_t>(site);
  if (address == 0 || knows(address) || scans_ == kScansMax) return;
  ++scans_;
  scan(log);
}

// A line: begin-end rwxp offset device inode    path
void Modules::read_line(std::string_view line, LogWriter& log) {
  const uint64_t begin = take_hex(line);
  if (line.empty() || line.front() != '-') return;
  line.remove_prefix(1);
  const uint64_t end = take_hex(line);
  const size_t path = line.find('/');
  if (path == line.npos || line.size() < 6 || line[3] != 'x' || end <= begin) return;
  std::string_view rest = line;
  rest.remove_prefix(6);
  const uint64_t offset = take_hex(rest);
  line.remove_prefix(path);
  if (count_ == kCountMax || knows(begin)) return;
  ranges_[count_++] = {begin, end};
  log.write({.kind = RecordKind::kModule, .site = offset, .address = begin, .length = end - begin}, nullptr,
            0, line);
}

void Modules::scan(LogWriter& log) {
  const long file = sys::syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (sys::failed(file)) return;
  char text[2 * kTextBytesMax] = {};
  size_t held = 0;
  for (;;) {
    const long got = sys::syscall(SYS_read, file, text + held, sizeof text - held);
    if (got <= 0) break;
    held += static_cast<size_t>(got);
    size_t used = 0;
    for (size_t i = 0; i < held; ++i)
      if (text[i] == '\n') {
        read_line({text + used, i - used}, log);
        used = i + 1;
      }
    if (used == 0 && held == sizeof text) break;  // no path is so long
    for (size_t i = used; i < held; ++i) text[i - used] = text[i];
    held -= used;
  }
  static_cast<void>(sys::syscall(SYS_close, file));
}

}  // namespace persist
