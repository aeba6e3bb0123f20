// The clock that expiry is of, and the one that calls are timed by, with what counts such times.
#pragma once
#include <time.h>

#include <atomic>

#include "base/histogram.h"

namespace kv {

// Since 1970, by a clock that is a few ms coarse and costs a few ns.
inline uint64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

// What expiry goes by: the machine's clock, unless its owner has moved it, or made it stand. Any thread may ask.
class Clock {
 public:
  // Since 1970. Cost: as of kv::now_ms().
  uint64_t now_ms() const {
    const uint64_t machine_ms = stands_.load(std::memory_order_relaxed) ? 0 : kv::now_ms();
    return machine_ms + moved_ms_.load(std::memory_order_relaxed);
  }
  // Forth, or back: then what has expired since, and has not been collected, is there again.
  void move(int64_t ms) { moved_ms_.fetch_add(static_cast<uint64_t>(ms), std::memory_order_relaxed); }
  // From now on only move() moves it. REQUIRES: nobody asks meanwhile; once.
  void stop() {
    moved_ms_.store(now_ms(), std::memory_order_relaxed);
    stands_.store(true, std::memory_order_relaxed);
  }

 private:
  // Relaxed: times, which order nothing.
  std::atomic<bool> stands_{false};
  std::atomic<uint64_t> moved_ms_{0};  // by so much, modulo 2^64; since 1970 when it stands
};

inline constinit const Clock kMachineClock;

// By a clock that never goes back. Cost: no system call where the C library needs none, some 20 to 50 ns.
inline uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// To 1/16, up to 17 s.
using SharedTimes = base::SharedHistogram<4, 34>;
using Times = base::BasicHistogram<4, 34>;

}  // namespace kv
