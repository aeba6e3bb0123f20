// Log: the segments of a store, what they hold, and where new records go. (papers/udepot.txt, section 4.1)
//
//          prepare                a stream takes it      no room            sealed
//   FREE -----------> READY ---------------------> OPEN --------> FULL ----------------> SEALED
//         (header, flush)                                          (no writer; flush, summary)
//
// Invariants
//  1 a READY segment's header, with its generation, is on the medium for good
//  2 a record is in a segment's list of entries from its allocation on, and counts as written when its writer has ended well; one that
//    was not written is listed as kVoid
//  3 a segment is sealed when all of its writers have ended, which is after the index knows of their records
//  4 `live` is the grains of the records that the index knows, and of those that are being written, as size codes tell them
//
// Writers come from all threads. FREE to READY and FULL to SEALED are the keeper's, one thread.
#pragma once
#include <atomic>
#include <cstdint>

#include "kv/channel.h"
#include "kv/format.h"
#include "kv/waiter.h"

namespace kv {

struct Segment {
  enum class State : uint8_t { kFree, kReady, kOpen, kFull, kSealed };
  std::atomic<State> state{State::kFree};  // changes under the log's lock
  std::atomic<uint64_t> generation{0};
  std::atomic<uint64_t> live_grains{0};
  std::atomic<uint32_t> writers{0};
  // Of the stream, under its lock, while OPEN; the keeper's once FULL and without writers.
  uint32_t used_grains = 0;
  uint32_t entry_count = 0;
  SummaryEntry* entries = nullptr;
};

// Room for one record.
struct Extent {
  uint64_t address = 0;
  uint64_t generation = 0;
  uint32_t segment = 0;
  uint32_t entry = 0;  // its place in the segment's summary
};

struct LogCounts {
  uint64_t free_segments = 0;  // and ready ones
  uint64_t sealed_segments = 0;
  uint64_t live_grains = 0;
};

class Log {
 public:
  static constexpr uint32_t kStreamsMax = 64;

  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // All segments are free. Errors: ENOMEM. `identity` outlives the log.
  base::Expected<void> open(const Identity& identity, uint32_t stream_count);
  // Of one that is not open: nothing.
  void close();

  enum class Room { kDone, kWait, kFull };
  // Room for a record of so many grains, with its entry (whose `grain` and `grains` are set here). The caller is a writer of the
  // segment until finish(). kWait: the keeper is to prepare a segment; wait_for_room() tells when.
  Room allocate(uint32_t stream, uint32_t grains, SummaryEntry entry, Extent& extent);
  // The index knows of the record, or it was not written.
  void finish(const Extent& extent, bool written);
  // What the index knows, and what it does not know any more: for what is live. allocate() holds, for who writes.
  void hold(uint64_t address, uint32_t size_code);
  void release(uint64_t address, uint32_t size_code);

  // Waits until a segment is ready, the store is full or has failed. False: not to wait any more.
  bool wait_for_room();

  // Of the keeper.
  // Prepares segments and seals others, as many as it can; 0, or an errno value: the medium has failed. `did` says if anything.
  int keep(Channel& channel, bool& did);
  // For the end of a store: every open segment becomes full, and is sealed. 0, or an errno value. REQUIRES: no writers.
  int seal_all(Channel& channel);
  // After a failure nothing is written any more.
  void fail();
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

  // Of recovery, before anybody else.
  void recovered(uint32_t segment, Segment::State state, uint64_t generation);
  void recovered_sequence(uint64_t sequence);
  // Writes the summary of a segment that a crash has left without one.
  int write_summary_of(Channel& channel, uint32_t segment, std::span<const SummaryEntry> entries,
                       uint32_t used_grains);

  uint64_t next_sequence() { return sequence_.fetch_add(1, std::memory_order_relaxed) + 1; }
  Segment& segment(uint64_t index) { return segments_[index]; }
  uint32_t stream_count() const { return stream_count_; }
  LogCounts counts();
  // Invariants, for tests; nobody writes meanwhile. Ends the process where one does not hold.
  void verify();

  // Notified when the keeper has something to do.
  sys::EventCount keeper_wanted;

 private:
  struct alignas(64) Stream {
    sys::Mutex lock;
    uint32_t segment = kNone;
  };
  static constexpr uint32_t kNone = ~0u;

  bool fits(const Segment& segment, uint32_t grains) const;
  uint32_t take_ready();
  void fill(Stream& stream);
  int prepare(Channel& channel, bool& did);
  int seal(Channel& channel, bool& did);
  void fill_all();

  const Identity* identity_ = nullptr;
  Segment* segments_ = nullptr;
  uint32_t segment_count_ = 0;
  uint32_t stream_count_ = 0;
  Stream streams_[kStreamsMax];
  std::atomic<uint64_t> sequence_{0};
  std::atomic<bool> failed_{false};

  sys::Mutex lock_;  // after a stream's; guards what follows and all changes of state
  uint64_t generation_ = 0;
  uint32_t free_count_ = 0;
  uint32_t ready_count_ = 0;
  uint32_t next_free_ = 0;  // where to look
  Waiters waiting_;
};

}  // namespace kv
