// DeviceModel: when a persistent memory of given properties would have taken what its writers flush. A model, not a measurement: it has the parts that
// are published about such devices, with figures of which most are chosen, to show how software copes with them on machines that have none.
//
//   writer ──issue──► write-pending queue ──drain──► combining buffer ──media write──► media
//                     durable from here on (ADR)     blocks of 256 bytes
//
//   issue     a writer takes some time for each line, so that one alone cannot keep the device busy. A clean line takes less, and the device
//             hears nothing of it
//   queue     takes a line at once unless it is full; then once the oldest has left. A fence waits until it has taken all of the writer's lines
//   drain     one line after another. Each takes some time, plus that of the media writes that it causes
//   buffer    lines of a block that is open join it. A block that is full, or that has to make room (least recently used), is one media write;
//             one that is not full has to be read first. So what is written in order is combined, unless more streams than there are blocks
//             interleave
//   crowd     each writer over some number makes media writes slower: so the rate rises with writers, peaks and falls
//             (Ribbon, introduction and figure 3, and what it cites)
//
// Time is the device's, in nanoseconds, and comes with each call. Calls may come late, with a time before that of other writers' calls: what
// the device could have done for them while it was idle, it is assumed to have done. With times in order nothing is late.
//
// Invariants
//  1 at any time at most queue_lines lines have been taken by the queue and not left it (not counting those that came late)
//  2 a line that has been flushed is taken at the latest when fence() says
//  3 the same calls with the same times have the same results
//
// Thread contract: one thread at a time (ModelDevice is for several). No memory but its own.
#pragma once
#include <cstdint>

namespace persist {

// Defaults: one set of interleaved modules, 10.7 GB/s at most; with 4 lines before each fence and in order, the peak is at 8 writers, and 24
// have 57 % of it (device_model_test.cc). Published are:
//   the blocks, the size of their buffer, and that a queued line is durable: Yang et al., "An Empirical Guide to the Behavior and Use of Scalable
//     Persistent Memory", FAST 2020, which Ribbon cites
//   2.3 GB/s written to one module, 13.9 to six, for which four threads are enough: Izraelevitz et al., "Basic Performance Measurements of the Intel
//     Optane DC Persistent Memory Module", 2019. 10.7 lies between
//   that the rate falls with more writers, and what a clean line takes: Ribbon
// All others are chosen. Where the fall begins and how steep it is (crowd_writers, crowd_factor) decides what fewer writers gain, and was compared
// with no published curve; `spillway bench persist --only crowd` has other factors.
struct DeviceParameters {
  static constexpr uint32_t kMaxQueueLines = 1024;
  static constexpr uint32_t kMaxBlocks = 256;

  double issue_dirty_ns = 30;  // of the writer, for a line
  double issue_clean_ns = 9;   // 3.3 times less (Ribbon, introduction)
  double fence_ns = 60;        // of the writer, besides waiting
  uint32_t queue_lines = 64;
  uint32_t block_count = 64;    // 16 KiB
  double drain_ns = 1;          // of a line, from the queue to the buffer
  double media_write_ns = 20;   // of a block
  double partial_factor = 1.5;  // times that, if the block is not full
  uint32_t crowd_writers = 7;   // more than these are a crowd
  double crowd_factor = 0.06;   // each of those makes a media write longer by this fraction
  double active_ns = 5'000;     // for this long after a flush a writer counts as active
  double late_most_ns = 1e6;    // how much idle time is kept for calls that come late
};

// What a device has done since it was made.
struct DeviceStatistics {
  uint64_t lines = 0;        // dirty ones: taken by the queue
  uint64_t clean_lines = 0;  // flushed all the same
  uint64_t fences = 0;
  uint64_t media_writes = 0;    // of blocks; those still open are not among them
  uint64_t partial_writes = 0;  // of these
  uint64_t full_waits = 0;      // lines that found the queue full
  uint64_t late_lines = 0;      // lines that came late, and were taken in idle time
  double busy_ns = 0;           // of the drain
  double taken_until_ns = 0;    // when the queue had taken all lines

  // For tests: lines in a media write, 0 if there was none; lines that the queue has taken in a second.
  double combining() const {
    return media_writes == 0 ? 0 : static_cast<double>(lines) / static_cast<double>(media_writes);
  }
  double lines_per_second() const {
    return taken_until_ns <= 0 ? 0 : static_cast<double>(lines) / taken_until_ns * 1e9;
  }
};

class DeviceModel {
 public:
  static constexpr uint32_t kMaxWriters = 256;
  static constexpr uint64_t kBlockLines = 4;

  // REQUIRES: 1 <= queue_lines <= kMaxQueueLines, 1 <= block_count <= kMaxBlocks, no time is negative, partial_factor >= 1.
  explicit DeviceModel(const DeviceParameters& parameters);

  // A number for a writer, or kMaxWriters: there are so many already.
  uint32_t open_writer();
  void close_writer(uint32_t writer);

  // At `now_ns` the writer begins to flush the line with the number `line` (its address / 64). Returns when it can go on. The line is durable
  // after a fence. `active`: how many writers are active, this one included, if the caller knows better than active_writers(); else 0. Cost: a
  // look at each block, and without `active` at each writer.
  double flush(uint32_t writer, uint64_t line, bool is_dirty, double now_ns, uint32_t active = 0);
  // Returns when the writer can go on: all that it has flushed is taken.
  double fence(uint32_t writer, double now_ns);

  // Writers with lines that are not taken yet, or that have flushed a dirty one not long before `now_ns`.
  uint32_t active_writers(double now_ns) const;
  // Lines in the queue.
  uint32_t queued_lines(double now_ns) const;
  const DeviceParameters& parameters() const { return parameters_; }
  const DeviceStatistics& statistics() const { return statistics_; }

 private:
  struct Writer {
    bool is_open = false;
    double taken_ns = 0;  // when all of its lines are taken
    double last_ns = 0;   // when its last flush of a dirty line ended
    bool has_flushed = false;
  };
  struct Block {
    uint64_t number = 0;
    uint64_t used = 0;   // the number, among all lines, of the last one that joined it
    uint32_t lines = 0;  // a bit for each; 0: not open
  };

  double combine(uint64_t line, double crowd);
  double write_media(Block& block, double crowd);
  double take(double service_ns, double now_ns);

  const DeviceParameters parameters_;
  DeviceStatistics statistics_;
  Writer writers_[kMaxWriters];
  uint32_t writers_end_ = 0;
  Block blocks_[DeviceParameters::kMaxBlocks];
  double left_ns_[DeviceParameters::kMaxQueueLines] = {};  // when each of the last lines has left the queue
  uint32_t next_ = 0;                                      // of these: the oldest
  double free_ns_ = 0;                                     // when the drain is free
  double latest_ns_ = 0;                                   // when the latest line came
  double idle_ns_ = 0;  // of the drain before latest_ns_, not used by late lines
  uint64_t came_ = 0;   // how many lines
};

}  // namespace persist
