// S3fifoSet: S3-FIFO (Yang, Zhang, Qiu, Yue, Vigfusson: FIFO queues are all you need for cache eviction, SOSP 2023, section 4) within
// a set. New pages enter a small queue; those that are hit there move on to the main queue, the others leave, and are remembered.
//
//             came, unknown                         came, remembered
//                  │ on_insert                           │ on_insert
//                  ▼             hits > 1                ▼
//                small ──────────pick_victim──────────► main ◄─┐ hits > 0: back to its end,
//                  │ hits ≤ 1                            │ └────┘ with one less (pick_victim)
//                  ▼ on_remove                           ▼ on_remove
//                ghosts                                 gone
//
//   hits_     for each way, at most 3
//   order_    ways: those of the small queue, oldest first, then those of the main queue
//   ghosts_   fingerprints of pages that left the small queue, as many as there are ways
//
// The victim comes from the small queue if that has kSmall pages or more: a tenth of the set, which is 1, 2 and 3 at 8, 16 and 32 ways. A spared page
// keeps its position and is skipped; so is a queue that has only spared pages. A free way is in no queue.
// Size at 16 ways: 68 bytes. Cost of a hit: usually a load; of a victim at most 3 passes over each page.
#pragma once
#include "cache/sets/set_history.h"

namespace cache {

template <uint32_t Ways>
class S3fifoSet {
 public:
  static constexpr uint32_t kWays = Ways;
  static constexpr uint32_t kSmall = (Ways + 5) / 10;
  static constexpr uint32_t kGhosts = Ways;

  // REQUIRES: the way is free.
  void on_insert(uint32_t way, uint16_t fingerprint) {
    uint8_t unused = 0;
    hits_[way].set(0);
    if (ghosts_.take(fingerprint, unused))
      append_to_main(way);
    else
      append_to_small(way);
  }
  void on_hit(uint32_t way) {
    const uint8_t hits = hits_[way].get();
    if (hits < kMaxHits) hits_[way].set(static_cast<uint8_t>(hits + 1));
  }
  void on_remove(uint32_t way, uint16_t fingerprint, Removal removal) {
    const uint32_t place = place_of(way);
    CHECK_LT(place, end());
    if (place < small_count_ && removal == Removal::kEvicted) ghosts_.add(fingerprint);
    remove(place);
  }

  // REQUIRES: free ways are spared.
  uint32_t pick_victim(WayMask spared) {
    // Each turn but the last moves a page from small to main or lowers a count.
    for (uint32_t turn = 0; turn < (kMaxHits + 2) * Ways; ++turn) {
      const uint32_t in_small = oldest(0, small_count_, spared);
      const uint32_t in_main = oldest(small_count_, end(), spared);
      if (in_small == kNone && in_main == kNone) return kNoWay;
      const bool from_small = in_main == kNone || (in_small != kNone && small_count_ >= kSmall);
      const uint32_t place = from_small ? in_small : in_main;
      const uint32_t way = order_[place];
      const uint8_t hits = hits_[way].get();
      if (hits <= (from_small ? 1 : 0)) return way;
      remove(place);
      hits_[way].set(static_cast<uint8_t>(from_small ? 0 : hits - 1));
      append_to_main(way);
    }
    return order_[oldest(0, end(), spared)];  // hits kept coming
  }

 private:
  static constexpr uint8_t kMaxHits = 3;
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint32_t end() const { return uint32_t{small_count_} + main_count_; }
  uint32_t place_of(uint32_t way) const {
    uint32_t place = 0;
    while (place < end() && order_[place] != way) ++place;
    return place;
  }
  uint32_t oldest(uint32_t place, uint32_t stop, WayMask spared) const {
    for (; place < stop; ++place)
      if ((spared & way_bit(order_[place])) == 0) return place;
    return kNone;
  }
  void append_to_small(uint32_t way) {
    CHECK_LT(end(), Ways);
    for (uint32_t i = end(); i > small_count_; --i) order_[i] = order_[i - 1];
    order_[small_count_++] = static_cast<uint8_t>(way);
  }
  void append_to_main(uint32_t way) {
    CHECK_LT(end(), Ways);
    order_[end()] = static_cast<uint8_t>(way);
    ++main_count_;
  }
  void remove(uint32_t place) {
    uint8_t& queue = place < small_count_ ? small_count_ : main_count_;
    --queue;
    for (; place < end(); ++place) order_[place] = order_[place + 1];
  }

  Racy<uint8_t> hits_[Ways];
  uint8_t order_[Ways] = {};
  uint8_t small_count_ = 0;
  uint8_t main_count_ = 0;
  SetHistory<kGhosts, false> ghosts_;
};

static_assert(sizeof(S3fifoSet<16>) <= 128);

}  // namespace cache
