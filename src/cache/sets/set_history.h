// SetHistory: pages that left a set recently, as 16-bit fingerprints, oldest first; what nrlfu and alfu call non-resident entries and s3fifo
// ghosts. A full history loses its oldest entry.
//
//   fingerprints_   a ring of Entries; the oldest is at begin_. Slots beyond count_ hold stale fingerprints
//   counts_         one byte for each, if Counted
//
// A page is mistaken for another one that left the same set in Entries / 65,536 of the misses: 0.1 % with 72 entries.
//
// Thread contract: the set's lock, except for halve(), which a hit may call. Zeroed memory is an empty history. Cost: a look at all
// fingerprints, some nanoseconds; removing an entry moves the newer ones.
#pragma once
#include <array>
#include <type_traits>

#include "base/check.h"
#include "cache/sets/set_ways.h"

namespace cache {

template <uint32_t Entries, bool Counted>
class SetHistory {
 public:
  static_assert(Entries > 0 && Entries < 256);

  uint32_t count() const { return count_; }

  // Adds a page that left; `count` is kept only if Counted.
  void add(uint16_t fingerprint, uint8_t count = 0) {
    if (count_ == Entries) {
      begin_ = static_cast<uint8_t>((begin_ + 1) % Entries);
      --count_;
    }
    const uint32_t slot = slot_of(count_++);
    fingerprints_[slot] = fingerprint;
    if constexpr (Counted) counts_[slot].set(count);
  }

  // Removes the newest entry with this fingerprint. Returns whether there is one, and sets `count` to its count.
  bool take(uint16_t fingerprint, uint8_t& count) {
    if (!may_have(fingerprint)) return false;
    uint32_t place = count_;
    while (place-- > 0) {
      if (fingerprints_[slot_of(place)] != fingerprint) continue;
      if constexpr (Counted) count = counts_[slot_of(place)].get();
      for (--count_; place < count_; ++place) move(slot_of(place + 1), slot_of(place));
      return true;
    }
    return false;
  }

  void halve() {
    static_assert(Counted);
    for (auto& count : counts_) count.set(count.get() / 2);
  }

 private:
  struct Nothing {};

  uint32_t slot_of(uint32_t place) const {
    DCHECK(place < Entries);
    const uint32_t slot = begin_ + place;
    return slot < Entries ? slot : slot - Entries;
  }
  void move(uint32_t from, uint32_t to) {
    fingerprints_[to] = fingerprints_[from];
    if constexpr (Counted) counts_[to].set(counts_[from].get());
  }
  // Most misses end here: one pass without branches, which compilers vectorise.
  bool may_have(uint16_t fingerprint) const {
    bool found = false;
    for (const uint16_t other : fingerprints_) found |= other == fingerprint;
    return found;
  }

  uint16_t fingerprints_[Entries] = {};
  [[no_unique_address]] std::conditional_t<Counted, std::array<Racy<uint8_t>, Entries>, Nothing> counts_;
  uint8_t begin_ = 0;
  uint8_t count_ = 0;
};

}  // namespace cache
