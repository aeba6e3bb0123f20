#include "server/items/expiry.h"

#include <algorithm>

namespace server {
namespace {

constexpr int64_t kMaxRelativeSeconds = 30 * 24 * 60 * 60;
constexpr int64_t kMsPerSecond = 1000;

}  // namespace

uint64_t expiry_of_unix_ms(int64_t at_ms) {
  return static_cast<uint64_t>(
      std::clamp(at_ms, static_cast<int64_t>(kEnded), static_cast<int64_t>(kLastMs)));
}

uint64_t expiry_of_exptime(int64_t exptime, uint64_t now_ms) {
  if (exptime == 0) return kNever;
  if (exptime < 0) return kEnded;
  if (exptime <= kMaxRelativeSeconds)
    return expiry_of_unix_ms(static_cast<int64_t>(now_ms) + exptime * kMsPerSecond);
  return expiry_of_unix_ms(std::min(exptime, static_cast<int64_t>(kLastMs) / kMsPerSecond + 1) *
                           kMsPerSecond);
}

int64_t seconds_left(uint64_t expires_ms, uint64_t now_ms) {
  const int64_t ms = ms_left(expires_ms, now_ms);
  return ms < 0 ? ms : (ms + kMsPerSecond - 1) / kMsPerSecond;
}

int64_t ms_left(uint64_t expires_ms, uint64_t now_ms) {
  if (expires_ms == kNever) return -1;
  return expires_ms <= now_ms ? 0 : static_cast<int64_t>(expires_ms - now_ms);
}

}  // namespace server
