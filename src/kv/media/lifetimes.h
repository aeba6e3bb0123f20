// Lifetimes: which records of a store are not there any more although nobody has removed them: those that have expired, by the store's
// clock, and those that were written before its floor.
//
//  1 one rule for all: lookups, changes, snapshots, and the collector, which makes tombstones of such records
//  2 the floor only rises, and nobody keeps it: who opens the store again says again where it was
//  3 a piece lives as long as the large value that it is of, whatever its own sequence is: none is asked about. In a cache, which drops pieces as
//    it drops all else, the value lives as long as they do: all of them have one sequence
//  4 whose floor is the sequence of what is still to be written expects it first, and raises it afterwards. Who gives a record that is there
//    another sequence, as a cache does, takes that, and then asks whether it may: it may not while a floor is expected, and what it gave
//    before is lower than that floor. So nothing that a floor is to end is above it
#pragma once
#include <algorithm>
#include <atomic>

#include "kv/media/clock.h"
#include "kv/media/format.h"

namespace kv {

class Lifetimes {
 public:
  // The clock outlives it.
  explicit Lifetimes(const Clock& clock) : clock_(clock) {}

  // REQUIRES: it is of a value or a head.
  bool has_ended(const Record& record) const {
    const RecordHeader& header = record.header;
    // Pairs with the release in raise_floor(): what has been forgotten once is not found again.
    if (header.sequence() < floor_.load(std::memory_order_acquire)) return true;
    if (header.kind() == RecordKind::kHead && is_of_dropped_pieces(record)) return true;
    return header.expiry() != 0 && header.expiry() <= clock_.now_ms();
  }
  // What has a lower sequence has ended. A lower floor than there is changes nothing.
  void raise_floor(uint64_t sequence) {
    uint64_t floor = floor_.load(std::memory_order_relaxed);
    while (floor < sequence && !floor_.compare_exchange_weak(floor, sequence, std::memory_order_release,
                                                             std::memory_order_relaxed)) {
    }
  }
  // A floor that is to come; it may be one of several.
  void expect_floor() { expected_floors_.fetch_add(1, std::memory_order_seq_cst); }
  // It has been raised, or does not come.
  void end_expected_floor() { expected_floors_.fetch_sub(1, std::memory_order_release); }
  // Of who has another sequence for the record: may it have that? An atomic addition is a full barrier on x86-64, that to the sequence as well
  // as that in expect_floor().
  bool may_be_renewed(const Record& record) const {
    // Pairs with the release in end_expected_floor(): a floor that was raised is seen.
    return expected_floors_.load(std::memory_order_seq_cst) == 0 && !has_ended(record);
  }
  // Of a cache: as raise_floor(), and of a value in pieces they count: it has ended if they have a lower one. By one thread.
  void drop_below(uint64_t sequence) {
    const uint64_t before = pieces_floor_.load(std::memory_order_relaxed);
    pieces_floor_.store(std::max(before, sequence), std::memory_order_release);
    raise_floor(sequence);
  }
  // 0: nothing has been dropped.
  uint64_t dropped_below() const { return pieces_floor_.load(std::memory_order_acquire); }
  bool has_dropped(const PiecesOf& pieces) const { return pieces.sequence < dropped_below(); }
  uint64_t floor() const { return floor_.load(std::memory_order_acquire); }
  const Clock& clock() const { return clock_; }

 private:
  bool is_of_dropped_pieces(const Record& record) const {
    PiecesOf pieces;
    if (record.value.size() != sizeof pieces) return false;
    memcpy(&pieces, record.value.data(), sizeof pieces);
    return has_dropped(pieces);
  }

  const Clock& clock_;
  std::atomic<uint64_t> floor_{0};
  std::atomic<uint64_t> pieces_floor_{0};
  std::atomic<uint32_t> expected_floors_{0};
};

}  // namespace kv
