// What all set policies (set_policy.h) share: the types for one set of a set-associative cache, and a number that hits may
// change concurrently with everything else.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "cache/pages/removal.h"

namespace cache {

inline constexpr uint32_t kMaxWays = 32;

// One bit for each way of a set.
using WayMask = uint32_t;
constexpr WayMask way_bit(uint32_t way) { return WayMask{1} << way; }
constexpr WayMask all_ways(uint32_t ways) { return ways == kMaxWays ? ~WayMask{0} : way_bit(ways) - 1; }

inline constexpr uint32_t kNoWay = ~uint32_t{0};

// A number of a set that a hit changes without the set's lock. Relaxed, because no other data depends on its value; of two
// concurrent changes one may be lost, which does not matter to a policy.
template <class T>
class Racy {
 public:
  T get() const { return value_.load(std::memory_order_relaxed); }
  void set(T value) { value_.store(value, std::memory_order_relaxed); }

 private:
  std::atomic<T> value_{0};
  static_assert(sizeof(std::atomic<T>) == sizeof(T) && std::atomic<T>::is_always_lock_free);
};

// Of the ways that are not spared, the one with the least number, and of several the lowest; kNoWay if all are spared. Without a branch for each
// way, which could not be predicted.
template <class T, uint32_t Ways>
uint32_t way_of_least(const Racy<T> (&numbers)[Ways], WayMask spared) {
  static_assert(Ways <= kMaxWays && sizeof(T) <= 2);
  uint32_t least = ~uint32_t{0};
  if (spared == 0) {  // the usual case
    for (uint32_t way = 0; way < Ways; ++way)
      least = std::min(least, uint32_t{numbers[way].get()} * kMaxWays + way);
  } else {
    for (uint32_t way = 0; way < Ways; ++way)
      least = std::min(least, (uint32_t{numbers[way].get()} * kMaxWays + way) | (0 - (spared >> way & 1)));
  }
  return least == ~uint32_t{0} ? kNoWay : least % kMaxWays;
}

}  // namespace cache
