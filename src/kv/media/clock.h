// The clock that expiry is of, and the one that calls are timed by, with what counts such times.
#pragma once
#include <time.h>

#include "base/histogram.h"
#include "kv/media/format.h"

namespace kv {

// Since 1970, by a clock that is a few ms coarse and costs a few ns.
inline uint64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

// REQUIRES: it is of a value.
inline bool has_expired(const RecordHeader& header) {
  return header.expiry() != 0 && header.expiry() <= now_ms();
}

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
