// Copies into a domain, which are flushed as they are made.
//
// Whole lines are written past the caches where that makes them durable after a fence: they need not be read before, or flushed after, and throw
// nothing else out of the caches. Parts of lines at both ends are stored and flushed. All of it is durable after the copying thread's next fence.
//
//   Sink   flush(address, bytes)     flushes lines that were stored to
//          copied(address, bytes)    is told of whole lines that went past the caches
//          has_streams(begin, end)   does a fence make such lines durable, everywhere in the range?
#pragma once
#include <string.h>

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "persist/runtime.h"
#include "sys/streaming.h"

namespace persist {

// From this size on copies go past the caches unless the caller says otherwise. Shorter ones are likely to be read soon.
inline constexpr size_t kPastCachesBytes = 256;

enum class Caches { kChoose, kThrough, kPast };

// Calls store(offset, bytes) for what goes through the caches, and stream(offset) for each line that goes past them.
template <class Sink, class Store, class Stream>
void write_lines(Sink& sink, void* place, size_t bytes, Caches caches, const Store& store,
                 const Stream& stream) {
  const auto to = reinterpret_cast<uintptr_t>(place);
  const uintptr_t end = to + bytes;
  const uintptr_t whole_begin = base::round_up(to, base::kLineBytes);
  const uintptr_t whole_end = base::round_down(end, base::kLineBytes);
  const bool is_past = caches == Caches::kPast || (caches == Caches::kChoose && bytes >= kPastCachesBytes);
  if (!is_past || whole_begin >= whole_end || !sink.has_streams(whole_begin, whole_end)) {
    store(0, bytes);
    sink.flush(to, bytes);
    return;
  }
  if (to < whole_begin) {
    store(0, whole_begin - to);
    sink.flush(to, whole_begin - to);
  }
  for (uintptr_t line = whole_begin; line < whole_end; line += base::kLineBytes) stream(line - to);
  sink.copied(whole_begin, whole_end - whole_begin);
  if (whole_end < end) {
    store(whole_end - to, end - whole_end);
    sink.flush(whole_end, end - whole_end);
  }
}

// As memmove. Cost: past the caches some 5 ns a line.
template <class Sink>
void copy(Sink& sink, void* to, const void* from, size_t bytes, Caches caches) {
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  const auto distance = reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from);
  // Where source and target overlap, only memmove copies in the right order.
  if (distance < bytes || -distance < bytes) caches = Caches::kThrough;
  write_lines(
      sink, to, bytes, caches,
      [&](size_t offset, size_t piece) { memmove(target + offset, source + offset, piece); },
      [&](size_t offset) {
        alignas(base::kLineBytes) char line[base::kLineBytes];
        __builtin_memcpy_inline(line, source + offset, sizeof line);
        sys::stream_line(target + offset, line);
      });
}

// As memset.
template <class Sink>
void set(Sink& sink, void* to, int byte, size_t bytes, Caches caches) {
  auto* const target = static_cast<char*>(to);
  alignas(base::kLineBytes) char line[base::kLineBytes];
  memset(line, byte, sizeof line);
  write_lines(
      sink, to, bytes, caches, [&](size_t offset, size_t piece) { memset(target + offset, byte, piece); },
      [&](size_t offset) { sys::stream_line(target + offset, line); });
}

// Does a fence make durable what went past the caches into such a domain?
inline bool has_streams(const Domains::Found& found) {
  return !found.is_inside ||
         (found.domain.kind != DomainKind::kFile && found.domain.kind != DomainKind::kDevice);
}

}  // namespace persist
