// Collector: makes room. It takes sealed segments in which little is live ("victims"), writes what is live to other segments, and gives the
// victims back. (uDepot, section 4.1; which segment is next: Log::choose_victim)
//
//  1 A victim's summary lists its records. Those that the index still has at their address there are live, and so are tombstones
//  2 Live records are read, many in one Io and several Ios at a time, and checked. A damaged record stays where it is, and so does its segment
//  3 They are appended to the collector's own stream with their sequences, and written in runs; meanwhile the next ones are read
//  4 The index gets each new address if it still has the old one; else the copy is void
//  5 Emptied victims are settled a few at a time: a flush, which makes the copies durable; a wait for those who may still read the old
//    records; free headers, and another flush (Log::give_back)
//  6 After each piece of this work the log is told its share of what the victim will gain, by which writers are paced
//
// A victim that turns out to be damaged has taken room and gives none back. The collector's last room is not spent on such victims: while room is
// short, a victim is read and checked as a whole before any of it is moved.
//
// A value that has expired, or is below the store's floor (lifetimes.h), leaves the index and becomes a tombstone of the same sequence, so that no
// older value of the key comes back after a crash. A tombstone ends when nothing on the medium can be older than what it removed: when every
// segment but the victim has a higher generation than any had when the tombstone's own segment was sealed.
//
// Each call of step() first takes the pieces of removed large values out of the index (large_values.h). A victim is not emptied if a snapshot has
// kept one of its records meanwhile (snapshots.h). When there is nothing else to do, a checkpoint may be due (checkpoint.h).
//
// Thread contract: one thread, the store's collector; but see AllWanted.
#pragma once
#include <atomic>
#include <list>
#include <vector>

#include "kv/collection/checkpoint.h"
#include "kv/collection/key_locks.h"
#include "kv/collection/large_values.h"
#include "kv/collection/readers.h"
#include "kv/collection/snapshots.h"
#include "kv/collection/used_records.h"
#include "kv/index/index.h"
#include "kv/log/log.h"
#include "kv/media/lifetimes.h"
#include "kv/recovery/recovery.h"

namespace kv {

struct CollectorCounts {
  std::atomic<uint64_t> victims{0};
  std::atomic<uint64_t> moved_records{0};
  std::atomic<uint64_t> moved_bytes{0};
  std::atomic<uint64_t> read_bytes{0};
  std::atomic<uint64_t> expired_records{0};
  std::atomic<uint64_t> ended_tombstones{0};
  std::atomic<uint64_t> damaged_records{0};
  std::atomic<uint64_t> dropped_records{0};
  std::atomic<uint64_t> dropped_bytes{0};
  std::atomic<uint64_t> kept_records{0};
  std::atomic<uint64_t> checkpoints{0};
  std::atomic<uint64_t> checkpoint_bytes{0};
};

class Collector {
 public:
  Collector() = default;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Parts of the store; all outlive the collector.
  struct Parts {
    storage::Device* device = nullptr;
    const Identity* identity = nullptr;
    Index* index = nullptr;
    Log* log = nullptr;
    Readers* readers = nullptr;
    Readers* changes = nullptr;  // calls that have taken a sequence, until the index knows it
    LargeValues* large_values = nullptr;
    Snapshots* snapshots = nullptr;
    Lifetimes* lifetimes = nullptr;
    KeyLocks* key_locks = nullptr;
    UsedRecords* used = nullptr;  // open if the store is a cache
  };
  // `checkpoint_records`: StoreOptions'. Errors: ENOMEM, EMFILE.
  base::Expected<void> open(const Parts& parts, uint64_t checkpoint_records, const RecoveredStore& recovered);
  void close();

  struct Failure {
    int error = 0;             // an errno value; 0: none
    bool is_of_flush = false;  // a flush has failed: what was written may be lost
  };
  // Empties a victim, or settles emptied ones, or does whatever else is due. `did`: there may be more to do right away.
  Failure step(bool& did);
  // When a store closes, after its log is sealed: takes a checkpoint, if a start would take long without one. REQUIRES: the thread has ended.
  void end();
  // While there is one of these, the collector collects for as long as any victim would gain something. Any thread, also several at a time.
  class AllWanted {
   public:
    explicit AllWanted(Collector& collector) : collector_(collector) { collector_.all_wanted_.fetch_add(1); }
    ~AllWanted() { collector_.all_wanted_.fetch_sub(1); }
    AllWanted(const AllWanted&) = delete;
    AllWanted& operator=(const AllWanted&) = delete;

   private:
    Collector& collector_;
  };
  bool wants_all() const { return all_wanted_.load() != 0; }

  const CollectorCounts& counts() const { return counts_; }
  const Channel& channel() const { return channel_; }

 private:
  // A record of a victim, and where it goes.
  struct Move {
    SummaryEntry from;
    uint64_t old_address = 0;
    uint32_t old_size = 0;     // size_code
    uint64_t read_offset = 0;  // where it is in its piece's memory
    // The record as it is written.
    Extent to;
    uint32_t grains = 0;
    uint64_t expiry = 0;
    RecordKind kind = RecordKind::kValue;
    PiecesOf pieces;            // what an expired head names
    uint64_t new_sequence = 0;  // of a record that a cache keeps
  };
  // Bytes that are contiguous both on the device and in memory.
  struct Run {
    uint64_t offset_bytes = 0;  // on the device
    uint64_t at = 0;            // in memory
    uint64_t bytes = 0;
  };
  // The moves live_[first] to live_[end - 1], whose records are read together.
  struct Piece {
    size_t first = 0, end = 0;
    std::vector<Run> runs;
    std::span<std::byte> memory;
    int error = 0;  // of reading it

    uint64_t bytes() const { return runs.empty() ? 0 : runs.back().at + runs.back().bytes; }
  };
  // A segment that is being emptied.
  struct Victim {
    uint32_t number = 0;
    uint64_t live_grains = 0;  // when that began
    uint64_t to_gain = 0;      // grains that the log has not been told of yet
    SegmentFooter footer = {};
    bool is_left = false;     // nothing of it was moved, since not all that is live in it could be read
    bool is_damaged = false;  // some of it cannot be moved; the rest has been
  };
  // A delay before what could not be read is tried again; each is twice as long as the one before.
  struct Pause {
    uint64_t length_ns = 0, end_ns = 0;

    bool has_begun() const { return length_ns != 0; }
    bool is_over() const;
    void begin();
  };
  // All that is live in a victim, in memory of its own.
  struct Whole {
    Whole() = default;
    ~Whole();
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

    std::vector<Piece> pieces;
    std::span<std::byte> memory;
  };

  // Small requests of others wait behind kDepth Ios of this size at most.
  static constexpr uint64_t kIoBytes = 128 << 10;
  static constexpr size_t kDepth = 8;
  static constexpr size_t kGentleDepth = 2;  // instead of kDepth while no writer waits for its turn
  // What is moved at a time, after which the log is told what has been gained. While one piece is written the next is read.
  static constexpr uint64_t kPieceBytes = kDepth / 2 * kIoBytes;
  static constexpr uint8_t kReadTries = 3;

  // What a victim gains if this much is live in it.
  uint64_t gain_with(uint64_t live_grains) const {
    const uint64_t all = log_->usable_grains(0);
    return all > live_grains ? all - live_grains : 0;
  }

  // Victims, and what in them could not be read (collector.cc).
  int empty(uint32_t number);
  void leave_damaged(uint32_t victim);
  void finish(const Victim& victim, uint64_t moved_bytes);
  static base::Expected<std::span<std::byte>> memory_of(uint64_t bytes);
  bool is_in_vain();
  int release_pieces(const Pieces& pieces);
  int read_candidate(const Location& at, const PieceKey& key, bool& is_piece, bool& is_damaged);
  void retry_left_pieces();
  bool is_given_up(Segment& segment, uint64_t address, int error);
  bool retry_unread();
  static void note_read(Segment& segment, uint64_t first, uint64_t last);
  bool is_kept(uint32_t victim);
  bool has_to_settle() { return to_settle_ > 0 || log_->is_due_to_give_back(); }
  Failure settle();
  // The failure of a flush, if one has failed.
  Failure flush_failure() const {
    return {.error = log_->flush_error(), .is_of_flush = log_->flush_error() != 0};
  }
  uint64_t checkpoint_interval() const;
  bool take_checkpoint();

  // What is live moves (collector_move.cc).
  int move_live(Victim& victim);
  int move_whole(Victim& victim);
  int move_in_pieces(Victim& victim);
  int move_piece(Victim& victim, const Piece& piece, Piece& next);
  bool must_read_first() const {
    return !log_->has_more_than(has_failed_reads_ ? Log::kReserve : Log::kReserve - 1);
  }
  bool drop(uint32_t victim, const SummaryEntry& entry);
  int read_summary(uint32_t victim, SegmentFooter& footer, std::span<const SummaryEntry>& entries);
  void list_live(uint32_t victim, std::span<const SummaryEntry> entries);
  void plan(size_t first, Piece& piece);
  std::span<const std::byte> bytes_of(const Piece& piece, const Move& move) const {
    return piece.memory.subspan(move.read_offset,
                                move.from.grains * uint64_t{identity_->geometry.grain_bytes});
  }
  int read_all(uint32_t victim, Whole& whole);
  int read_singly(const Piece& piece, std::span<const Move> moves);
  int move(uint32_t victim, const SegmentFooter& footer, const Piece& piece, Piece& next);
  bool is_as_listed(uint32_t victim, std::span<const std::byte> bytes, const Move& move,
                    Record& record) const;
  bool check(uint32_t victim, const SegmentFooter& footer, uint64_t oldest, std::span<const std::byte> bytes,
             Move& move, bool& ends);
  void add_write(uint64_t address, uint64_t at, uint64_t bytes);
  int write(const Piece& piece, std::span<Move> moves, Piece& next);
  void install(std::span<const Move> moves);
  void finish_unused(const Move& move);
  int transfer(std::span<const Run> writes, Piece& reads);

  // A cache drops a segment, but keeps the records in it that were used (collector_keep.cc).
  uint32_t drop_oldest();
  void keep_used(uint32_t victim);
  void list_used(uint32_t victim, std::span<const SummaryEntry> entries);
  bool write_anew(uint32_t victim, const Piece& piece);
  void install_anew(const Move& move, bool is_written);

  storage::Device* device_ = nullptr;
  const Identity* identity_ = nullptr;
  Index* index_ = nullptr;
  Log* log_ = nullptr;
  Readers* readers_ = nullptr;
  LargeValues* large_values_ = nullptr;
  Snapshots* snapshots_ = nullptr;
  Lifetimes* lifetimes_ = nullptr;
  Readers* changes_ = nullptr;
  Readers::Place change_place_;
  KeyLocks* key_locks_ = nullptr;
  UsedRecords* used_ = nullptr;
  Checkpointer checkpointer_;
  uint64_t checkpoint_records_ = 0;   // StoreOptions'
  bool takes_checkpoints_ = true;     // not if recovery could not read all: a later start may read the rest
  uint64_t checkpoint_sequence_ = 0;  // the store's sequence when one was last taken, or tried
  Channel channel_;
  std::span<std::byte> summary_;  // memory for the largest
  Piece pieces_[2];
  std::span<std::byte> written_;
  std::vector<Move> live_;
  std::vector<Move> tombstones_;  // of the victim: ended, or moved; released when it is emptied
  std::vector<Run> writes_;
  Pause left_pause_;        // of pieces that could not be released
  Pause unread_pause_;      // of segments that could not be read
  uint32_t to_settle_ = 0;  // emptied segments
  // Since is_in_vain() last summed up.
  uint32_t victims_looked_at_ = 0;
  uint64_t gained_grains_ = 0;
  bool is_in_vain_ = false;
  bool has_failed_reads_ = false;
  uint32_t unreadable_count_ = 0;        // records of the victim that could not be read even one by one
  std::atomic<uint32_t> all_wanted_{0};  // objects AllWanted
  CollectorCounts counts_;
};

}  // namespace kv
