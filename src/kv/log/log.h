// Log: the segments of a store, what they hold, and where new records go. (uDepot, section 4.1)
//
//          prepare               a stream takes it      no room             seal                    emptied
//   FREE ----------> READY ---------------------> OPEN --------> FULL ----------------> SEALED ----------------> EMPTIED --> FREE
//        (header, flush)                                      (no writer; flush, summary)  (live records moved, flush)    |
//                                                                                               give_back: no reader; header, flush
//   FREE --take_for_checkpoint--> CHECKPOINT --emptied--> EMPTIED
//   (PREPARING is FREE whose next header, with its generation, is being written)
//
// A place that the medium does not take is its segment's trouble alone: the segment is put off, and tried again after a time that doubles.
// FULL it becomes UNSEALED, which is SEALED but for the summary, and FULL once more when it is tried again; a FREE one whose header is refused
// becomes EMPTIED, and counts as no room.
//
// Invariants
//  1 a READY segment's header, with its generation, is on the medium for good; a FREE one's says that nothing else there counts
//  2 a record is in a segment's list of entries from its allocation on, and counts as written when its writer has ended well; one that
//    was not written is listed as kVoid
//  3 a segment is sealed when all of its writers have ended, which is after the index knows of their records
//  4 `live` is the grains of the records that the index knows, of those that are being written, and of tombstones, as size codes tell them
//  5 who asks for room counts as a writer before it looks which segment the stream has, and asks the word that says how full that is (by
//    a compare-and-swap, which fails once it is closed). Who fills a segment takes it from the stream and closes it before it is
//    FULL: a segment that anybody could still append to has a writer, and is not sealed
//  6 what was live in an EMPTIED segment is on the medium for good elsewhere. It is written to only when no reader is left
//
// Room. Segments that are free or ready are few on purpose: room that waits there is room that collection cannot gain from. Two of
// them are kept for the collector itself, of which tombstones may take one: removes go on in a store that is full. It is full when as much
// is live as may be, which is less by what sealed segments lose at their ends, where the next record was too large; and when no segment is
// left and none can be gained, until one has been. Writers wait for room, and are told when there is some or will be none. While there is little they
// are paced (pace.h): first come, first served, as fast as the collector's work, piece by piece, is gaining room, a little faster where more is
// free than need be and slower where the reserve is near. So they are not faster than it for long, nor stopped for a whole segment's time.
//
// Writers come from all threads. FREE to READY and FULL to SEALED are the keeper's, one thread; SEALED to FREE is the collector's,
// another.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "kv/log/pace.h"
#include "kv/media/channel.h"
#include "kv/media/checkpoint_format.h"
#include "kv/media/clock.h"
#include "kv/media/format.h"
#include "task/call_waiter.h"
#include "task/flush_group.h"

namespace kv {

struct Segment {
  enum class State : uint8_t {
    kFree,
    kPreparing,
    kReady,
    kOpen,
    kFull,
    kUnsealed,
    kSealed,
    kEmptied,
    kCheckpoint
  };
  std::atomic<State> state{State::kFree};  // changes under the log's lock
  // It has, or may have, records that are older than tombstones of lower generations: a relocation came too late.
  std::atomic<bool> has_old_copies{false};
  // EMPTIED, and one of its headers says for good that nothing of what it held counts: the medium does not take the other.
  std::atomic<bool> is_void{false};
  bool is_damaged = false;  // it has live records that cannot be moved; the collector's, as the next three
  uint8_t failed_reads = 0;
  // How much was live when it was left as it is, since not all could be moved and there was little room; 0: it was not.
  uint64_t left_grains = 0;
  uint64_t failed_address =
      0;  // what could not be read last: from this record on, or, its first grain's, the summary
  // How often its summary or its headers could not be written, and before when that is not tried again; under the log's lock.
  uint8_t put_offs = 0;
  uint64_t put_off_until_ns = 0;
  std::atomic<uint64_t> generation{0};
  std::atomic<uint64_t> live_grains{0};
  std::atomic<uint32_t> writers{0};
  std::atomic<uint32_t> keeps{0};    // by snapshots: it is not to be collected (snapshots.h)
  std::atomic<uint64_t> filling{0};  // how full it is while OPEN (log.cc)
  // Once FULL.
  uint32_t used_grains = 0;
  uint32_t entry_count = 0;
  // Each its writer's; the keeper's once FULL and without writers, the collector's while UNSEALED.
  SummaryEntry* entries = nullptr;
  std::atomic<uint64_t> first_expiry{0};  // as SegmentFooter::first_expiry
  // The highest of its records; when a relocation came later, of the store at that time: all of it is of before.
  std::atomic<uint64_t> last_sequence{0};
};

// Segment::filling, a word so that writers need no lock: one whose holder does not run would stop all others.
struct Filling {
  static constexpr uint64_t kClosed = uint64_t{1} << 63;

  uint32_t used_grains;
  uint32_t entry_count;

  static Filling of(uint64_t word) {
    return {static_cast<uint32_t>(word), static_cast<uint32_t>((word & ~kClosed) >> 32)};
  }
  uint64_t word() const { return uint64_t{entry_count} << 32 | used_grains; }
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
  uint64_t open_segments = 0;  // and those that are not sealed yet
  uint64_t sealed_segments = 0;
  uint64_t emptied_segments = 0;
  uint64_t checkpoint_segments = 0;
  uint64_t put_off_segments = 0;  // the medium does not take their summaries or headers
  uint64_t kept_segments = 0;     // of them all, by snapshots
  uint64_t live_grains = 0;
  uint64_t live_bytes = 0;       // of them, with their entries in summaries
  uint64_t limit_bytes = 0;      // puts are refused above; less by what segments lose at their ends
  uint64_t tombstone_bytes = 0;  // of them
  uint64_t sequence = 0;
  // What is free, but for the reserve, what is left of open segments included, for what is to be while room is short: a segment and a half for
  // each stream, and one.
  double free_level = 0;
};

class Log {
 public:
  static constexpr uint32_t kStreamsMax = 64;
  // Free or ready segments that only the collector may take, and tombstones all but one.
  static constexpr uint32_t kReserve = 2;
  // Victims whose room is not free before others' is.
  static constexpr uint32_t kEmptiedMax = 2;
  static constexpr uint32_t kSegmentsMin = 8;

  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // All segments are free. Errors: ENOMEM. `identity` outlives the log.
  base::Expected<void> open(const Identity& identity, uint32_t stream_count);
  // Of one that is not open: nothing.
  void close();

  enum class Room {
    kDone,
    kWait,          // no segment is ready
    kWaitForLimit,  // the store is full; only removes and what expires will change that
    kFailed,
  };
  // What room is asked for, until there is some.
  struct Request {
    uint32_t stream = 0;
    uint32_t grains = 0;
    SummaryEntry entry;    // `grain` and `grains` are set here
    uint64_t expiry = 0;   // of a value, or 0
    bool is_kept = false;  // of a cache: as much as is live now will not be soon
  };
  // While writers are paced, waits for the caller's turn; before it takes anything. False: the log has failed.
  bool wait_for_turn(const Request& request);
  // The caller is a writer of the segment until finish(). Else wait_for_room() tells when to ask again.
  Room allocate(Request& request, Extent& extent);
  // The index knows of the record, or it was not written.
  void finish(const Extent& extent, bool written);
  // What the index knows, and what it does not know any more: for what is live. allocate() holds, for who writes.
  void hold(uint64_t address, uint32_t size_code);
  void release(uint64_t address, uint32_t size_code);
  // A tombstone that nobody needs any more.
  void release_tombstone(uint64_t address, uint32_t grains);

  // A number that changes with all that could let a writer go on; taken before allocate().
  uint64_t room_changes() const { return room_changes_.load(std::memory_order_acquire); }
  // Waits for such a change since. False: the log has failed, or the store is full: nothing is to be gained by
  // collection; of the collector: no segment is left for it.
  bool wait_for_room(uint64_t since, Room why, const Request& request);

  // Of the keeper.
  // Prepares segments and seals others, as many as it can; 0, or an errno value: it may try again, but for flush_error(). `did` says if
  // anything.
  int keep(Channel& channel, bool& did);
  // For the end of a store: every open segment becomes full, and is sealed; ready ones are given back. 0, or an errno value. What is put off
  // is tried once more; if it stays so that is no error: its records are there for good, and the next start reads all of the segment.
  // REQUIRES: no writers.
  int seal_all(Channel& channel);
  // All that wait for room are told that there is none: the keeper cannot make any.
  void refuse_waiting();
  // All flushes of the store's device; as task::FlushGroup's. `times`, of calls alone that use the same: how long the flush took, if this one led it.
  int flush(Channel& channel, SharedTimes* times = nullptr) {
    return flushes_.run([&] {
      const uint64_t began_ns = now_ns();
      const int error = channel.flush();
      if (times != nullptr) times->add(now_ns() - began_ns);
      return error;
    });
  }
  int flush_error() const { return flushes_.error(); }
  // After a failure nothing is written any more.
  void fail();
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

  // Of the collector.
  struct Need {
    bool collects = false;       // there are few free segments, or a writer waits
    bool is_over_limit = false;  // and would go on if something that has expired were found
    bool waits = false;          // a writer does, for a segment or the limit
  };
  Need need();
  static constexpr uint32_t kNone = ~0u;
  // The segment to collect next, or kNone when none would gain anything: that with the highest gain times age over cost (what is
  // live in it, and a little), so that what changes often is given the time to, and what does not is moved for less (Rosenblum and
  // Ousterhout, SOSP '91, 3.6); while tombstones take much that which keeps them from ending, if it can be collected; with `expired_ms`
  // not 0 the oldest whose first value has expired then. Of a segment all of whose records are below the floor (lifetimes.h), and none
  // of which has been looked at since, nothing counts as live.
  uint32_t choose_victim(uint64_t expired_ms, uint64_t floor = 0);
  // Of a cache: of the segments that could be collected that whose last record is the oldest; kNone: there is none.
  uint32_t choose_to_drop();
  // Of a cache: what has a lower sequence than this is gone (SegmentHeader::floor); a lower one than before changes nothing. All headers say so
  // from now on.
  void drop_below(uint64_t sequence) { floor_.store(std::max(sequence, floor()), std::memory_order_relaxed); }
  // And one that is there is written again, so that it is so for good: this segment's, or that of another one that could be collected, if the
  // medium does not take it. 0, or an errno value. REQUIRES: the segment could be collected.
  int keep_floor(Channel& channel, uint32_t first);
  // The first header of a segment in use, with what headers say now; nothing is flushed. 0, or an errno value.
  int write_header_again(Channel& channel, uint32_t segment);
  uint64_t floor() const { return floor_.load(std::memory_order_relaxed); }
  // Tombstones of lower generations have nothing left to hold down: the least that a segment with records has, but for `victim`.
  uint64_t oldest_generation(uint32_t victim) const { return oldest(victim).generation; }
  // If tombstones take much, and what keeps them from ending is open, it is filled: who writes there may write nothing more for long. The
  // collector's own only if there is a segment to go on with.
  void fill_oldest();
  // What could not be sealed is the keeper's to try again, if it is time.
  void retry_seals();
  // For who would be refused: all that is put off may be tried now, if that was not so a moment ago. False: nothing is to be tried.
  bool hurry_put_offs();
  // What an UNSEALED one holds.
  std::span<const SummaryEntry> entries_of(const Segment& segment) const {
    return {segment.entries, segment.entry_count};
  }
  // Is there room for what one more victim may hold? Writers are paced from then on, if room is short.
  bool may_start_victim();
  // Does a writer wait for its turn? A hint.
  bool is_awaited() const { return paced_count_.load(std::memory_order_relaxed) != 0; }
  // A part of the collector's work is done, which is worth so many grains once its victim is free.
  void gained(uint64_t grains);
  // Nothing is to be collected: writers that wait and could not go on are told that the store is full, unless a segment is being sealed or has
  // been since need(), which may be a victim; the others go on unpaced.
  void tell_waiting();
  // Why tell_waiting() would tell some that the store is full: kWait, or kWaitForLimit if that alone is so; kDone: it would not.
  Room would_refuse();
  // Are more segments free, or about to be?
  bool has_more_than(uint32_t segments);
  // Do writers wait, or have to soon, for what has been emptied?
  bool is_short();
  void emptied(uint32_t segment);
  // EMPTIED segments become free, but for those that are put off. REQUIRES: no reader is left that began before they were emptied. 0, or
  // an errno value.
  int give_back(Channel& channel);
  // Is it time to try again to give back one that was put off?
  bool is_due_to_give_back();
  // What of the log the index may not know of yet: the rest of a checkpoint is the index, as of later. The collector's next records go to
  // a segment that has none so far. False: too many segments.
  bool begin_checkpoint(CheckpointState& state);
  // A free segment with a generation of its own; kNone: there are too few.
  uint32_t take_for_checkpoint();
  // Of sealed segments: what a start without a checkpoint has to apply.
  uint64_t sealed_records();
  uint32_t relocation_stream() const { return stream_count_; }
  // The stream of writers whose segment is the newest: others may be filled slowly.
  uint32_t newest_stream() const;

  // Of recovery, before anybody else.
  void recovered(uint32_t segment, Segment::State state, uint64_t generation);
  // Of a sealed one.
  void recovered_content(uint32_t segment, const SegmentFooter& footer);
  // It is none after all: the medium does not take its summary, of these. Errors: ENOMEM.
  base::Expected<void> recovered_unsealed(uint32_t segment, std::span<const SummaryEntry> entries);
  // Records there that the index knows, and their grains as it tells them.
  void recovered_live(uint32_t segment, uint64_t grains, uint64_t records);
  void recovered_sequence(uint64_t sequence);
  // An emptied one holds copies of what is elsewhere, and no summary says which of them are void.
  void recovered_copies(uint32_t segment);
  // It is never collected: what it holds, beside that, cannot be read.
  void recovered_unreadable(uint32_t segment);
  // The next segments have generations that are higher by so many.
  void skip_generations(uint64_t count);
  // Writes the summary of a segment. 0, or an errno value.
  int write_summary_of(Channel& channel, uint32_t segment, std::span<const SummaryEntry> entries);

  // Segments that are put off.
  uint32_t put_off_count() const { return put_off_count_.load(std::memory_order_relaxed); }
  uint64_t last_sequence() const { return sequence_.load(std::memory_order_relaxed); }
  // Who gets a higher one sees what was written before this call: the additions pair with each other.
  uint64_t next_sequence() { return sequence_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  // The highest of a segment that has, or had, records.
  uint64_t taken_generation();
  Segment& segment(uint64_t index) { return segments_[index]; }
  uint32_t segment_count() const { return segment_count_; }
  uint32_t stream_count() const { return stream_count_; }
  // Grains of a segment that records may take, less what the summary of so many entries needs.
  uint32_t usable_grains(uint32_t entry_count) const;
  LogCounts counts();
  // Invariants, for tests; nobody writes meanwhile. Ends the process where one does not hold.
  void verify();

  // Notified when the keeper, or the collector, has something to do.
  sys::EventCount keeper_wanted;
  sys::EventCount collector_wanted;
  // What the keeper has to do in time: keep() calls it now and then while it gives a file room, or seals segments, which takes long. Set before
  // the first call.
  struct Meanwhile {
    void (*act)(void* self) = nullptr;
    void* self = nullptr;
    void operator()() const {
      if (act != nullptr) act(self);
    }
  };
  Meanwhile meanwhile;

 private:
  struct alignas(64) Stream {
    std::atomic<uint32_t> segment{kNone};  // changes under the lock
    sys::Mutex lock;
  };
  struct Call;
  struct Turn;

  uint32_t take_ready(uint32_t reserve);
  void fill(Stream& stream);
  uint32_t ready_wanted() const;
  int prepare(Channel& channel, bool& did);
  // Both headers of a segment, to be written.
  struct NextHeader {
    uint32_t segment = 0;
    uint64_t generation = 0;
    bool is_there = false;  // one of them has been written
    int error = 0;
  };
  void write_headers(Channel& channel, std::span<NextHeader> headers, SegmentState state, unsigned which);
  bool has_only_others();
  size_t choose_to_prepare(std::span<NextHeader> to);
  void find_room(Channel& channel, uint32_t segment);
  void write_prepared(Channel& channel, std::span<NextHeader> headers);
  void prepared(std::span<const NextHeader> headers, bool puts_off);
  int seal(Channel& channel, bool& did);
  void sealed(Segment& segment);
  int free_all(Channel& channel, Segment::State from);
  int free_some(Channel& channel, Segment::State from, std::span<NextHeader> headers);
  void put_off(Segment& segment);
  void end_put_off(Segment& segment);
  base::Expected<void> map_entries(Segment& segment);
  void unmap_entries(Segment& segment);
  struct Oldest {
    uint32_t segment = kNone;
    uint64_t generation = ~uint64_t{0};
  };
  Oldest oldest(uint32_t but) const;
  bool has_many_tombstones() const;
  static bool can_be_collected(const Segment& segment, bool has_room);
  bool has_free_segment();
  static bool is_put_off(const Segment& segment) { return segment.put_offs != 0; }
  bool is_due(const Segment& segment) const;
  bool is_of_segment(int error) const;
  uint32_t available() const { return free_count_ + preparing_count_ + ready_count_; }
  void fill_all();
  void changed_room();
  bool may_gain_soon() const;
  bool is_refused(const Call& call) const;
  struct Ends {
    uint64_t used_grains = 0;
    uint64_t lost_grains = 0;  // at their ends
  };
  Ends ends_of(const Segment& segment) const;
  void count_ends(const Segment& segment, bool is_sealed);
  bool append(const Stream& stream, const Request& request, Extent& extent);
  void leave(Segment& segment);
  task::CallWaiters end_pace();
  task::CallWaiters take_limited();
  double free_level() const;
  // Of values: tombstones, which end by themselves, are no reason to refuse one.
  bool is_full() const {
    return has_no_room_.load(std::memory_order_relaxed) ||
           live_bytes_.load(std::memory_order_relaxed) >=
               limit_bytes_.load(std::memory_order_relaxed) +
                   tombstone_bytes_.load(std::memory_order_relaxed);
  }
  uint64_t record_grains_most() const {
    const Geometry& geometry = identity_->geometry;
    return geometry.grains(record_bytes(kKeyBytesMax, geometry.value_bytes_max()));
  }
  uint64_t charge(uint64_t grains) const {
    return grains * identity_->geometry.grain_bytes + sizeof(SummaryEntry);
  }

  const Identity* identity_ = nullptr;
  Segment* segments_ = nullptr;
  uint32_t segment_count_ = 0;
  uint32_t stream_count_ = 0;
  uint32_t free_low_ =
      0;  // with fewer free and ready segments writers are paced; emptied ones included so many are to be there then
  uint32_t free_high_ = 0;           // with so many the collector rests
  uint64_t limit_most_bytes_ = 0;    // if segments lost nothing at their ends
  Stream streams_[kStreamsMax + 1];  // and the collector's
  std::atomic<uint64_t> sequence_{0};
  std::atomic<uint64_t> floor_{0};  // the collector's, read by who writes headers
  std::atomic<bool> failed_{false};
  task::FlushGroup flushes_;
  std::atomic<uint64_t> limit_bytes_{0};
  // Puts were told that there is no segment, and none has come since; changes under the lock.
  std::atomic<bool> has_no_room_{false};
  std::atomic<uint64_t> live_bytes_{0};
  std::atomic<uint64_t> tombstone_bytes_{0};
  std::atomic<uint64_t> room_changes_{0};
  std::atomic<uint32_t> put_off_count_{0};
  uint64_t hurried_ns_ = 0;  // when what is put off was last tried for somebody; under the lock
  std::atomic<bool> is_paced_{false};
  std::atomic<uint32_t> paced_count_{0};  // of those in paced_
  Pace pace_;                             // the collector's side is under the lock

  sys::Mutex lock_;                // after a stream's; guards what follows and all changes of state
  uint64_t generation_ = 0;        // the highest of any segment
  uint64_t taken_generation_ = 0;  // and of those that have, or had, records
  uint32_t free_count_ = 0;
  uint32_t preparing_count_ = 0;
  uint32_t ready_count_ = 0;
  uint32_t emptied_count_ = 0;    // but for those that are put off
  Ends sealed_ends_;              // of all that are sealed
  bool has_new_victims_ = false;  // segments were sealed since need()
  uint32_t next_free_ = 0;        // where to look
  task::CallWaiters waiting_;     // for a segment, or the limit
  task::CallWaiters paced_;       // for their turn
};

}  // namespace kv
