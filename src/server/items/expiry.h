// Expiry: the times that clients give for the end of an item, as the store has them: milliseconds since 1970, 0 for never.
//
// All functions are pure. The clock is an argument, so that tests and memcached's debugtime can have their own.
#pragma once
#include <cstdint>

namespace server {

inline constexpr uint64_t kNever = 0;
// A time that is long past: an item that ends then is not there.
inline constexpr uint64_t kEnded = 1;
// The last time that the store has, in the year 10889. An item that is to end later ends then.
inline constexpr uint64_t kLastMs = (uint64_t{1} << 48) - 1;

// memcached's rule (doc/protocol.txt, "Expiration times"): 0 is never, below 0 is over at once, up to 30 days are seconds from now, and
// more are seconds since 1970.
uint64_t expiry_of_exptime(int64_t exptime, uint64_t now_ms);
// How many seconds are left, rounded up, as meta commands say it: -1 for ever.
int64_t seconds_left(uint64_t expires_ms, uint64_t now_ms);

// The expiry for a time that Redis's clients give, in milliseconds since 1970 (server/resp/arguments.h). The result is never kNever: a time
// before 1970 becomes kEnded.
uint64_t expiry_of_unix_ms(int64_t at_ms);
// How many milliseconds are left, as PTTL says it: -1 for ever, 0 if the item has ended.
int64_t ms_left(uint64_t expires_ms, uint64_t now_ms);

}  // namespace server
