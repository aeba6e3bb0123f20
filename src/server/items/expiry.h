// Expiry: when an item ends, from the times that clients give, in the store's terms: ms since 1970, 0 for never.
//
// All are pure functions; the clock is an argument, so that tests, and memcached's debugtime, have their own.
#pragma once
#include <cstdint>

namespace server {

inline constexpr uint64_t kNever = 0;
// Long past: what ends then is not there.
inline constexpr uint64_t kEnded = 1;
// The last time that the store can say, in the year 10889. What is to end later ends then.
inline constexpr uint64_t kLastMs = (uint64_t{1} << 48) - 1;

// memcached's rule (doc/protocol.txt, "Expiration times"): 0 is never, below 0 is over at once, up to 30 days are seconds from now, and
// more are seconds since 1970.
uint64_t expiry_of_exptime(int64_t exptime, uint64_t now_ms);
// Seconds that are left, a part of one counted as one, as meta commands tell: -1 for ever.
int64_t seconds_left(uint64_t expires_ms, uint64_t now_ms);

// Redis's, of which its requests say when that is, since 1970 (server/resp/arguments.h). What is past gives a time that is, never kNever.
uint64_t expiry_of_unix_ms(int64_t at_ms);
// As PTTL tells: -1 for ever, 0 if it is over.
int64_t ms_left(uint64_t expires_ms, uint64_t now_ms);

}  // namespace server
