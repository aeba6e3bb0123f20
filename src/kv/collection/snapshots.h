// Snapshots: those of a store that are open, and what changes of keys do for them. (Reading them: snapshot.h)
//
// A snapshot holds what was in the index at one moment, although changes go on. It scans the index, a region at a time; who changes a
// key that the scan has not come to hands it the old record's place, and keeps the segment from being collected.
//
//  1 whoever opens one has `count_` say so, and takes a sequence afterwards. A change with a higher one therefore finds the snapshot: it is
//    not part of it. One with a lower sequence may also come to the index too late: then it says so (`late`). All else that a record can be,
//    of a lower sequence and not late, is part of it; and so is what the collector of a cache has written anew of it (`renewed`)
//  2 a change says what it does in the index's hook: under the lock of the key's region, before anybody sees the change. A scan moves the
//    snapshot's cursor in its hook. So whoever changes a key knows for good whether the scan has passed it (index.h, invariant 6).
//    Lookups wait for who holds a region's lock: nobody has seen a change after the moment, and then misses one that was before it
//  3 what the scan has found and has not been read is `pending`: it is where the index says, as the collector tells of what it moves.
//    It is taken from there by who is counted as a reader (readers.h) since before that
//  4 the old record of a key that the cursor has not passed, or that is pending, is `kept`, as is its segment: Segment::keeps is raised
//    before the index changes. The collector looks at keeps after it has found in the index, or by its own changes of it, that
//    nothing in a segment is live; so it sees what was kept of that. It lets a segment that is kept alone
//  5 keeps are lowered by a reader that has been counted since before that: the collector waits for it before the segment is written over
//  6 of a large value that is kept the pieces are kept too: the snapshot is a reader of them (large_values.h) from before the head leaves the
//    index. Those of what is being given out are `held`
//  7 room for writers goes before snapshots: the collector cancels them, the oldest first, when a writer would be refused otherwise. A cancelled
//    one keeps nothing
//
// Locks: a region's of the index, then lock_, then that of LargeValues. Any thread.
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
  static constexpr size_t kMost = 8;
  // Locations that one keeps, in 16 bytes each; one that would keep more is cancelled.
  static constexpr size_t kKeptMost = 1 << 20;
  static constexpr size_t kRenewedMost = 2 * kKeptMost;  // the same of versions, in 8 bytes

  struct Large {
    Location location;
    Pieces pieces;
  };
  // What a snapshot keeps from being written over.
  struct Kept {
    std::deque<Location> values;
    std::deque<Large> large;
    std::vector<Pieces> held;
    bool empty() const { return values.empty() && large.empty() && held.empty(); }
  };
  // A snapshot that is open. Under the lock.
  struct Member {
    uint64_t sequence = 0;
    std::vector<uint64_t> late;
    std::vector<uint64_t> renewed;  // in their order
    // The scan's last step began at this position, which may be within the region; and what the region has.
    uint64_t asked = 0;
    uint64_t begin = 0;
    uint64_t end = 0;               // the cursor
    std::vector<Location> pending;  // of that region
    std::vector<Location> reading;  // taken from there; not `found`: it has been changed since
    Kept kept;
    bool is_cancelled = false;
    Member* next = nullptr;  // a younger one

    bool has(uint64_t version) const;
  };

  void open(Log& log, LargeValues& large_values, const Geometry& geometry) {
    log_ = &log;
    large_values_ = &large_values;
    geometry_ = &geometry;
  }

  // False: there are kMost. The snapshot's moment is within the call.
  bool add(Member& member);
  // It keeps nothing any more.
  void remove(Member& member);

  // Of hooks of the index. Cost while no snapshot is open: a load.
  //
  // A record with this version replaces what was there, if that is found: of the version `old_version`, 0 where it is not known; `head`
  // is of a large value, else null.
  void changed(const KeyHash& hash, const Location& old, uint64_t old_version, const PiecesOf* head,
               uint64_t version) {
    // Pairs with the store in add(). That it is not seen too early: the region's lock was taken by an atomic exchange, which is a full barrier
    // on x86-64.
    if (count_.load(std::memory_order_seq_cst) != 0) hand_over(hash, old, old_version, head, version);
  }
  // The collector has moved a record there, or has taken it out of the index.
  void moved(const KeyHash& hash, uint64_t address, const Location& to) {
    if (count_.load(std::memory_order_seq_cst) != 0) follow(hash, address, to);
  }
  void removed(const KeyHash& hash, uint64_t address) { moved(hash, address, {}); }
  // The record that it is about to move has another version there. REQUIRES: a higher one each time.
  void renewed(const KeyHash& hash, uint64_t old_version, uint64_t version) {
    if (count_.load(std::memory_order_seq_cst) != 0) note_renewed(hash, old_version, version);
  }

  // The oldest one that holds up who is refused room for this reason is cancelled. False: there is none.
  bool cancel_oldest(Log::Room why);

  // Of who reads a snapshot, under the lock. What it has taken out of Kept is its own to give back.
  sys::Mutex& lock() { return lock_; }
  void give_back(const Location& kept) {
    // Pairs with the acquire of the collector, which waits for readers afterwards.
    log_->segment(geometry_->segment_of(kept.address)).keeps.fetch_sub(1, std::memory_order_release);
  }
  void give_back(Kept& kept);
  // REQUIRES: the lock. Of nothing that is held: nothing.
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
