#include "spill/ahead/streams.h"

#include <algorithm>

namespace spill {

// Is the page one of those after the last miss, up to a window beyond the window?
bool Streams::goes_on(const Stream& stream, uint64_t page) const {
  if (stream.window == 0) return false;
  const auto from_last = static_cast<int64_t>(page - stream.last);
  const auto to_next = static_cast<int64_t>(stream.next - page);
  return from_last % stream.stride == 0 && from_last / stream.stride > 0 &&
         to_next / stream.stride >= -static_cast<int64_t>(stream.window);
}

Streams::Window Streams::open_window(Stream& stream, uint64_t first, uint32_t count) {
  opened_ = &stream;
  stream.next = first;
  window_ = {first, stream.stride, count};
  return window_;
}

void Streams::begun(uint32_t count) {
  Stream& stream = *opened_;
  stream.next = window_.first + static_cast<uint64_t>(window_.stride * static_cast<int64_t>(count));
  // The page that was missed is in use already.
  const uint64_t first =
      stream.last == window_.first ? window_.first + static_cast<uint64_t>(stream.stride) : window_.first;
  const auto length = static_cast<int64_t>(stream.next - first);
  if (length / stream.stride <= 0) return;
  stream.mark = length > 0 ? Mark{first, static_cast<uint64_t>(length)}
                           : Mark{stream.next + 1, static_cast<uint64_t>(-length)};
}

// How many pages of the stream lie between this one and the next window.
int64_t Streams::ahead(const Stream& stream, uint64_t page) {
  return static_cast<int64_t>(stream.next - page) / stream.stride;
}

Streams::Window Streams::used(uint64_t page, Pattern pattern, uint32_t least, uint32_t most) {
  for (Stream& stream : streams_) {
    if (!stream.mark.has(page)) continue;
    if (static_cast<int64_t>(page - stream.last) % stream.stride == 0) stream.last = page;
    stream.used = now_;
    stream.mark = {};
    if (pattern == Pattern::kRandom) return {};
    stream.window = std::min(2 * stream.window, least * kWindowGrowth);
    const int64_t room = int64_t{std::min(2 * stream.window, most)} - ahead(stream, page);
    if (room <= 0) return {};
    return open_window(stream, stream.next, std::min(static_cast<uint32_t>(room), stream.window));
  }
  return {};
}

Streams::Window Streams::missed(uint64_t page, Pattern pattern, uint32_t least) {
  if (pattern == Pattern::kRandom || least == 0) return {};
  const uint32_t most = least * kWindowGrowth;
  if (++now_ == 0) ++now_;  // 0 is never
  for (Stream& stream : streams_) {
    if (!goes_on(stream, page)) continue;
    stream.last = page;
    stream.used = now_;
    const int64_t left = ahead(stream, page);
    if (2 * left > int64_t{stream.window}) return {.first = stream.next, .stride = stream.stride};
    stream.window = std::min(2 * stream.window, most);
    if (left < 0) return open_window(stream, page, stream.window);
    return open_window(stream, stream.next,
                       stream.window - std::min(static_cast<uint32_t>(left), stream.window));
  }
  Stream* nearest = nullptr;
  for (Stream& stream : streams_) {
    if (stream.used == 0 || stream.window != 0) continue;
    const auto distance = static_cast<int64_t>(page - stream.last);
    if (distance == 0) return {};
    if (distance == stream.stride) {
      stream.last = page;
      stream.used = now_;
      stream.window = least;
      return open_window(stream, page, 1 + least);
    }
    const auto length = [&](uint64_t other) {
      const auto apart = static_cast<int64_t>(page - other);
      return apart < 0 ? -apart : apart;
    };
    if (length(stream.last) <= kMaxStride &&
        (nearest == nullptr || length(stream.last) < length(nearest->last)))
      nearest = &stream;
  }
  if (nearest != nullptr && pattern == Pattern::kNormal) {
    nearest->stride = static_cast<int64_t>(page - nearest->last);
    nearest->last = page;
    nearest->used = now_;
    return {};
  }
  // By age, since now_ may have wrapped around between the two.
  Stream& oldest = *std::max_element(streams_, streams_ + kStreams, [this](const Stream& x, const Stream& y) {
    return now_ - x.used < now_ - y.used;
  });
  oldest = {.last = page, .used = now_};
  if (pattern == Pattern::kNormal) return {};
  oldest.stride = 1;
  oldest.window = most;
  return open_window(oldest, page, most);
}

}  // namespace spill
