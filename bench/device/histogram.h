// Histogram: how often each time occurred, to 1/64 of it, and percentiles of that.
//
// Times of at most 63 have a bucket each. Above, each power of two [2^k, 2^(k+1)) is divided into 64:
//   index = 64 (k - 6) + (time >> (k - 6))        k = 6: 64…127, k = 7: 128…191, …
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

class Histogram {
 public:
  void add(uint64_t time) {
    ++counts_[index_of(time)];
    ++count_;
    sum_ += static_cast<double>(time);
    most_ = std::max(most_, time);
  }
  void add(const Histogram& other) {
    for (size_t i = 0; i < kBucketCount; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    most_ = std::max(most_, other.most_);
  }

  uint64_t count() const { return count_; }
  uint64_t most() const { return most_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  // The least time that `share` of all times (0 to 1) do not exceed; at most 1/64 more. 0 if there are none.
  uint64_t at(double share) const {
    const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
    uint64_t seen = 0;
    for (size_t i = 0; i < kBucketCount; ++i) {
      seen += counts_[i];
      if (seen >= wanted && seen > 0) return std::min(greatest_of(i), most_);
    }
    return most_;
  }

 private:
  static constexpr size_t kBits = 6;
  static constexpr uint64_t kParts = uint64_t{1} << kBits;
  static constexpr size_t kBucketCount = (64 - kBits + 1) * kParts;

  static size_t index_of(uint64_t time) {
    if (time < kParts) return time;
    const auto shift = static_cast<size_t>(std::bit_width(time)) - 1 - kBits;
    return kParts * shift + (time >> shift);
  }
  // The greatest time of a bucket.
  static uint64_t greatest_of(size_t index) {
    if (index < kParts) return index;
    const size_t shift = index / kParts - 1;
    return ((index - kParts * shift + 1) << shift) - 1;
  }

  uint64_t counts_[kBucketCount] = {};
  uint64_t count_ = 0;
  uint64_t most_ = 0;
  double sum_ = 0;
};
