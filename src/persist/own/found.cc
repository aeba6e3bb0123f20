#include "persist/own/found.h"

#include <fcntl.h>

#include <string.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/text.h"
#include "sys/kernel.h"

namespace persist {
namespace {

std::optional<uint64_t> take_hex(std::string_view& text) {
  uint64_t value = 0;
  size_t digits = 0;
  for (; digits < text.size() && digits < 16; ++digits) {
    const char c = text[digits];
    if (c >= '0' && c <= '9')
      value = value << 4 | static_cast<uint64_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value << 4 | static_cast<uint64_t>(c - 'a' + 10);
    else
      break;
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text[0] != expected) return false;
  text.remove_prefix(1);
  return true;
}

std::string_view take_word(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  while (take(text, ' ')) {
  }
  return word;
}

}  // namespace

bool parse_mapping(std::string_view line, FoundMapping& mapping) {
  const auto begin = take_hex(line);
  if (!begin || !take(line, '-')) return false;
  const auto end = take_hex(line);
  if (!end || !take(line, ' ')) return false;
  const std::string_view rights = take_word(line);
  const auto offset = take_hex(line);
  if (rights.size() != 4 || !offset || !take(line, ' ')) return false;
  take_word(line);  // the device
  const std::string_view inode = take_word(line);
  mapping.begin = *begin;
  mapping.end = *end;
  mapping.offset_bytes = *offset;
  base::TextRef(mapping.path, sizeof mapping.path) << line;
  mapping.is_shared = rights[3] == 's' && inode != "0";
  return !inode.empty();
}

FoundMapping find_mapping(uintptr_t address) {
  const long file = sys::syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (sys::failed(file)) return {};
  char buffer[4096];
  size_t held = 0;
  FoundMapping found;
  for (bool is_over = false; !is_over && found.begin == found.end;) {
    const long count = sys::syscall(SYS_read, file, buffer + held, sizeof buffer - held);
    if (count == -EINTR) continue;
    is_over = count <= 0;
    if (!is_over) held += static_cast<size_t>(count);
    std::string_view rest(buffer, held);
    for (size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      FoundMapping mapping;
      if (!parse_mapping(rest.substr(0, end), mapping) || address < mapping.begin || address >= mapping.end)
        continue;
      found = mapping;
      break;
    }
    // A line that is longer than the buffer is none of a file's.
    held = rest.size() == sizeof buffer ? 0 : rest.size();
    memmove(buffer, rest.data(), held);
  }
  sys::syscall(SYS_close, file);
  return found;
}

}  // namespace persist
