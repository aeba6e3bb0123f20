// Streams: misses of one thread that go up or down in steps of the same size, several at a time (a loop over three arrays), so that the
// pages that come next can be loaded ahead.
//
//   two misses, some pages apart                      perhaps a stream
//   a third one, as far from the second               it is a stream: a window of pages is loaded, beginning with the missed one
//   a miss in a window of which half is used up       the next window, twice as large. (Waiting for a page that is being loaded counts as a miss)
//   a page of a window is used for the first time     the next window, so that two are ahead. (Windows are marked, so that a use is noticed)
//   a miss beyond the window, by a window at most     a window from that page on: the pages between were in memory
//
// So a program that finds each window in memory never waits.
//
// Thread contract: its thread. No I/O: pure bookkeeping, by page numbers.
#pragma once
#include <cstdint>

namespace spill {

// What the program said about memory (madvise).
enum class Pattern : uint8_t { kNormal, kSequential, kRandom };

class Streams {
 public:
  static constexpr uint32_t kStreams = 4;
  // Misses further apart are not a stream.
  static constexpr int64_t kMaxStride = 1024;
  static constexpr uint32_t kWindowGrowth = 8;

  Streams() = default;
  // For tests: the state after this many misses, all of them forgotten.
  explicit Streams(uint32_t misses) : now_(misses) {}

  // Pages first, first + stride, ...; none if count is 0. The stride is 0 if the missed page is part of no stream.
  struct Window {
    uint64_t first = 0;
    int64_t stride = 0;
    uint32_t count = 0;
  };
  // `page` is missed. Returns the pages to load now: windows begin with `least` pages and grow to kWindowGrowth times as many.
  Window missed(uint64_t page, Pattern pattern, uint32_t least);
  // A marked page is used. Like missed(), with up to `most` pages ahead; no window if no stream has marked the page, or that many are ahead already.
  Window used(uint64_t page, Pattern pattern, uint32_t least, uint32_t most);
  // The first `count` pages of the window that was returned last are being loaded, or are in memory.
  void begun(uint32_t count);

  // Pages of the window that the i-th stream was given last, whose first use is to be reported to it: first to first + count - 1.
  struct Mark {
    uint64_t first = 0;
    uint64_t count = 0;
    bool has(uint64_t page) const { return page - first < count; }
  };
  Mark mark(uint32_t i) const { return streams_[i].mark; }

 private:
  struct Stream {
    uint64_t last = 0;    // page that was missed last
    uint64_t next = 0;    // first page after the window
    Mark mark = {};       // whose use is to be reported to it
    int64_t stride = 0;   // 0: one miss so far
    uint32_t window = 0;  // its size, in pages; 0: not a stream yet
    uint32_t used = 0;    // now_ when it was used last; 0: never
  };
  bool goes_on(const Stream& stream, uint64_t page) const;
  Window open_window(Stream& stream, uint64_t first, uint32_t count);
  static int64_t ahead(const Stream& stream, uint64_t page);

  Stream streams_[kStreams];
  Stream* opened_ = nullptr;  // the stream that window_ belongs to
  Window window_;             // that was returned last
  uint32_t now_ = 0;          // counts misses, modulo 2^32 and without 0
};

}  // namespace spill
