// Spread: says which bucket is a key's home: by the key's hash; or by the key itself, if keys are numbers below a bound, about evenly spread. Both ways
// keep an order, so that a table that grows can move its records from front to back.
#pragma once
#include <cstdint>

#include "batch/key.h"

namespace batch {

class Spread {
 public:
  // By hash. REQUIRES: bucket_count > 0.
  static Spread by_hash(uint64_t bucket_count) {
    Spread spread;
    spread.bucket_count_ = bucket_count;
    return spread;
  }
  // Each bucket is the home of the same count of neighbouring numbers; the last ones may have fewer. REQUIRES: 0 < key_space <= kMaxKeySpace,
  // bucket_count > 0.
  static Spread by_number(uint64_t key_space, uint64_t bucket_count) {
    Spread spread;
    spread.bucket_count_ = bucket_count;
    spread.key_space_ = key_space;
    spread.span_ = (key_space - 1) / bucket_count + 1;
    while (uint64_t{1} << spread.shift_ < spread.span_) ++spread.shift_;
    spread.shift_ += kNumberBits;
    spread.factor_ = static_cast<uint64_t>((Wide{1} << spread.shift_) / spread.span_) + 1;
    return spread;
  }

  // By number, if there is a key space; key_space 0: by hash.
  static Spread of(uint64_t key_space, uint64_t bucket_count) {
    return key_space == 0 ? by_hash(bucket_count) : by_number(key_space, bucket_count);
  }

  static constexpr unsigned kNumberBits = 62;
  static constexpr uint64_t kMaxKeySpace = uint64_t{1} << kNumberBits;

  uint64_t key_space() const { return key_space_; }
  uint64_t bucket_count() const { return bucket_count_; }
  bool has(const Key& key) const { return key_space_ == 0 || key.low < key_space_; }
  // Less than bucket_count. REQUIRES: has(key).
  [[gnu::always_inline]] uint64_t home(const Key& key) const {
    if (key_space_ == 0) return static_cast<uint64_t>(Wide{hash_of(key)} * bucket_count_ >> 64);
    // Division by the span, for numbers of kNumberBits (Granlund and Montgomery, PLDI '94, theorem 4.2).
    return static_cast<uint64_t>(Wide{key.low} * factor_ >> shift_);
  }

  // The home, in this spread, of the first key whose home in the `other` one is `home`; or a home before it. For the number of homes there, it is the
  // number of homes here: the end.
  uint64_t home_of_first(const Spread& other, uint64_t home) const {
    const Wide first =
        key_space_ == 0 ? Wide{home} * bucket_count_ / other.bucket_count_ : Wide{home} * other.span_ / span_;
    return static_cast<uint64_t>(first < bucket_count_ ? first : bucket_count_);
  }

 private:
  using Wide = unsigned __int128;

  uint64_t bucket_count_ = 0;
  uint64_t key_space_ = 0;  // 0: by hash
  uint64_t span_ = 0;
  uint64_t factor_ = 0;
  unsigned shift_ = 0;
};

}  // namespace batch
