// Random numbers, and which of many things is next, for the programs of benchmarks. They are built by other compilers, too: C++20.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace load {

// A permutation of the 64-bit numbers that looks random (SplitMix64).
inline uint64_t mix(uint64_t number) {
  uint64_t x = number + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    return mix(state_);
  }
  // The high half of a product spreads a random number over [0, n) without a division.
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// Numbers below `count`: all alike, or the one of rank i as often as i^-theta (Gray et al., SIGMOD '94: exact for the first two,
// near for the others). Ranks are spread over the numbers.
class Choice {
 public:
  Choice(uint64_t count, double theta) : count_(count), theta_(theta) {
    if (theta == 0 || count == 0) return;
    for (uint64_t i = 1; i <= count; ++i) zeta_ += std::pow(static_cast<double>(i), -theta);
    alpha_ = 1 / (1 - theta);
    eta_ =
        (1 - std::pow(2 / static_cast<double>(count), 1 - theta)) / (1 - (1 + std::pow(2, -theta)) / zeta_);
    stride_ = mix(count) % count | 1;
    while (std::gcd(stride_, count) != 1) stride_ += 2;
  }
  uint64_t next(Random& random) const {
    if (theta_ == 0) return random.below(count_);
    const uint64_t rank = std::min(rank_of(random.unit()), count_ - 1);
    return static_cast<uint64_t>(static_cast<unsigned __int128>(rank) * stride_ % count_);
  }

 private:
  uint64_t rank_of(double u) const {
    if (u * zeta_ < 1) return 0;
    if (u * zeta_ < 1 + std::pow(0.5, theta_)) return 1;
    return static_cast<uint64_t>(static_cast<double>(count_) * std::pow(eta_ * u - eta_ + 1, alpha_));
  }

  uint64_t count_;
  double theta_;
  double zeta_ = 0, alpha_ = 0, eta_ = 0;
  uint64_t stride_ = 1;
};

}  // namespace load
