#include "server/memcache/base64.h"

#include <cstdint>

#include "base/check.h"

namespace server::memcache {
namespace {

constexpr uint32_t kNone = 64;

constexpr uint32_t value_of(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<uint32_t>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<uint32_t>(c - 'a') + 26;
  if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0') + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : kNone;
}

}  // namespace

size_t decode_base64(std::string_view from, std::span<char> to) {
  if (from.empty() || from.size() % 4 != 0) return 0;
  CHECK_GE(to.size(), from.size() / 4 * 3);
  const size_t fill_count = from.ends_with("==") ? 2 : from.ends_with('=') ? 1 : 0;
  from.remove_suffix(fill_count);
  size_t count = 0;
  uint32_t bits = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const uint32_t value = value_of(from[i]);
    if (value == kNone) return 0;
    bits = bits << 6 | value;
    // After the first one, each character of a group completes a byte, 0, 1 and 2, and has 4, 2 and 0 bits of
    // the next one.
    if (i % 4 == 0) continue;
    const unsigned behind = static_cast<unsigned>(6 - i % 4 * 2);
    to[count++] = static_cast<char>(bits >> behind);
    bits &= (1u << behind) - 1;
  }
  return bits == 0 ? count : 0;  // else there are bits that belong to no byte
}

}  // namespace server::memcache
