// LfuSet: the page of a set that was used least often leaves; of several, the one in the lowest way. NrlfuSet: a page that comes back
// soon after it was evicted continues with the count that it had (set-associative page cache, "set-associative caching": one byte
// a page, halved by a shift when one overflows; SA-LFU and SA-NRLFU of the evaluation). AlfuSet: counts age, so that formerly popular
// pages leave.
//
//   hits_      for each way, how often its page was used, its insertion included; at most 255. A use of a page with count 255
//              first halves all counts, resident or not
//   history_   nrlfu, alfu: evicted pages whose count was not 0, with their counts: 37 at 8 ways, 4.5 a way above
//   misses_    alfu: pages that came since all counts were last halved; after eight a way they are halved again
//
// Of equal counts the lowest way leaves, not the oldest page: so pages that are used once replace each other in one way, and of a loop
// larger than the cache the rest stays.
// Size at 16 ways: lfu 16 bytes, nrlfu 234, alfu 236, four CPU lines; at 8 ways 122 and 124, two. Cost of a hit: a load and a store; at most once
// in 128 hits of a page, that for all counts.
#pragma once
#include "cache/sets/set_history.h"

namespace cache {

// The counts of a set, which hits change without the set's lock.
template <uint32_t Ways>
class SetHits {
 public:
  uint8_t get(uint32_t way) const { return hits_[way].get(); }
  void set(uint32_t way, uint8_t hits) { hits_[way].set(hits); }
  // Returns whether all were halved first.
  bool add(uint32_t way) {
    uint8_t hits = hits_[way].get();
    const bool full = hits == kFull;
    if (full) {
      halve();
      hits = kFull / 2;
    }
    hits_[way].set(static_cast<uint8_t>(hits + 1));
    return full;
  }
  void halve() {
    for (auto& count : hits_) count.set(count.get() / 2);
  }
  uint32_t least(WayMask spared) const { return way_of_least(hits_, spared); }

 private:
  static constexpr uint8_t kFull = 0xff;
  Racy<uint8_t> hits_[Ways];
};

template <uint32_t Ways>
class LfuSet {
 public:
  static constexpr uint32_t kWays = Ways;

  void on_insert(uint32_t way, uint16_t) { hits_.set(way, 1); }
  void on_hit(uint32_t way) { hits_.add(way); }
  void on_remove(uint32_t, uint16_t, Removal) {}
  uint32_t pick_victim(WayMask spared) { return hits_.least(spared); }

 private:
  SetHits<Ways> hits_;
};

template <uint32_t Ways>
class NrlfuSet {
 public:
  static constexpr uint32_t kWays = Ways;
  static constexpr uint32_t kEntries = Ways == 8 ? 37 : 9 * Ways / 2;

  void on_insert(uint32_t way, uint16_t fingerprint) {
    uint8_t hits = 0;
    history_.take(fingerprint, hits);
    hits_.set(way, hits);
    on_hit(way);
  }
  void on_hit(uint32_t way) {
    if (hits_.add(way)) history_.halve();
  }
  void on_remove(uint32_t way, uint16_t fingerprint, Removal removal) {
    if (removal == Removal::kEvicted && hits_.get(way) > 0) history_.add(fingerprint, hits_.get(way));
  }
  uint32_t pick_victim(WayMask spared) { return hits_.least(spared); }

 protected:
  void halve() {
    hits_.halve();
    history_.halve();
  }

 private:
  SetHits<Ways> hits_;
  SetHistory<kEntries, true> history_;
};

template <uint32_t Ways>
class AlfuSet : public NrlfuSet<Ways> {
 public:
  void on_insert(uint32_t way, uint16_t fingerprint) {
    if (++misses_ == kAgeMisses * Ways) {
      misses_ = 0;
      this->halve();
    }
    NrlfuSet<Ways>::on_insert(way, fingerprint);
  }

 private:
  // Among 4 to 24, the best on half of the traces: docs/decisions.md, "The page cache".
  static constexpr uint32_t kAgeMisses = 8;
  uint16_t misses_ = 0;
};

static_assert(sizeof(LfuSet<16>) == 16);
static_assert(sizeof(AlfuSet<8>) <= 128 && sizeof(AlfuSet<16>) <= 256);

}  // namespace cache
