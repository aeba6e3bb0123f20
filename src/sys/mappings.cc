#include "sys/mappings.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/ids.h"
#include "base/text.h"
#include "sys/files.h"
#include "sys/kernel.h"

namespace sys {
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

bool parse_mapping(std::string_view line, Mapping& mapping) {
  const auto begin = take_hex(line);
  if (!begin || !take(line, '-')) return false;
  const auto end = take_hex(line);
  if (!end || *end <= *begin || !take(line, ' ')) return false;
  const std::string_view rights = take_word(line);
  const auto offset = take_hex(line);
  if (rights.size() != 4 || !offset || !take(line, ' ')) return false;
  take_word(line);  // the device
  const std::string_view inode = take_word(line);
  mapping = {.begin = *begin,
             .end = *end,
             .offset_bytes = *offset,
             .path = line,
             .is_executable = rights[2] == 'x',
             .is_shared = rights[3] == 's' && inode != "0"};
  return !inode.empty();
}

void read_mappings(bool (*visit)(const Mapping& mapping, void* context), void* context) {
  const long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (failed(file)) return;
  char buffer[4096];
  size_t held = 0;
  for (bool goes_on = true; goes_on;) {
    const long count = syscall(SYS_read, file, buffer + held, sizeof buffer - held);
    if (count == -EINTR) continue;
    if (count <= 0) break;
    held += static_cast<size_t>(count);
    std::string_view rest(buffer, held);
    for (size_t end; goes_on && (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      Mapping mapping;
      if (parse_mapping(rest.substr(0, end), mapping)) goes_on = visit(mapping, context);
    }
    held = rest.size() == sizeof buffer ? 0 : rest.size();
    memmove(buffer, rest.data(), held);
  }
  syscall(SYS_close, file);
}

FoundMapping find_mapping(uintptr_t address) {
  FoundMapping found;
  visit_mappings([&](const Mapping& mapping) {
    if (address < mapping.begin || address >= mapping.end) return true;
    found = {.begin = mapping.begin,
             .end = mapping.end,
             .offset_bytes = mapping.offset_bytes,
             .is_shared = mapping.is_shared};
    base::TextRef(found.path, sizeof found.path) << mapping.path;
    return false;
  });
  return found;
}

uint64_t most_mappings() {
  constexpr uint64_t kDefault = 65'530;
  char text[32];
  const long bytes = read_small_file("/proc/sys/vm/max_map_count", text);
  uint64_t most = 0;
  for (long i = 0; i < bytes && text[i] >= '0' && text[i] <= '9'; ++i)
    most = most * 10 + static_cast<uint64_t>(text[i] - '0');
  return most > 0 ? most : kDefault;
}

// With MS_ASYNC the kernel only checks that the range is mapped.
bool is_mapped(uintptr_t begin, uintptr_t end) {
  begin = base::round_down(begin, base::kOsPageBytes);
  return syscall(SYS_msync, begin, end - begin, MS_ASYNC) != -ENOMEM;
}

uintptr_t readable_end(uintptr_t begin, uintptr_t end) {
  // A load by this thread would raise SIGBUS; one by the kernel fails.
  const auto is_readable = [process = syscall(SYS_getpid)](uintptr_t address) {
    char byte;
    const iovec to = {.iov_base = &byte, .iov_len = 1};
    const iovec from = {.iov_base = reinterpret_cast<void*>(address), .iov_len = 1};
    return syscall(SYS_process_vm_readv, process, &to, 1, &from, 1, 0) != -EFAULT;
  };
  if (begin == end || is_readable(end - 1)) return end;
  while (begin < end) {
    const uintptr_t middle = base::round_down(begin + (end - begin) / 2, base::kOsPageBytes);
    if (is_readable(middle))
      begin = middle + base::kOsPageBytes;
    else
      end = middle;
  }
  return end;
}

}  // namespace sys
