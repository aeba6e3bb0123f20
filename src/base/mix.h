// SplitMix64's finaliser: every bit of the input reaches every bit of the output. For what a seed decides.
#pragma once
#include <cstdint>

namespace base {

// From one state of a generator to the next; mix() of each is what it draws (SplitMix64).
inline constexpr uint64_t kMixStep = 0x9e3779b97f4a7c15;

constexpr uint64_t mix(uint64_t x) {
  x += kMixStep;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace base
