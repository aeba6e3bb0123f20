// A mix of gets, puts and short scans as that of Facebook's graph store: which keys are asked for, how large values are and how long scans, by
// the distributions and parameters of "Characterizing, Modeling, and Benchmarking RocksDB Key-Value Workloads at Facebook" (FAST '20).
//
//   keys       48 bytes: four of a prefix, of which 256 keys have the same, and four of the key in it, both so that keys are in the
//              order of their numbers; the rest looks random
//   ranges     30, alike in size. How hot one is falls with its rank as the sum of two exponentials; hot and cold ones lie in no order
//   in a range the key of rank x is as hot as the derivative of a power of x says; hot and cold ones lie in no order
//   values     sizes have a generalized Pareto distribution, 16 to 1024 bytes. A value holds its version and tells whether it is whole
//   scans      lengths too, and they end with the prefix
//
// 83 % gets, 14 % puts of keys that are there, 3 % scans.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string_view>

#include "../random.h"

namespace mix {

inline constexpr uint64_t kKeyBytes = 48, kPrefixBytes = 4, kPrefixKeys = 256;
inline constexpr uint64_t kMinValueBytes = 16, kMaxValueBytes = 1024;

enum class Operation { kGet, kPut, kScan };

inline Operation next_operation(load::Random& random) {
  const uint64_t percent = random.below(100);
  return percent < 83 ? Operation::kGet : percent < 97 ? Operation::kPut : Operation::kScan;
}

// Generalized Pareto distribution from 0 on.
inline double pareto(load::Random& random, double shape, double scale) {
  return scale / shape * (std::pow(1 - random.unit(), -shape) - 1);
}

inline uint64_t next_scan_length(load::Random& random) {
  return 1 + static_cast<uint64_t>(std::min(pareto(random, 2.517, 14.236), double{kPrefixKeys}));
}

// Numbers of keys, those of one thread: all whose remainder by the number of threads is its own.
class Keys {
 public:
  // REQUIRES: key_count is at least 30 times thread_count.
  Keys(uint64_t key_count, uint64_t thread_count) : key_count_(key_count), thread_count_(thread_count) {
    range_keys_ = key_count / kRanges;
    stride_ = load::mix(range_keys_) % range_keys_ | 1;
    while (std::gcd(stride_, range_keys_) != 1) stride_ += 2;
    double sum = 0;
    for (uint64_t i = 0; i < kRanges; ++i) {
      const auto rank = static_cast<double>(i + 1);
      sum += 14.18 * std::exp(-2.917 * rank) + 0.0164 * std::exp(-0.08082 * rank);
      hotter_[i] = sum;
    }
    for (double& part : hotter_) part /= sum;
  }

  uint64_t next(load::Random& random, uint64_t thread) const {
    const auto hit = std::upper_bound(hotter_.begin(), hotter_.end() - 1, random.unit());
    // 11 has no factor in common with 30.
    const uint64_t range = static_cast<uint64_t>(hit - hotter_.begin()) * 11 % kRanges;
    const double part = std::pow(random.unit(), 1 / 0.3467);
    const uint64_t rank =
        std::min(static_cast<uint64_t>(part * static_cast<double>(range_keys_)), range_keys_ - 1);
    const uint64_t number = range * range_keys_ + rank * stride_ % range_keys_;
    const uint64_t own = number - number % thread_count_ + thread;
    return own < key_count_ ? own : own - thread_count_;
  }

 private:
  static constexpr uint64_t kRanges = 30;

  uint64_t key_count_, thread_count_, range_keys_, stride_;
  std::array<double, kRanges> hotter_ =
      {};  // the part of the accesses that this range and all hotter ones have
};

inline void put_number(char* at, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<char>(number >> 8 * (bytes - 1 - i));
}

struct Key {
  explicit Key(uint64_t number) {
    put_number(bytes, number / kPrefixKeys, kPrefixBytes);
    put_number(bytes + kPrefixBytes, number % kPrefixKeys, 4);
    for (uint64_t at = 8; at < kKeyBytes; at += 8) put_number(bytes + at, load::mix(number + at), 8);
  }
  std::string_view text() const { return {bytes, kKeyBytes}; }

  char bytes[kKeyBytes];
};

// The value of a key at a version: the version, and words that follow from both; the last one may be cut.
class Value {
 public:
  Value(uint64_t number, uint64_t version) {
    load::Random random(load::mix(number) ^ version);
    const auto size = static_cast<uint64_t>(std::min(pareto(random, 0.2615, 25.45), double{kMaxValueBytes}));
    size_ = std::clamp(size, kMinValueBytes, kMaxValueBytes);
    std::memcpy(bytes_, &version, sizeof version);
    for (uint64_t at = sizeof version; at < size_; at += sizeof version) {
      const uint64_t word = random.next();
      std::memcpy(bytes_ + at, &word, sizeof word);
    }
  }
  std::string_view text() const { return {bytes_, size_}; }

 private:
  uint64_t size_;
  char bytes_[kMaxValueBytes + sizeof(uint64_t)];
};

// Whether this is a value of the key, whole; and its version.
inline bool is_whole(uint64_t number, std::string_view value, uint64_t& version) {
  if (value.size() < kMinValueBytes) return false;
  std::memcpy(&version, value.data(), sizeof version);
  return Value(number, version).text() == value;
}

}  // namespace mix
