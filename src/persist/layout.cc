#include "persist/layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/ids.h"

namespace persist {
namespace {

using Order = std::array<uint8_t, kMaxLayoutParts>;

// Lays the parts one after the other. Returns where the last one ends.
size_t lay_out_dense(std::span<const size_t> bytes, size_t alignment, const Order& order,
                     std::span<size_t> offsets) {
  size_t end = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    offsets[order[i]] = base::round_up(end, alignment);
    end = offsets[order[i]] + bytes[order[i]];
  }
  return end;
}

// Lays each part at the beginning of a line, or in the rest of a line that has room for all of it: in the smallest such rest.
size_t lay_out_apart(std::span<const size_t> bytes, size_t alignment, const Order& order,
                     std::span<size_t> offsets) {
  struct Rest {
    size_t begin, end;
  };
  std::array<Rest, kMaxLayoutParts> rests;
  size_t rest_count = 0, end = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t part = bytes[order[i]];
    Rest* best = nullptr;
    for (Rest& rest : std::span(rests).first(rest_count))
      if (rest.end - rest.begin >= part &&
          (best == nullptr || rest.end - rest.begin < best->end - best->begin))
        best = &rest;
    if (best == nullptr) {
      best = &rests[rest_count++];
      *best = {.begin = end, .end = end + base::round_up(part, base::kLineBytes)};
      end = best->end;
    }
    offsets[order[i]] = best->begin;
    best->begin = std::min<size_t>(best->end, base::round_up(best->begin + part, alignment));
  }
  return end;
}

}  // namespace

size_t lay_out(std::span<const size_t> bytes, size_t alignment, std::span<size_t> offsets) {
  if (!std::has_single_bit(alignment) || alignment > base::kLineBytes || bytes.size() > kMaxLayoutParts)
    return 0;
  size_t room = SIZE_MAX / 2 - kMaxLayoutParts * base::kLineBytes;
  for (const size_t part : bytes) {
    if (part > room) return 0;
    room -= part;
  }
  Order order;
  for (size_t i = 0; i < bytes.size(); ++i) order[i] = static_cast<uint8_t>(i);
  std::sort(order.begin(), order.begin() + bytes.size(),
            [&](uint8_t a, uint8_t b) { return bytes[a] != bytes[b] ? bytes[a] > bytes[b] : a < b; });
  const size_t dense = base::round_up(lay_out_dense(bytes, alignment, order, offsets), base::kLineBytes);
  std::array<size_t, kMaxLayoutParts> apart_offsets;
  const size_t apart = lay_out_apart(bytes, alignment, order, apart_offsets);
  if (apart > dense) return dense;
  std::copy_n(apart_offsets.begin(), bytes.size(), offsets.begin());
  return apart;
}

}  // namespace persist
