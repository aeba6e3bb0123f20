// Walk: a loop that loads memory in order, page after page, and says now and then where it is. What comes next is loaded ahead in windows, many pages
// by one read. The loop's own distance (prefetch.h) is for what it finds there, which takes time for each iteration; of what lies in order it is a page
// or two, and a device that is asked for single pages moves a quarter of what it could.
//
//   a page somewhere else                    it may be the first of a row of a matrix, and the last
//   twice one of the next                    it is a walk: a window of pages is asked for
//   half of the window is used up            as much again, twice as large a window
//
// A walk may leave out pages that were asked for: threads that share a loop take turns at parts of it.
//
// Thread contract: its thread. No I/O: pure bookkeeping, by page numbers.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cache/pages/page_map.h"
#include "spill/streams.h"

namespace spill {

class Walk {
 public:
  static constexpr uint32_t kLeastSteps = 2;
  static constexpr uint32_t kWindowGrowth = Streams::kWindowGrowth;
  // Windows end where reads do.
  static constexpr uint64_t kGroupPages = cache::kGroupPages;

  // Pages first, first + 1, ...
  struct Window {
    uint64_t first = 0;
    uint32_t count = 0;
  };

  // How many pages windows begin with: `wanted`, but that all that is ahead is about `most` at most. 0: there is no room for any.
  static uint32_t least_of(uint32_t wanted, uint32_t most) { return std::min(wanted, most / kWindowGrowth); }

  // The loop is at `page`; from one time that it says so to the next it comes `step` pages further at most. Is a window due? Cost: a few
  // instructions.
  bool at(uint64_t page, uint64_t step) {
    if (page != page_) {
      const bool goes_on = page > page_ && (page <= page_ + step || page < next_);
      if (!goes_on) *this = {};
      steps_ = goes_on ? std::min(steps_ + 1, kLeastSteps) : 0;
      page_ = page;
      next_ = std::max(next_, page + 1);
    }
    return steps_ >= kLeastSteps && 2 * (next_ - page_ - 1) <= window_;
  }

  // What to load ahead now: windows begin with `least` pages and grow to kWindowGrowth times that, but for what their ends are rounded up
  // by. REQUIRES: one is due; least > 0.
  Window window(uint32_t least) {
    if (window_ == 0) window_ = least;
    const uint64_t end = (page_ + window_ + kGroupPages) / kGroupPages * kGroupPages;
    return {.first = next_, .count = static_cast<uint32_t>(end - next_)};
  }

  // Of the window that was returned last so many pages, from the front, are loaded, or need not be.
  void begun(uint32_t count, uint32_t least) {
    next_ += count;
    if (count > 0) window_ = std::min(2 * window_, kWindowGrowth * least);
  }

 private:
  uint64_t page_ = 0;    // where the loop was
  uint64_t next_ = 0;    // the first page that was not asked for
  uint32_t window_ = 0;  // pages; 0: none yet
  uint32_t steps_ = 0;   // from page to page, in a row
};

}  // namespace spill
