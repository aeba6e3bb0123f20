// Numbers made from others: mix(), each bit of whose result depends on every bit of the input, for what a seed or a hash decides; and spread(), which
// is cheaper.
#pragma once
#include <cstdint>

namespace base {

// 2^64 divided by the golden ratio. From one state of a generator to the next; mix() of each is what it draws (SplitMix64).
inline constexpr uint64_t kMixStep = 0x9e3779b97f4a7c15;

// SplitMix64's finaliser.
constexpr uint64_t mix(uint64_t x) {
  x += kMixStep;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Fibonacci hashing: numbers that lie close to each other differ in the high bits of what is returned, which are to be used. Cost: a multiplication.
constexpr uint64_t spread(uint64_t x) { return x * kMixStep; }

}  // namespace base
