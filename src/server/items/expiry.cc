#include "server/items/expiry.h"

#include <algorithm>

namespace server {
namespace {

constexpr int64_t kRelativeSecondsMost = 30 * 24 * 60 * 60;
constexpr int64_t kMsPerSecond = 1000;

uint64_t within_store(int64_t time_ms) {
  return static_cast<uint64_t>(
      std::clamp(time_ms, static_cast<int64_t>(kEnded), static_cast<int64_t>(kLastMs)));
}

std::optional<int64_t> ms_of(int64_t time, TimeUnit unit) {
  int64_t ms = time;
  if (unit == TimeUnit::kSeconds && __builtin_mul_overflow(time, kMsPerSecond, &ms)) return std::nullopt;
  return ms;
}

}  // namespace

uint64_t expiry_of_exptime(int64_t exptime, uint64_t now_ms) {
  if (exptime == 0) return kNever;
  if (exptime < 0) return kEnded;
  if (exptime <= kRelativeSecondsMost)
    return within_store(static_cast<int64_t>(now_ms) + exptime * kMsPerSecond);
  return within_store(std::min(exptime, static_cast<int64_t>(kLastMs) / kMsPerSecond + 1) * kMsPerSecond);
}

int64_t seconds_left(uint64_t expires_ms, uint64_t now_ms) {
  const int64_t ms = ms_left(expires_ms, now_ms);
  return ms < 0 ? ms : (ms + kMsPerSecond - 1) / kMsPerSecond;
}

std::optional<uint64_t> expiry_after(int64_t time, TimeUnit unit, uint64_t now_ms) {
  const std::optional<int64_t> ms = ms_of(time, unit);
  int64_t at_ms = 0;
  if (!ms || __builtin_add_overflow(static_cast<int64_t>(now_ms), *ms, &at_ms)) return std::nullopt;
  return within_store(at_ms);
}

std::optional<uint64_t> expiry_at(int64_t time, TimeUnit unit) {
  const std::optional<int64_t> ms = ms_of(time, unit);
  if (!ms) return std::nullopt;
  return within_store(*ms);
}

int64_t ms_left(uint64_t expires_ms, uint64_t now_ms) {
  if (expires_ms == kNever) return -1;
  return expires_ms <= now_ms ? 0 : static_cast<int64_t>(expires_ms - now_ms);
}

}  // namespace server
