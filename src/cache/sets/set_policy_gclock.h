// GclockSet: a hand goes round the set and lowers the count of each page that it passes by one; the first page with count 0 leaves. It
// is the policy with which SAFS, the paper's code, was published: its counts go up to 255, not just to a few as in other variants of CLOCK.
//
//   hits_   for each way, how often its page was used, its insertion included, less what the hand took; at most 255
//   hand_   the way that is looked at next
//
// The counts of spared pages are not lowered. All rounds that every page is known to survive are done at once, so that a
// victim costs two passes over the set, whatever the counts. Size: 17 bytes at 16 ways. Cost of a hit: a load and a store.
#pragma once
#include "cache/sets/set_ways.h"

namespace cache {

template <uint32_t Ways>
class GclockSet {
 public:
  static constexpr uint32_t kWays = Ways;

  void on_insert(uint32_t way, uint16_t) { hits_[way].set(1); }
  void on_hit(uint32_t way) {
    const uint8_t hits = hits_[way].get();
    if (hits < kFull) hits_[way].set(static_cast<uint8_t>(hits + 1));
  }
  void on_remove(uint32_t, uint16_t, Removal) {}

  uint32_t pick_victim(WayMask spared) {
    const WayMask candidates = all_ways(Ways) & ~spared;
    if (candidates == 0) return kNoWay;
    uint8_t rounds = kFull;
    for (uint32_t way = 0; way < Ways; ++way)
      if ((candidates & way_bit(way)) != 0 && hits_[way].get() < rounds) rounds = hits_[way].get();
    uint32_t victim = kNoWay;
    for (uint32_t step = 0, way = hand_; step < Ways; ++step, way = after(way)) {
      if ((candidates & way_bit(way)) == 0) continue;
      const uint8_t hits = hits_[way].get();  // may have risen since
      const auto left = static_cast<uint8_t>(hits > rounds ? hits - rounds : 0);
      if (left == 0 && victim == kNoWay) {
        victim = way;
        hand_ = static_cast<uint8_t>(after(way));
      }
      // In its last round, the hand has passed only the ways before the victim.
      hits_[way].set(victim == kNoWay ? static_cast<uint8_t>(left - 1) : left);
    }
    return victim != kNoWay ? victim : first(candidates);
  }

 private:
  static constexpr uint8_t kFull = 0xff;
  static constexpr uint32_t after(uint32_t way) { return way + 1 == Ways ? 0 : way + 1; }
  // For when all were hit while the hand went round.
  static uint32_t first(WayMask candidates) { return static_cast<uint32_t>(__builtin_ctz(candidates)); }

  Racy<uint8_t> hits_[Ways];
  uint8_t hand_ = 0;
};

static_assert(sizeof(GclockSet<16>) == 17);

}  // namespace cache
