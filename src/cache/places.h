// Places: which page-sized places on storage are in use. A place is looked up (PageMap, Frame), never
// computed from the page, so that a page may move and two pages may one day share one.
//
// Neighbouring pages get neighbouring places where possible (sequential reads become large): next to
// the place of the page before; else at the page's position in a new run; else any free one. Changed pages
// that leave memory together may move to neighbouring places (take_run), so that one Io writes them.
//
// Places that were ever used are at most twice as many as those in use, and kSlackPlaces, unless storage that
// is smaller than that is nearly full.
//
// A place that was given back still takes room on the device: garbage, until whoever works in the
// background discards it. While that Io is under way the places count as taken.
//
// Invariant: a place is given back only after its last Io completed.
// Thread contract: takes its own lock. Memory: two bits per place.
#pragma once
#include <atomic>

#include "base/error.h"
#include "base/ids.h"
#include "sys/lock.h"

namespace cache {

using base::PageId;
using base::PlaceId;

class Places {
 public:
  static constexpr uint32_t kRunPlaces = 16;
  static constexpr uint32_t kSlackPlaces = 128 * kRunPlaces;

  // place_limit: how many fit the device, at most 2^31 - 2. Errors: ENOMEM.
  base::Expected<void> open(uint64_t place_limit);
  void close();

  // A free place for `page`, `wish` if it is free (kNoPlace: no wish). kNoPlace: storage is full.
  PlaceId take(PageId page, PlaceId wish);
  // REQUIRES: taken; no Io under way for it. Giving back twice is a CHECK.
  void give_back(PlaceId place);

  struct Run {
    PlaceId first{};
    uint32_t count = 0;
  };
  // Up to `most` neighbouring free places, taken, to move pages to. Free stretches are used in turn, so that
  // those that were passed over as too short have time to grow; the longer, the more places are free. Count
  // 0: none was found nearby, or moves are paused; never when more than two thirds of the places are in use.
  // Cost: a look at up to 64 words. REQUIRES: most > 0.
  Run take_run(uint32_t most);
  // Writing to a place that take_run gave failed, which need not mean that pages cannot be written where
  // they are: the next take_run calls find nothing.
  void pause_moves();

  // Up to `most` neighbouring garbage places, taken; count 0 when no whole run of kRunPlaces is garbage.
  Run take_garbage(uint32_t most);
  // The device has discarded the run. REQUIRES: from take_garbage().
  void give_back_discarded(Run run);

  uint32_t used_count() const { return used_count_; }
  // How often take_run found places.
  uint32_t move_count() const { return move_count_.load(std::memory_order_relaxed); }
  // Is there more garbage than moving pages need to find room?
  bool too_much_garbage();
  uint32_t garbage_count() const { return garbage_count_.load(std::memory_order_relaxed); }

 private:
  bool is_used(uint32_t place) const { return (used_[place / 64] >> (place % 64) & 1) != 0; }
  bool is_garbage(uint32_t place) const {
    return !is_used(place) && (written_[place / 64] >> (place % 64) & 1) != 0;
  }
  PlaceId taken(uint32_t place);
  Run taken_run(uint32_t first, uint32_t count);
  bool roomy() const;
  // The first place in [from, end) that is free, or in use; end if there is none.
  uint32_t next(bool used, uint32_t from, uint32_t end) const;

  sys::Mutex mutex_;
  uint32_t limit_ = 0;
  uint32_t end_ = 0;  // places at or past it were never used; multiple of kRunPlaces
  uint32_t used_count_ = 0;
  uint32_t cursor_ = 0;          // word where the search for a free place goes on
  uint32_t run_cursor_ = 0;      // place where the search for a free stretch goes on
  uint32_t paused_moves_ = 0;    // take_run calls that will find nothing
  uint32_t garbage_cursor_ = 0;  // run where the search for garbage goes on
  std::atomic<uint32_t> garbage_count_{0};
  std::atomic<uint32_t> move_count_{0};
  uint64_t* used_ = nullptr;
  uint64_t* written_ = nullptr;  // taken since it was last discarded; the second half of used_'s memory
  uint64_t bytes_ = 0;
};

}  // namespace cache
