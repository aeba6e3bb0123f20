// Sequences: misses of one thread that go upwards page by page in hundreds of places at the same time, as when records are dealt out to the
// parts of a sort. Streams (streams.h) follow a few, in steps of any size, and would lose each of these before it is missed again.
//
//   a page is missed                        the next one is expected
//   the page that is expected               the one behind it is
//   again                                   it is a sequence: pages from this one on are to be loaded, what lies behind them is expected
//
// How many pages is what the places have room for: those that were missed between two misses of a sequence are other sequences, about.
//
// Thread contract: its thread. No I/O: pure bookkeeping, by page numbers. Memory: 8 KiB, zeros at first. Cost: two lines of the cache.
#pragma once
#include <algorithm>
#include <cstdint>

namespace spill {

class Sequences {
 public:
  static constexpr uint32_t kLeastMisses = 3;

  // `page` is missed: how many pages are to be loaded from there on; 0: it is no sequence. `room`: how many pages all sequences may have ahead,
  // `most`: one of them. REQUIRES: most > 0.
  uint32_t missed(uint64_t page, uint32_t room, uint32_t most) {
    ++now_;
    Expected* const found = find(page);
    if (found == nullptr) {
      expect(page + 1, 1);
      return 0;
    }
    const uint32_t misses = std::min(found->misses + 1, kLeastMisses),
                   others = std::max(now_ - found->time, 1u);
    *found = {};
    expect(page + 1, misses);
    return misses < kLeastMisses ? 0 : std::clamp(room / others, 1u, most);
  }

  // Of the pages that missed(page) asked for, `count` are loaded, or need not be.
  void begun(uint64_t page, uint32_t count) {
    if (count < 2) return;
    if (Expected* const found = find(page + 1); found != nullptr) *found = {};
    expect(page + count, kLeastMisses);
  }

 private:
  struct Expected {
    uint64_t page = 0;    // no page is expected where misses is 0
    uint32_t misses = 0;  // in a row, up to kLeastMisses
    uint32_t time = 0;    // of the last one
  };
  static constexpr uint32_t kPlaces = 512;
  static_assert(sizeof(Expected) * kPlaces == 8192);

  // A page has two places, side by side.
  Expected* places_of(uint64_t page) { return &all_[(page * 0x9e3779b97f4a7c15 >> 32) % (kPlaces / 2) * 2]; }
  Expected* find(uint64_t page) {
    Expected* const places = places_of(page);
    for (uint32_t i = 0; i < 2; ++i)
      if (places[i].misses != 0 && places[i].page == page) return &places[i];
    return nullptr;
  }
  // In place of nothing, or of what was missed longer ago.
  void expect(uint64_t page, uint32_t misses) {
    Expected* const places = places_of(page);
    const auto age = [&](const Expected& place) { return place.misses == 0 ? ~0u : now_ - place.time; };
    places[age(places[1]) > age(places[0])] = {.page = page, .misses = misses, .time = now_};
  }

  uint32_t now_ = 0;
  Expected all_[kPlaces];
};

}  // namespace spill
