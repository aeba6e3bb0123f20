#include "persist/own/copy.h"

#include <string.h>

#include <algorithm>
#include <cstdint>

#include "base/ids.h"
#include "persist/own/own.h"
#include "sys/streaming.h"

namespace persist::own {
namespace {

// Are stores past the caches durable after a fence there?
bool has_streams(uintptr_t address) {
  const Domains::Found found = runtime().domains().find(address);
  return !found.is_inside ||
         (found.domain.kind != DomainKind::kFile && found.domain.kind != DomainKind::kDevice);
}

// store(offset, bytes) for parts of lines, which are flushed then, and stream(offset) for whole ones.
template <class Store, class Stream>
void write_lines(uintptr_t to, size_t bytes, Caches caches, const void* site, const Store& store,
                 const Stream& stream) {
  const uintptr_t end = to + bytes;
  const uintptr_t whole_begin = base::round_up(to, base::kLineBytes),
                  whole_end = base::round_down(end, base::kLineBytes);
  const bool is_past = caches == Caches::kPast || (caches == Caches::kChoose && bytes >= kPastCachesBytes);
  if (!is_past || whole_begin >= whole_end || !has_streams(whole_begin)) {
    store(0, bytes);
    flush(to, bytes, site);
    return;
  }
  if (to < whole_begin) {
    store(0, whole_begin - to);
    flush(to, whole_begin - to, site);
  }
  for (uintptr_t line = whole_begin; line < whole_end; line += base::kLineBytes) stream(line - to);
  copied(whole_begin, whole_end - whole_begin, site);
  if (whole_end < end) {
    store(whole_end - to, end - whole_end);
    flush(whole_end, end - whole_end, site);
  }
}

}  // namespace

void copy(void* to, const void* from, size_t bytes, Caches caches, const void* site) {
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  const auto distance = reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from);
  // Where the source is overwritten while it is read, only memmove knows how.
  if (distance < bytes || -distance < bytes) caches = Caches::kThrough;
  write_lines(
      reinterpret_cast<uintptr_t>(to), bytes, caches, site,
      [&](size_t offset, size_t piece) { memmove(target + offset, source + offset, piece); },
      [&](size_t offset) {
        alignas(base::kLineBytes) char line[base::kLineBytes];
        memcpy(line, source + offset, sizeof line);
        sys::stream_line(target + offset, line);
      });
}

void set(void* to, int byte, size_t bytes, Caches caches, const void* site) {
  auto* const target = static_cast<char*>(to);
  alignas(base::kLineBytes) char line[base::kLineBytes];
  memset(line, byte, sizeof line);
  write_lines(
      reinterpret_cast<uintptr_t>(to), bytes, caches, site,
      [&](size_t offset, size_t piece) { memset(target + offset, byte, piece); },
      [&](size_t offset) { sys::stream_line(target + offset, line); });
}

}  // namespace persist::own
