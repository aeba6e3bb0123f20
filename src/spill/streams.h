// Streams: where the misses of one thread go, in steps that stay the same, upwards and downwards, several of them at a time (a loop
// over three arrays), so that what comes next can be loaded ahead.
//
//   two misses apart          a stream, perhaps
//   a third as far away       it is one: a window of pages is asked for, the one that is missed first
//   a page in the window, of which more than half is used up, is missed, or waited for:  the next window, twice as large
//   a page behind the window, by a window at most:    the same from that page on; those between were in memory
//
// Where the program computes for longer than loads take it misses nothing inside a window, and waits once for each.
//
// Thread contract: its thread. No I/O: pure bookkeeping, by page numbers.
#pragma once
#include <cstdint>

namespace spill {

// What the program said of memory (madvise).
enum class Pattern : uint8_t { kNormal, kSequential, kRandom };

class Streams {
 public:
  static constexpr uint32_t kStreams = 4;
  // Misses that lie further apart are no stream.
  static constexpr int64_t kMostStride = 1024;
  static constexpr uint32_t kWindowGrowth = 8;

  // Pages first, first + stride, ...; none if count is 0.
  struct Window {
    uint64_t first = 0;
    int64_t stride = 0;
    uint32_t count = 0;
  };
  // `page` is missed; windows begin with `least` pages and grow to kWindowGrowth times that. What to load ahead now.
  Window missed(uint64_t page, Pattern pattern, uint32_t least);
  // Of the window that was returned last so many are loaded, or need not be.
  void begun(uint32_t count);

 private:
  struct Stream {
    uint64_t last = 0;    // page that was missed
    uint64_t next = 0;    // first page behind the window
    int64_t stride = 0;   // 0: one miss so far
    uint32_t window = 0;  // pages; 0: it is none yet
    uint32_t used = 0;    // when it was
  };
  bool goes_on(const Stream& stream, uint64_t page) const;
  Window open_window(Stream& stream, uint64_t first, uint32_t count);

  Stream streams_[kStreams];
  Stream* opened_ = nullptr;
  Window window_;
  uint32_t now_ = 0;
};

}  // namespace spill
