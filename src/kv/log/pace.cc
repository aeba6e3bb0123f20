#include "kv/log/pace.h"

#include <algorithm>

namespace kv {

void Pace::work(double level, uint64_t now_ns) {
  if (gained_at_ns_ != 0) return;
  gained_at_ns_ = now_ns;
  level_ = std::clamp(level, kMinLevel, kMaxLevel);
  set_rate();
}

void Pace::gained(uint64_t grains, double level, uint64_t now_ns) {
  const auto took_ns = static_cast<double>(now_ns - gained_at_ns_);
  gained_at_ns_ = now_ns;
  const double kept = kMemoryNs / (kMemoryNs + took_ns);
  grains_ = grains_ * kept + static_cast<double>(grains);
  worked_ns_ = worked_ns_ * kept + took_ns;
  level_ += (std::clamp(level, kMinLevel, kMaxLevel) - level_) * kLevelShare;
  set_rate();
}

void Pace::set_rate() {
  const double gain_ns = worked_ns_ < kKnownNs ? first_grain_ns_ : worked_ns_ / std::max(grains_, 1e-3);
  grain_ps_.store(static_cast<uint64_t>(std::min(gain_ns / level_, kMaxGrainNs) * 1000),
                  std::memory_order_relaxed);
}

// Relaxed: these numbers order no other memory.
uint64_t Pace::turn(uint64_t grains, uint64_t now_ns) {
  const uint64_t takes_ns = grains * grain_ps_.load(std::memory_order_relaxed) / 1000;
  const uint64_t first_ns = now_ns - std::min(now_ns, kSlackNs);
  uint64_t next_ns = next_ns_.load(std::memory_order_relaxed), at_ns = 0;
  do {
    at_ns = std::clamp(next_ns, first_ns, now_ns + kMaxAheadNs);
  } while (!next_ns_.compare_exchange_weak(next_ns, at_ns + takes_ns, std::memory_order_relaxed));
  return at_ns;
}

}  // namespace kv
