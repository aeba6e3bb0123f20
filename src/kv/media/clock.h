// The clock that decides expiry, and the one that times calls, with the histograms of such times.
#pragma once
#include <time.h>

#include <atomic>

#include "base/histogram.h"

namespace kv {

// The time since 1970. The clock advances by a few ms at a time; reading it costs a few ns.
inline uint64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

// The clock that decides a store's expiry: the machine's, unless its owner has moved or stopped it. Any thread may read it.
class Clock {
 public:
  // The time since 1970. Cost: as of kv::now_ms().
  uint64_t now_ms() const {
    const uint64_t machine_ms = stands_.load(std::memory_order_relaxed) ? 0 : kv::now_ms();
    return machine_ms + moved_ms_.load(std::memory_order_relaxed);
  }
  // Moves it forward, or back. After a move back, what has expired since that time and has not been collected is there again.
  void move(int64_t ms) { moved_ms_.fetch_add(static_cast<uint64_t>(ms), std::memory_order_relaxed); }
  // From now on only move() moves it. REQUIRES: nobody reads it during the call; it was not stopped before.
  void stop() {
    moved_ms_.store(now_ms(), std::memory_order_relaxed);
    stands_.store(true, std::memory_order_relaxed);
  }

 private:
  // Relaxed: times order no other memory.
  std::atomic<bool> stands_{false};
  std::atomic<uint64_t> moved_ms_{0};  // modulo 2^64; while the clock is stopped, the time since 1970
};

inline constinit const Clock kMachineClock;

// A clock that never goes back. Cost: some 20 to 50 ns, where the C library needs no system call for it.
inline uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Exact to 1/16, up to 17 s.
using SharedTimes = base::SharedHistogram<4, 34>;
using Times = base::BasicHistogram<4, 34>;

}  // namespace kv
