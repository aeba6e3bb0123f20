// Limits of memcached's protocols: how long keys, lines and values may be.
#pragma once
#include <cstddef>
#include <cstdint>

namespace server::memcache {

inline constexpr size_t kMaxKeyBytes = 250;    // as it is written: in base64, the encoded text
inline constexpr size_t kMaxLineBytes = 2048;  // without its "\n"; longer lines of get and gets come in parts
inline constexpr uint64_t kMaxValueBytes = INT32_MAX - 2;
inline constexpr uint64_t kDefaultMaxItemBytes = 1 << 20;

// Is an item with such a key, flags and value within `item_bytes_max`? As in memcached, what it keeps beside them
// counts: 48 bytes and a cas unique for each item, a zero behind the key, the flags if they are not 0, and the
// value's "\r\n".
constexpr bool item_fits(size_t key_bytes, uint32_t flags, uint64_t value_bytes, uint64_t item_bytes_max) {
  const uint64_t beside_bytes = 48 + sizeof(uint64_t) + 1 + (flags != 0 ? sizeof flags : 0) + 2;
  return value_bytes <= kMaxValueBytes && beside_bytes + key_bytes + value_bytes <= item_bytes_max;
}

}  // namespace server::memcache
