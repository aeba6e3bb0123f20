// Walk: a loop that loads memory in order, page after page, and reports its place now and then. The pages that come next are loaded ahead in
// windows, many of them by one read. (The distance of prefetch.h is no substitute: it suits addresses that the loop computes from what it loads. In
// memory that is loaded in order it covers a page or two, and a device that is asked for single pages delivers a quarter of what it could.)
//
//   the loop reports a page elsewhere                    no window: it may be the only page of a matrix row
//   it reports one of the next pages, twice in a row     it walks: a window of pages is loaded
//   half of the window is used up                        the next window, twice as large
//
// A walk may skip pages that were loaded for it: threads that share a loop take turns at parts of it.
//
// Thread contract: its thread. No I/O: pure bookkeeping, by page numbers.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cache/pages/page_map.h"
#include "spill/ahead/streams.h"

namespace spill {

class Walk {
 public:
  static constexpr uint32_t kMinSteps = 2;
  static constexpr uint32_t kWindowGrowth = Streams::kWindowGrowth;
  // Windows end where groups end: the pages of a group leave memory together.
  static constexpr uint64_t kGroupPages = cache::kGroupPages;

  // Pages first to first + count - 1.
  struct Window {
    uint64_t first = 0;
    uint32_t count = 0;
  };

  // The size of the first window, in pages: `wanted`, or less, so that the largest has about `most` pages. 0: there is no room for any.
  static uint32_t least_of(uint32_t wanted, uint32_t most) { return std::min(wanted, most / kWindowGrowth); }

  // The loop is at `page`, at most `step` pages further than when it reported last. Is a window due? Cost: a few instructions.
  bool at(uint64_t page, uint64_t step) {
    if (page != page_) {
      const bool goes_on = page > page_ && (page <= page_ + step || page < next_);
      if (!goes_on) *this = {};
      steps_ = goes_on ? std::min(steps_ + 1, kMinSteps) : 0;
      page_ = page;
      next_ = std::max(next_, page + 1);
    }
    return steps_ >= kMinSteps && 2 * (next_ - page_ - 1) <= window_;
  }

  // Does it walk, and is the page within reach of its windows?
  bool is_near(uint64_t page) const {
    return window_ != 0 && page + window_ >= page_ && page <= next_ + window_;
  }

  // The pages to load now: at first `least` of them, later up to kWindowGrowth times as many, extended to the end of a group.
  // REQUIRES: a window is due; least > 0.
  Window window(uint32_t least) {
    if (window_ == 0) window_ = least;
    const uint64_t end = (page_ + window_ + kGroupPages) / kGroupPages * kGroupPages;
    return {.first = next_, .count = static_cast<uint32_t>(end - next_)};
  }

  // The first `count` pages of the window that was returned last are being loaded, or are in memory.
  void begun(uint32_t count, uint32_t least) {
    next_ += count;
    if (count > 0) window_ = std::min(2 * window_, kWindowGrowth * least);
  }

 private:
  uint64_t page_ = 0;    // reported last
  uint64_t next_ = 0;    // the first page after the last window
  uint32_t window_ = 0;  // size of the next window, in pages; 0: no window yet
  uint32_t steps_ = 0;   // reports of a next page, in a row
};

}  // namespace spill
