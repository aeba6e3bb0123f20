// SplitMix64's finaliser: every bit of the input reaches every bit of the output. For what a seed decides.
#pragma once
#include <cstdint>

namespace storage {

constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace storage
