// Lifetimes: which records of a store have ended although nobody has removed them: those that have expired by the store's clock, and those that
// were written before its floor.
//
//  1 The same rule holds for lookups, changes, snapshots, and the collector, which makes tombstones of such records
//  2 The floor only rises, and is not stored: whoever opens the store again has to raise it again
//  3 A piece lives as long as its large value, whatever its own sequence: nobody asks about pieces. But a cache drops pieces as it drops everything
//    else, and there the value lives only as long as its pieces, which all have the same sequence
//  4 Whoever is going to raise the floor to the sequence of something still to be written calls expect_floor() before that is written. Whoever gives an
//    existing record a new sequence, as a cache does, takes the sequence first and then asks may_be_renewed(), which is false while a floor is
//    expected. A sequence taken before the floor was expected is lower than the floor. So no record that a floor ends gets a sequence above it
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

  // REQUIRES: the record is a value or a head.
  bool has_ended(const Record& record) const {
    const RecordHeader& header = record.header;
    // Pairs with the release in raise_floor(): what was not found once is not found later.
    if (header.sequence() < floor_.load(std::memory_order_acquire)) return true;
    if (header.kind() == RecordKind::kHead && is_of_dropped_pieces(record)) return true;
    return header.expiry() != 0 && header.expiry() <= clock_.now_ms();
  }
  // Records of lower sequences have ended. A lower floor than the present one changes nothing.
  void raise_floor(uint64_t sequence) {
    uint64_t floor = floor_.load(std::memory_order_relaxed);
    while (floor < sequence && !floor_.compare_exchange_weak(floor, sequence, std::memory_order_release,
                                                             std::memory_order_relaxed)) {
    }
  }
  // A floor is to come; several may be expected at a time.
  void expect_floor() { expected_floors_.fetch_add(1, std::memory_order_seq_cst); }
  // The floor has been raised, or will not come.
  void end_expected_floor() { expected_floors_.fetch_sub(1, std::memory_order_release); }
  // May the record get the sequence that the caller has just taken for it? On x86-64 atomic additions are full barriers: both the one that took the
  // sequence and the one in expect_floor().
  bool may_be_renewed(const Record& record) const {
    // Pairs with the release in end_expected_floor(): has_ended() sees the floor that was raised.
    return expected_floors_.load(std::memory_order_seq_cst) == 0 && !has_ended(record);
  }
  // For a cache: raises the floor, and ends large values whose pieces have a lower sequence, too. One thread at a time.
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
