// Sequences: misses of one thread that go upwards page by page in hundreds of places at the same time, as when a sort distributes records
// among its parts. Streams (streams.h) follow only a few, in steps of any size; they would forget each of these before its next miss.
//
//   a page is missed                         the page after it is expected
//   an expected page is missed               so is the page after that
//   once more                                it is a sequence: some pages from this one on are loaded, and the page after those is expected
//
// How many pages are loaded depends on how many sequences there are. Each miss between two misses of a sequence is assumed to be another
// sequence's, and they share the room.
//
// Thread contract: its thread. No I/O: pure bookkeeping, by page numbers. Memory: 8 KiB, zeros at first. Cost: two cache lines.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/mix.h"

namespace spill {

class Sequences {
 public:
  static constexpr uint32_t kMinMisses = 3;

  // `page` is missed. Returns how many pages to load, beginning with it; 0: it is part of no sequence. All sequences together may have `room`
  // pages ahead, each of them `most`. REQUIRES: most > 0.
  uint32_t missed(uint64_t page, uint32_t room, uint32_t most) {
    ++now_;
    Expected* const found = find(page);
    if (found == nullptr) {
      expect(page + 1, 1);
      return 0;
    }
    const uint32_t misses = std::min(found->misses + 1, kMinMisses),
                   others = std::max(now_ - found->time, 1u);
    *found = {};
    expect(page + 1, misses);
    return misses < kMinMisses ? 0 : std::clamp(room / others, 1u, most);
  }

  // The first `count` of the pages that missed(page) returned are being loaded, or are in memory.
  void begun(uint64_t page, uint32_t count) {
    if (count < 2) return;
    if (Expected* const found = find(page + 1); found != nullptr) *found = {};
    expect(page + count, kMinMisses);
  }

 private:
  struct Expected {
    uint64_t page = 0;
    uint32_t misses = 0;  // of its sequence so far, up to kMinMisses; 0: no page is expected here
    uint32_t time = 0;    // now_ at the last one
  };
  static constexpr uint32_t kPlaces = 512;
  static_assert(sizeof(Expected) * kPlaces == 8192);

  // A page has two places, side by side.
  Expected* places_of(uint64_t page) { return &all_[(base::spread(page) >> 32) % (kPlaces / 2) * 2]; }
  Expected* find(uint64_t page) {
    Expected* const places = places_of(page);
    for (uint32_t i = 0; i < 2; ++i)
      if (places[i].misses != 0 && places[i].page == page) return &places[i];
    return nullptr;
  }
  // Takes the place that is free, or else the one whose sequence missed longer ago.
  void expect(uint64_t page, uint32_t misses) {
    Expected* const places = places_of(page);
    const auto age = [&](const Expected& place) { return place.misses == 0 ? ~0u : now_ - place.time; };
    places[age(places[1]) > age(places[0])] = {.page = page, .misses = misses, .time = now_};
  }

  uint32_t now_ = 0;
  Expected all_[kPlaces];
};

}  // namespace spill
