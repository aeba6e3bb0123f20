// Snapshots: the open snapshots of a store, and what changes of keys do for them. (Reading one: snapshot.h)
//
// A snapshot shows what was in the index at one moment, although changes go on. It scans the index a region at a time. Whoever changes a key that
// the scan has not reached hands over where the old record is, and that record's segment is kept from being given back.
//
//  1 Opening a snapshot first raises `count_`, and then takes a sequence. A change with a higher sequence therefore sees the snapshot and is not
//    part of it. A change with a lower one may reach the index too late: then it says so (`late`) and is not part of it either. All other records
//    with a lower sequence are part of it, and so are those that the collector of a cache has given a new sequence (`renewed`)
//  2 A change reports itself to snapshots in the index's hook: under the lock of the key's region, before anybody sees the change. A scan moves the
//    snapshot's cursor in its own hook. So a change knows for certain whether the scan has passed its key (index.h, invariant 6). Lookups
//    wait while the region is locked, so nobody can see a change from after the snapshot's moment and then miss one from before it
//  3 Records that the scan has found and that have not been read are `pending`. The collector reports where it moves them, so that these addresses
//    stay those of the index. Whoever takes one of them to read it has been counted as a reader (readers.h) since before
//  4 When a key changes that the cursor has not passed, or whose record is pending, the old record is `kept`, and so is its segment: Segment::keeps
//    is raised before the index changes. The collector looks at `keeps` after it has seen, in the index or by its own changes, that nothing in
//    a segment is live: so it sees that something is kept, and leaves the segment alone
//  5 Whoever lowers `keeps` has been counted as a reader since before: the collector waits for it before the segment is written to
//  6 If a large value is kept, so are its pieces: the snapshot is a reader of them (large_values.h) from before the head leaves the index. Pieces of
//    values that are being given out are `held`
//  7 Writers come first: when one would otherwise be refused room, the collector cancels snapshots, the oldest first. A cancelled one keeps
//    nothing
//
// Lock order: a region of the index, lock_, that of LargeValues. Thread contract: any thread.
#pragma once
#include <atomic>
#include <deque>
#include <vector>

#include "kv/collection/large_values.h"
#include "kv/index/index.h"
#include "kv/log/log.h"

namespace kv {

class Snapshots {
 public:
  static constexpr size_t kMax = 8;
  // A snapshot that would keep more records, in 16 bytes each, is cancelled.
  static constexpr size_t kMaxKept = 1 << 20;
  static constexpr size_t kMaxRenewed = 2 * kMaxKept;  // likewise of renewed versions, in 8 bytes each

  struct Large {
    Location location;
    Pieces pieces;
  };
  // Records whose segments a snapshot keeps, and pieces that it is a reader of.
  struct Kept {
    std::deque<Location> values;
    std::deque<Large> large;
    std::vector<Pieces> held;
    bool empty() const { return values.empty() && large.empty() && held.empty(); }
  };
  // An open snapshot. Guarded by the lock.
  struct Member {
    uint64_t sequence = 0;
    std::vector<uint64_t> late;
    std::vector<uint64_t> renewed;  // ascending
    // The scan's last step asked for this position, and got a region's positions from `begin` to before `end`, which is the cursor. If tables were
    // merged, these may include positions below `asked`: what is there has been seen before.
    uint64_t asked = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    std::vector<Location> pending;  // of that region
    std::vector<Location> reading;  // taken from `pending`; not `found`: the key has been changed since
    Kept kept;
    bool is_cancelled = false;
    Member* next = nullptr;  // a younger one

    // Is a record with this version part of it?
    bool has(uint64_t version) const;
  };

  void open(Log& log, LargeValues& large_values, const Geometry& geometry) {
    log_ = &log;
    large_values_ = &large_values;
    geometry_ = &geometry;
  }

  // Opens a snapshot, whose moment is within the call. False: kMax are open.
  bool add(Member& member);
  // Closes it, and gives back what it keeps.
  void remove(Member& member);

  // --- for hooks of the index. Cost while no snapshot is open: a load

  // A record with this version takes the place of `old`, if that is found, whose version is `old_version`; 0: not known. `head`: what the old one
  // names if it is the head of a large value, else null.
  void changed(const KeyHash& hash, const Location& old, uint64_t old_version, const PiecesOf* head,
               uint64_t version) {
    // Pairs with the addition in add(). The load cannot come too early: the region's lock was taken by a compare-and-swap, which is a full barrier
    // on x86-64.
    if (count_.load(std::memory_order_seq_cst) != 0) hand_over(hash, old, old_version, head, version);
  }
  // The collector moves the record at this address to another place, or takes it out of the index (not `found`).
  void moved(const KeyHash& hash, uint64_t address, const Location& to) {
    if (count_.load(std::memory_order_seq_cst) != 0) follow(hash, address, to);
  }
  void removed(const KeyHash& hash, uint64_t address) { moved(hash, address, {}); }
  // The collector of a cache is about to move a record and give it a new version. REQUIRES: a higher one each time.
  void renewed(const KeyHash& hash, uint64_t old_version, uint64_t version) {
    if (count_.load(std::memory_order_seq_cst) != 0) note_renewed(hash, old_version, version);
  }

  // Cancels the oldest snapshot that keeps room from writers who wait for this reason. False: there is none.
  bool cancel_oldest(Log::Room why);

  // --- for the reader of a snapshot, under the lock. What it takes out of Kept it has to give back itself

  sys::Mutex& lock() { return lock_; }
  void give_back(const Location& kept) {
    // Pairs with the acquire in Collector::is_kept(). The collector waits for readers afterwards.
    log_->segment(geometry_->segment_of(kept.address)).keeps.fetch_sub(1, std::memory_order_release);
  }
  void give_back(Kept& kept);
  // Ends a hold(). Does nothing if the pieces are no longer held, since the snapshot has been cancelled. REQUIRES: the lock.
  void let_go(Member& member, const Pieces& pieces);
  void hold(Member& member, const Pieces& pieces);

 private:
  void hand_over(const KeyHash& hash, const Location& old, uint64_t old_version, const PiecesOf* head,
                 uint64_t version);
  void follow(const KeyHash& hash, uint64_t address, const Location& to);
  void note_renewed(const KeyHash& hash, uint64_t old_version, uint64_t version);
  void keep(Member& member, const Location& location, const Pieces* pieces);
  bool holds_up(const Member& member, Log::Room why);

  Log* log_ = nullptr;
  LargeValues* large_values_ = nullptr;
  const Geometry* geometry_ = nullptr;
  std::atomic<uint32_t> count_{0};  // changes under the lock
  sys::Mutex lock_;
  Member* oldest_ = nullptr;
};

}  // namespace kv
