// Hash functions of one number: mix(), for seeds and hashes, where every bit of the result depends on every bit of the input; and spread(), which is
// cheaper.
#pragma once
#include <cstdint>

namespace base {

// 2^64 divided by the golden ratio: the step from one state of a generator to the next, which draws the mix() of each state (SplitMix64).
inline constexpr uint64_t kMixStep = 0x9e3779b97f4a7c15;

// SplitMix64's finaliser.
constexpr uint64_t mix(uint64_t x) {
  x += kMixStep;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Fibonacci hashing: for numbers close to each other, the high bits of the result differ, so use these. Cost: a multiplication.
constexpr uint64_t spread(uint64_t x) { return x * kMixStep; }

}  // namespace base
