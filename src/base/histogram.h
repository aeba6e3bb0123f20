// Histogram: counts of durations, each to within a fraction of its length, and their percentiles. SharedHistogram: one that other threads may read.
//
// Times below 2^b, b being kPartBits, have a bucket each. Above, each range [2^k, 2^(k+1)) is divided into 2^b buckets:
//   index = 2^b (k - b) + (time >> (k - b))        b = 6, k = 6: 64…127, k = 7: 128…191, …
// Times of 2^kRangeBits and more fall into the last bucket. Benchmarks include this header with other compilers: it needs only C++20
// and single_writer.h.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/single_writer.h"

namespace base {

template <size_t kPartBits, size_t kRangeBits>
struct HistogramBuckets {
  static_assert(kPartBits < kRangeBits && kRangeBits <= 64);
  static constexpr uint64_t kParts = uint64_t{1} << kPartBits;
  static constexpr size_t kCount = (kRangeBits - kPartBits + 1) * kParts;

  static size_t index_of(uint64_t time) {
    if (time < kParts) return time;
    const auto shift = static_cast<size_t>(std::bit_width(time)) - 1 - kPartBits;
    return std::min<size_t>(kParts * shift + (time >> shift), kCount - 1);
  }
  // The greatest time of a bucket.
  static uint64_t greatest_of(size_t index) {
    if (index < kParts) return index;
    if (index == kCount - 1) return ~uint64_t{0};
    const size_t shift = index / kParts - 1;
    return ((index - kParts * shift + 1) << shift) - 1;
  }
};

template <size_t kPartBits, size_t kRangeBits>
class SharedHistogram;

// Thread contract: none of its own; the owner locks it.
template <size_t kPartBits, size_t kRangeBits>
class BasicHistogram {
 public:
  void add(uint64_t time) {
    ++counts_[Buckets::index_of(time)];
    ++count_;
    sum_ += static_cast<double>(time);
    most_ = std::max(most_, time);
  }
  void add(const BasicHistogram& other) {
    for (size_t i = 0; i < Buckets::kCount; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    most_ = std::max(most_, other.most_);
  }
  // Adds what the other has counted so far.
  void add(const SharedHistogram<kPartBits, kRangeBits>& other) {
    for (size_t i = 0; i < Buckets::kCount; ++i) {
      const uint64_t count = other.counts_[i].load(std::memory_order_relaxed);
      counts_[i] += count;
      count_ += count;
    }
    sum_ += static_cast<double>(other.sum_.load(std::memory_order_relaxed));
    most_ = std::max(most_, other.most_.load(std::memory_order_relaxed));
  }

  uint64_t count() const { return count_; }
  uint64_t most() const { return most_; }
  double sum() const { return sum_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  // The quantile `share` (0 to 1) of all times, or up to 1 / 2^kPartBits more; if it is in the last bucket, the greatest time of all. 0 if there are no
  // times.
  uint64_t at(double share) const {
    const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
    uint64_t seen = 0;
    for (size_t i = 0; i < Buckets::kCount; ++i) {
      seen += counts_[i];
      if (seen >= wanted && seen > 0) return std::min(Buckets::greatest_of(i), most_);
    }
    return most_;
  }

 private:
  using Buckets = HistogramBuckets<kPartBits, kRangeBits>;

  uint64_t counts_[Buckets::kCount] = {};
  uint64_t count_ = 0;
  uint64_t most_ = 0;
  double sum_ = 0;
};

// Precise to 1/64, for times of any length.
using Histogram = BasicHistogram<6, 64>;

// Thread contract: one thread at a time adds; meanwhile any thread may add these counts to a histogram of its own. Relaxed: each count is read whole,
// and they order nothing.
template <size_t kPartBits, size_t kRangeBits>
class SharedHistogram {
 public:
  // Cost: three plain additions.
  void add(uint64_t time) {
    if (time > most_.load(std::memory_order_relaxed)) most_.store(time, std::memory_order_relaxed);
    increase(sum_, time);
    increase(counts_[Buckets::index_of(time)], uint64_t{1});
  }

 private:
  friend class BasicHistogram<kPartBits, kRangeBits>;
  using Buckets = HistogramBuckets<kPartBits, kRangeBits>;

  std::atomic<uint64_t> counts_[Buckets::kCount] = {};
  std::atomic<uint64_t> sum_{0};
  std::atomic<uint64_t> most_{0};
};

}  // namespace base
