// When items end: what clients say, as a time of the clock that the store's expiry is of, and back.
//
//   exptime      0 never | < 0 ended already | up to 30 days: seconds from now | more: seconds since 1970
//
// Pure: the clock is an argument, in milliseconds since 1970. Times are those of kv records: milliseconds
// since 1970, 48 bits, 0 for never.
#pragma once
#include <algorithm>
#include <cstdint>

namespace server::memcache {

inline constexpr int64_t kRelativeSecondsMax = 60 * 60 * 24 * 30;
inline constexpr uint64_t kExpiryMsMax = (uint64_t{1} << 48) - 1;  // what is later ends then, in 8,900 years
inline constexpr uint64_t kExpiredMs = 1;                          // has passed, and is not "never"

// 0: never.
constexpr uint64_t expiry_ms(int64_t exptime, uint64_t now_ms) {
  if (exptime == 0) return 0;
  if (exptime < 0) return kExpiredMs;
  const uint64_t seconds = std::min(static_cast<uint64_t>(exptime), kExpiryMsMax / 1000);
  const uint64_t begin_ms = exptime <= kRelativeSecondsMax ? now_ms : 0;
  return std::min(begin_ms + seconds * 1000, kExpiryMsMax);
}

// When `flush_all` with this delay takes effect, by the same rules; without one, or with a negative one, now.
constexpr uint64_t flush_ms(int64_t delay, uint64_t now_ms) {
  return delay <= 0 ? now_ms : expiry_ms(delay, now_ms);
}

// Whole seconds that an item with this expiry has left, as the `t` flag of meta commands says it: -1 if it
// does not end. Part of a second counts as one, so that right after a command it is what that has asked for.
constexpr int64_t seconds_left(uint64_t expiry, uint64_t now_ms) {
  if (expiry == 0) return -1;
  return expiry <= now_ms ? 0 : static_cast<int64_t>((expiry - now_ms + 999) / 1000);
}

}  // namespace server::memcache
