// LruSet: the least recently used page of a set leaves (set-associative page cache, evaluation: SA-LRU).
//
//   stamps_   for each way, the set's clock at its last use
//   clock_    advances by one with each use; once it has reached its end, all uses get the same stamp
//
// When a page comes and the clock is past its middle, the stamps are renumbered, under the lock, as 1, 2, 3 ... in their order:
// the order is exact unless a set has 32,768 hits in a row without a page coming.
// Size: 34 bytes at 16 ways. Cost of a hit: one load, two stores.
#pragma once
#include "cache/sets/set_ways.h"

namespace cache {

template <uint32_t Ways>
class LruSet {
 public:
  static constexpr uint32_t kWays = Ways;

  void on_insert(uint32_t way, uint16_t) {
    if (clock_.get() >= kRenumberAt) renumber();
    on_hit(way);
  }
  void on_hit(uint32_t way) {
    const uint16_t now = clock_.get();
    const auto next = static_cast<uint16_t>(now == kEnd ? kEnd : now + 1);
    clock_.set(next);
    stamps_[way].set(next);
  }
  void on_remove(uint32_t, uint16_t, Removal) {}
  uint32_t pick_victim(WayMask spared) { return way_of_least(stamps_, spared); }

 private:
  static constexpr uint16_t kEnd = 0xffff;
  static constexpr uint16_t kRenumberAt = 0x8000;

  void renumber() {
    uint16_t stamps[Ways];
    for (uint32_t way = 0; way < Ways; ++way) stamps[way] = stamps_[way].get();
    for (uint32_t way = 0; way < Ways; ++way) {
      uint16_t rank = 1;
      for (uint32_t other = 0; other < Ways; ++other)
        rank += stamps[other] < stamps[way] || (stamps[other] == stamps[way] && other < way);
      stamps_[way].set(rank);
    }
    clock_.set(Ways);
  }

  Racy<uint16_t> stamps_[Ways];
  Racy<uint16_t> clock_;
};

static_assert(sizeof(LruSet<16>) == 34);

}  // namespace cache
