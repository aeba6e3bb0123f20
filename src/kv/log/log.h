// Log: the segments of a store, what they hold, and where new records go. (uDepot, section 4.1)
//
//          prepare               a stream takes it      no room             seal                    emptied
//   FREE ----------> READY ---------------------> OPEN --------> FULL ----------------> SEALED ----------------> EMPTIED --> FREE
//        (header, flush)                                      (no writer; flush, summary)  (live records moved, flush)    |
//                                                                                               give_back: no reader; header, flush
//   FREE --take_for_checkpoint--> CHECKPOINT --emptied--> EMPTIED
//   (PREPARING is FREE whose next header, with its generation, is being written)
//
// A write error at one place of the medium concerns that segment alone: the segment is "put off", and tried again after a delay that
// doubles each time. A FULL segment whose summary cannot be written becomes UNSEALED, which is SEALED without a summary, and FULL again for
// the next try. A FREE segment whose header cannot be written becomes EMPTIED, and does not count as room.
//
// Invariants
//  1 The header of a READY segment, with its generation, is durable. The header of a FREE segment says that nothing else in it counts
//  2 A record is in its segment's list of entries from the moment it is allocated. It counts as written when its writer calls finish()
//    with success; else its entry becomes kVoid
//  3 A segment is sealed when all its writers have called finish(), which they do after the index knows their records
//  4 `live_grains` counts the grains, as rounded by size codes, of three kinds of records: those that the index points to, those that are
//    being written, and tombstones
//  5 A writer first adds itself to `writers`, then checks that the stream still has this segment, then takes room by a compare-and-swap of
//    `filling`, which fails once the segment is closed. Whoever fills a segment takes it away from the stream and closes it before
//    the segment becomes FULL. So a segment that anybody could still append to has a writer, and is not sealed
//  6 Before an EMPTIED segment is written to, whatever was live in it has become durable elsewhere, and its last reader has left
//
// Room. Few segments are kept free or ready, on purpose: room that lies idle there does not help to make collection cheap. Two of them
// (kReserve) are the collector's own; tombstones may take one of these, so that removes go on in a full store. The store is full
//  - when what is live reaches the limit, which shrinks by what sealed segments lose at their ends, where the next record did not fit;
//  - when no segment is left and none can be gained; it then stays full until one has been gained.
// Writers wait for room, and are told when there is some or when there will be none. While room is short they are paced (pace.h): first
// come, first served, at the rate at which the collector gains room, a little faster when more is free than needed and slower when the
// reserve is near. So writers neither outrun the collector for long nor stop for as long as a whole segment takes.
//
// Threads. Writers may be any threads. The transitions FREE to READY and FULL to SEALED are made by one thread, the keeper, those from
// SEALED to FREE by another one, the collector.
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
  // It may hold copies that are older than tombstones in segments of lower generations, of keys that were removed while their records were
  // being moved here. Cleared when the summary, which lists these copies as kVoid, has been written.
  std::atomic<bool> has_old_copies{false};
  // It is EMPTIED, and one of its two headers says, durably, that nothing in it counts; the medium does not accept the other header.
  std::atomic<bool> is_void{false};
  // These four are the collector's.
  bool is_damaged = false;   // it has live records that cannot be moved
  uint8_t failed_reads = 0;  // how often reading failed since the place that failed last was read
  // How much was live when the collector left it alone, because not all of it could be read and room was short; 0: it was not left.
  uint64_t left_grains = 0;
  // Where reading failed last: the first record of what could not be read, or the segment's first grain for its summary.
  uint64_t failed_address = 0;
  // How often its summary or its headers could not be written, and until when they are not tried again; under the log's lock.
  uint8_t put_offs = 0;
  uint64_t put_off_until_ns = 0;
  std::atomic<uint64_t> generation{0};
  std::atomic<uint64_t> live_grains{0};
  std::atomic<uint32_t> writers{0};
  std::atomic<uint32_t> keeps{0};  // records that snapshots keep: while there are any, it stays (snapshots.h)
  std::atomic<uint64_t> filling{0};  // how full it is while OPEN: a Filling
  // Set when it becomes FULL.
  uint32_t used_grains = 0;
  uint32_t entry_count = 0;
  // Each entry belongs to its writer; all belong to the keeper once the segment is FULL and has no writers, to the collector while UNSEALED.
  SummaryEntry* entries = nullptr;
  std::atomic<uint64_t> first_expiry{0};  // as SegmentFooter::first_expiry
  // The highest sequence of its records. For a segment of relocated records, the store's sequence when the last one was added: all are older.
  std::atomic<uint64_t> last_sequence{0};
};

// Segment::filling, packed into one word so that writers need no lock: a lock whose holder is not running would stop all others.
struct Filling {
  static constexpr uint64_t kClosed = uint64_t{1} << 63;

  uint32_t used_grains;
  uint32_t entry_count;

  static Filling of(uint64_t word) {
    return {static_cast<uint32_t>(word), static_cast<uint32_t>((word & ~kClosed) >> 32)};
  }
  uint64_t word() const { return uint64_t{entry_count} << 32 | used_grains; }
};

// Room that was allocated for one record.
struct Extent {
  uint64_t address = 0;
  uint64_t generation = 0;
  uint32_t segment = 0;
  uint32_t entry = 0;  // its place in the segment's summary
};

struct LogCounts {
  uint64_t free_segments = 0;  // and ready ones
  uint64_t open_segments = 0;  // and full ones that are not sealed yet
  uint64_t sealed_segments = 0;
  uint64_t emptied_segments = 0;
  uint64_t checkpoint_segments = 0;
  uint64_t put_off_segments = 0;  // of all these, those whose summary or header the medium does not accept
  uint64_t kept_segments = 0;     // of all these, those that snapshots keep
  uint64_t live_grains = 0;
  uint64_t live_bytes = 0;       // the live grains, with their entries in summaries
  uint64_t limit_bytes = 0;      // above this puts are refused; smaller the more segments lose at their ends
  uint64_t tombstone_bytes = 0;  // the tombstones' part of live_bytes
  uint64_t sequence = 0;
  // Free room as a share of what should be free while room is short. Free room is that of free and emptied segments beyond the reserve, and
  // what is left of open ones; what should be free is a segment and a half for each stream, and one more.
  double free_level = 0;
};

class Log {
 public:
  static constexpr uint32_t kMaxStreams = 64;
  // The last free or ready segments, which only the collector may take; tombstones may take all but one of them.
  static constexpr uint32_t kReserve = 2;
  // This many emptied victims are given back together, to share the flushes.
  static constexpr uint32_t kMaxEmptied = 2;
  static constexpr uint32_t kMinSegments = 8;

  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // A log all of whose segments are free. `identity` outlives the log. REQUIRES: 1 <= stream_count <= kMaxStreams. Errors: ENOMEM.
  base::Expected<void> open(const Identity& identity, uint32_t stream_count);
  // Does nothing if the log is not open.
  void close();

  enum class Room {
    kDone,
    kWait,          // no segment is ready
    kWaitForLimit,  // the store is full; only removes and expiry will change that
    kFailed,        // the log has failed
  };
  // What is asked for; the same request may be made again until there is room.
  struct Request {
    uint32_t stream = 0;
    uint32_t grains = 0;
    SummaryEntry entry;   // `grain` and `grains` are set here
    uint64_t expiry = 0;  // a value's, as RecordHeader::expiry; else 0
    // A cache keeps this record: the limit does not apply, since the segment that it comes from is dropped at once.
    bool is_kept = false;
  };
  // While writers are paced, waits for the caller's turn. Called before the writer takes memory or a sequence. False: the log has failed.
  bool wait_for_turn(const Request& request);
  // kDone: the caller has the extent, is a writer of its segment until finish(), and the grains count as live. Otherwise wait_for_room() tells
  // when to ask again.
  Room allocate(Request& request, Extent& extent);
  // `written`: the index knows the record, or it is a tombstone. Otherwise it does not count, although it may be on the medium.
  void finish(const Extent& extent, bool written);
  // A record that the index points to begins, or ceases, to count as live. For records being written, allocate() has called hold() already.
  void hold(uint64_t address, uint32_t size_code);
  void release(uint64_t address, uint32_t size_code);
  // A tombstone that nobody needs any more ceases to count as live.
  void release_tombstone(uint64_t address, uint32_t grains);

  // A number that changes whenever something happens that could let a waiting writer go on. To be read before allocate().
  uint64_t room_changes() const { return room_changes_.load(std::memory_order_acquire); }
  // Waits until room_changes() differs from `since`. False: the log has failed, or the store is full and collection can gain nothing; to the
  // collector: no segment is left for it.
  bool wait_for_room(uint64_t since, Room why, const Request& request);

  // --- for the keeper
  // Prepares segments and seals others, as many as it can; `did`: there was something to do. 0, or an errno value, after which it may be tried
  // again unless flush_error() is set.
  int keep(Channel& channel, bool& did);
  // When a store closes: fills and seals every open segment, and makes ready ones free. What is put off is tried once more; another failure
  // is no error, since the records are durable and the next start reads the whole segment. 0, or an errno value.
  // REQUIRES: no writers.
  int seal_all(Channel& channel);
  // Tells all that wait for room that there is none, because the keeper cannot make any.
  void refuse_waiting();
  // Every flush of the store's device goes through here, so that calls share them (task::FlushGroup). The call that leads a flush adds its
  // duration to `times`, if that is not null; all who pass one pass the same.
  int flush(Channel& channel, SharedTimes* times = nullptr) {
    return flushes_.run([&] {
      const uint64_t began_ns = now_ns();
      const int error = channel.flush();
      if (times != nullptr) times->add(now_ns() - began_ns);
      return error;
    });
  }
  int flush_error() const { return flushes_.error(); }
  // From now on nobody gets room, and all that wait are told.
  void fail();
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

  // --- for the collector
  struct Need {
    bool collects = false;       // there are few free segments, or a writer waits
    bool is_over_limit = false;  // a writer waits, and could go on if something were found to have expired
    bool waits = false;          // a writer waits, for a segment or for the limit
  };
  Need need();
  static constexpr uint32_t kNone = ~0u;
  // The segment to collect next; kNone: none would gain anything. It is
  //  - the one with the highest gain times age over cost, where the cost is what is live in it and a little. So segments whose records change
  //    often get the time to become emptier, and others are moved at less gain (Rosenblum and Ousterhout, SOSP '91, 3.6);
  //  - but while tombstones take much room, the oldest, which keeps them from ending, if it can be collected;
  //  - with an `expired_ms` other than 0, the oldest of those with a value that has expired by then.
  // A segment all of whose records are below `floor` (lifetimes.h) counts as one without live records.
  uint32_t choose_victim(uint64_t expired_ms, uint64_t floor = 0);
  // For a cache: of the segments that can be collected, the one whose last record is the oldest; kNone: there is none.
  uint32_t choose_to_drop();
  // For a cache: records below this sequence are gone. All headers written from now on say so (SegmentHeader::floor). A lower sequence than
  // before changes nothing.
  void drop_below(uint64_t sequence) { floor_.store(std::max(sequence, floor()), std::memory_order_relaxed); }
  // Makes the floor durable: rewrites the headers of this segment and of another one that can be collected, or of others where the medium does not
  // accept them; one is enough if there are no more. 0, or an errno value. REQUIRES: choose_to_drop() has chosen `first`, which is still in use.
  int keep_floor(Channel& channel, uint32_t first);
  // Rewrites the first header of a segment in use, with the present sequence and floor; does not flush. 0, or an errno value.
  int write_header_again(Channel& channel, uint32_t segment);
  uint64_t floor() const { return floor_.load(std::memory_order_relaxed); }
  // The lowest generation of all segments with records but `victim`: tombstones of lower generations hide nothing any more.
  uint64_t oldest_generation(uint32_t victim) const { return oldest(victim).generation; }
  // If tombstones take much room and the oldest segment, which keeps them from ending, is open, makes it FULL: otherwise it might stay open
  // for long, if nobody writes to it. The collector's own segment is filled only if there is another one to go on with.
  void fill_oldest();
  // Hands UNSEALED segments whose delay is over back to the keeper.
  void retry_seals();
  // Ends the delay of all that is put off, for a writer that would be refused otherwise; not twice within the shortest delay. False: nothing
  // is to be tried.
  bool hurry_put_offs();
  // The records of an UNSEALED segment.
  std::span<const SummaryEntry> entries_of(const Segment& segment) const {
    return {segment.entries, segment.entry_count};
  }
  // Is there room for what one more victim may hold? Paces writers from then on if room is short.
  bool may_start_victim();
  // Does a writer wait for its turn? A hint.
  bool is_awaited() const { return paced_count_.load(std::memory_order_relaxed) != 0; }
  // The collector has done work that is worth this many grains once its victim is free.
  void gained(uint64_t grains);
  // There is nothing to collect: tells waiting writers that cannot go on that the store is full, unless a segment is being sealed, or was
  // sealed since need(), and so may be a victim. The others go on, unpaced.
  void tell_waiting();
  // Why tell_waiting() would tell some that the store is full: kWait, or kWaitForLimit if that is the only reason; kDone: it would not.
  Room would_refuse();
  // Are more than this many segments free or emptied?
  bool has_more_than(uint32_t segments);
  // Do writers wait for what has been emptied, or will they soon?
  bool is_short();
  // A SEALED, UNSEALED or CHECKPOINT segment becomes EMPTIED.
  void emptied(uint32_t segment);
  // EMPTIED segments become FREE, except those that are put off. 0, or an errno value. REQUIRES: what was live in them is durable elsewhere, and no
  // reader is left that began before they were emptied.
  int give_back(Channel& channel);
  // Is it time to try to give back one that was put off?
  bool is_due_to_give_back();
  // Begins a checkpoint: sets what the index may not know of the log at this moment. The collector's next records go to a segment that has none
  // yet. False: too many segments are unsealed.
  bool begin_checkpoint(CheckpointState& state);
  // A free segment, which gets a generation; kNone: there are too few.
  uint32_t take_for_checkpoint();
  // Records of sealed segments: what a start without a checkpoint has to apply.
  uint64_t sealed_records();
  uint32_t relocation_stream() const { return stream_count_; }
  // The writers' stream with the newest segment: that one is in use, while those of other streams may fill slowly.
  uint32_t newest_stream() const;

  // --- for recovery, before any other thread uses the log
  void recovered(uint32_t segment, Segment::State state, uint64_t generation);
  // What a SEALED one holds. All its tombstones count as live.
  void recovered_content(uint32_t segment, const SegmentFooter& footer);
  // It has the tombstones that `now` counts instead of those that `before` counts. Any thread.
  void recovered_tombstones(uint32_t segment, const SegmentFooter& before, const SegmentFooter& now);
  // A SEALED one becomes UNSEALED, since the medium does not accept its summary, with these entries. Errors: ENOMEM.
  base::Expected<void> recovered_unsealed(uint32_t segment, std::span<const SummaryEntry> entries);
  // Adds records that the index points to, and their grains according to the index.
  void recovered_live(uint32_t segment, uint64_t grains, uint64_t records);
  void recovered_sequence(uint64_t sequence);
  // An EMPTIED one holds copies of what is elsewhere, and no summary says which of them are void.
  void recovered_copies(uint32_t segment);
  // Some of the segment cannot be read, or is damaged: it is never collected.
  void recovered_unreadable(uint32_t segment);
  // Skips this many generations: those of later segments are higher by that.
  void skip_generations(uint64_t count);
  // Writes the summary of a segment. 0, or an errno value.
  int write_summary_of(Channel& channel, uint32_t segment, std::span<const SummaryEntry> entries);

  // How many segments are put off.
  uint32_t put_off_count() const { return put_off_count_.load(std::memory_order_relaxed); }
  uint64_t last_sequence() const { return sequence_.load(std::memory_order_relaxed); }
  // Whoever gets a higher one sees what was stored before this call: the additions pair with each other.
  uint64_t next_sequence() { return sequence_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  // The highest generation of any segment that has, or had, records.
  uint64_t taken_generation();
  Segment& segment(uint64_t index) { return segments_[index]; }
  uint32_t segment_count() const { return segment_count_; }
  uint32_t stream_count() const { return stream_count_; }
  // Grains of a segment that records may take if its summary has this many entries.
  uint32_t usable_grains(uint32_t entry_count) const;
  LogCounts counts();
  // Checks the invariants, for tests; ends the process where one does not hold. REQUIRES: nobody writes.
  void verify();

  // Notified when the keeper, or the collector, has something to do.
  sys::EventCount keeper_wanted;
  sys::EventCount collector_wanted;
  // Something that the keeper must not do late: keep() calls it now and then during long work, which is filling a file's holes and writing
  // summaries. Set before the first call.
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

  uint32_t available() const { return free_count_ + preparing_count_ + ready_count_; }
  static bool is_put_off(const Segment& segment) { return segment.put_offs != 0; }
  // Is a value to be refused? Tombstones are no reason to, since they end by themselves.
  bool is_full() const {
    return has_no_room_.load(std::memory_order_relaxed) ||
           live_bytes_.load(std::memory_order_relaxed) >=
               limit_bytes_.load(std::memory_order_relaxed) +
                   tombstone_bytes_.load(std::memory_order_relaxed);
  }
  uint64_t record_grains_most() const {
    const Geometry& geometry = identity_->geometry;
    return geometry.grains(record_bytes(kMaxKeyBytes, geometry.value_bytes_max()));
  }
  uint64_t charge(uint64_t grains) const {
    return grains * identity_->geometry.grain_bytes + sizeof(SummaryEntry);
  }

  // Records (log.cc).
  uint32_t take_ready(uint32_t reserve);
  void fill(Stream& stream);
  bool append(const Stream& stream, const Request& request, Extent& extent);
  void leave(Segment& segment);
  struct Ends {
    uint64_t used_grains = 0;
    uint64_t lost_grains = 0;  // at their ends, where the next record did not fit
  };
  Ends ends_of(const Segment& segment) const;
  void count_ends(const Segment& segment, bool is_sealed);

  // Room (log_room.cc).
  bool has_free_segment();
  void changed_room();
  bool may_gain_soon() const;
  bool is_refused(const Call& call) const;
  task::CallWaiters end_pace();
  task::CallWaiters take_limited();
  double free_level() const;

  // The keeper, and everything that writes headers (log_keeper.cc).
  void fill_all();
  uint32_t ready_wanted() const;
  int prepare(Channel& channel, bool& did);
  // A segment's headers, to be written.
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
  bool is_due(const Segment& segment) const;
  bool is_of_segment(int error) const;
  base::Expected<void> map_entries(Segment& segment);
  void unmap_entries(Segment& segment);

  // The collector (log_collector.cc).
  struct Oldest {
    uint32_t segment = kNone;
    uint64_t generation = ~uint64_t{0};
  };
  Oldest oldest(uint32_t but) const;
  bool has_many_tombstones() const;
  static bool can_be_collected(const Segment& segment, bool has_room);

  const Identity* identity_ = nullptr;
  Segment* segments_ = nullptr;
  uint32_t segment_count_ = 0;
  uint32_t stream_count_ = 0;
  // With fewer free and ready segments, writers are paced; the pace then keeps about this many, including emptied ones.
  uint32_t free_low_ = 0;
  uint32_t free_high_ = 0;           // with this many the collector rests
  uint64_t limit_most_bytes_ = 0;    // the limit if segments lost nothing at their ends
  Stream streams_[kMaxStreams + 1];  // and the collector's
  std::atomic<uint64_t> sequence_{0};
  std::atomic<uint64_t> floor_{0};  // set by the collector, read by whoever writes headers
  std::atomic<bool> failed_{false};
  task::FlushGroup flushes_;
  std::atomic<uint64_t> limit_bytes_{0};
  // Puts were told that there is no segment, and none has been gained since; changes under the lock.
  std::atomic<bool> has_no_room_{false};
  std::atomic<uint64_t> live_bytes_{0};
  std::atomic<uint64_t> tombstone_bytes_{0};
  std::atomic<uint64_t> room_changes_{0};
  std::atomic<uint32_t> put_off_count_{0};
  uint64_t hurried_ns_ = 0;  // when hurry_put_offs() last ended delays; under the lock
  std::atomic<bool> is_paced_{false};
  std::atomic<uint32_t> paced_count_{0};  // of those in paced_
  Pace pace_;                             // the collector's side is under the lock

  sys::Mutex lock_;                // taken after a stream's; guards what follows and all changes of state
  uint64_t generation_ = 0;        // the highest of any segment
  uint64_t taken_generation_ = 0;  // the highest of those that have, or had, records
  uint32_t free_count_ = 0;
  uint32_t preparing_count_ = 0;
  uint32_t ready_count_ = 0;
  uint32_t emptied_count_ = 0;    // without those that are put off
  Ends sealed_ends_;              // of all sealed segments together
  bool has_new_victims_ = false;  // segments were sealed since need()
  uint32_t next_free_ = 0;        // where a free segment is looked for first
  task::CallWaiters waiting_;     // for a segment, or the limit
  task::CallWaiters paced_;       // for their turn
};

}  // namespace kv
