// LineSet: the lines that one thread flushes between two fences, so that none is written back more often than it must be.
//
// A flush promises nothing before the fence that follows it. So of several flushes of a line all but the last may be left out, and the last may wait
// for the fence. A flush that is executed at once costs next to nothing, since it overlaps with what the thread does next; but a store to a line
// that is being written back has to wait. So a line is treated by how it was used before:
//
//   not known, or flushed once in the last epoch that it was flushed in    flushed at once
//   flushed again in this epoch                                            put off until the fence
//   flushed again in that epoch                                            put off from its first flush on
//
// An epoch ends with a fence, or when the list of lines that are put off is full: then all of them are flushed, which is never too early.
//
// Invariants
//  1 a line that was put off stands in the list until clear(). The table only says what to do with the next flush of a line, and may forget any line;
//    but if an entry of this epoch is marked as put off, its line is in the list. So the table is emptied when the numbers of epochs wrap around
//  2 only its thread changes the list: first a line, then the count, and last the table's entry. A signal handler of the thread, and another thread
//    that keeps this one from changing the list (thread.h), find all lines in it except the one that is just being put in
//
// Thread contract: one thread's. Beyond Ribbon, section 2.1, which hands every flush to another thread.
#pragma once
#include <string.h>

#include <atomic>
#include <cstdint>

#include "base/ids.h"
#include "persist/direct.h"

namespace persist {

class LineSet {
 public:
  static constexpr uint32_t kListLines = 128;

  enum class Flush : uint8_t {
    kNow,     // the caller executes the flush
    kPutOff,  // nothing is to be done: the line is in the list
    kPutIn    // the caller puts the line in the list
  };

  // What is to be done with a flush of this line. REQUIRES: `line` is the address of its first byte. Cost: some 1 ns.
  [[gnu::always_inline]] Flush add(uintptr_t line) {
    const uint64_t number = line / base::kLineBytes;
    const Entry now = number << kNumberShift | epoch_bits_;
    Entry& entry = entry_of(number);
    const Entry difference = entry ^ now;
    if (difference == (kPutOff | kAgain)) [[likely]]
      return Flush::kPutOff;
    if (difference >> kNumberShift != 0) {
      entry = now;
      return Flush::kNow;
    }
    if (difference >> kFlagBits == 0) {  // of this epoch
      if (difference == 0) return Flush::kPutIn;
      entry |= kAgain;
      return Flush::kPutOff;
    }
    if ((entry & kAgain) != 0) return Flush::kPutIn;
    entry = now;
    return Flush::kNow;
  }
  bool is_full() const { return count() == kListLines; }
  // REQUIRES: add() has said so, and there is room.
  void put_in(uintptr_t line) {
    const uint64_t number = line / base::kLineBytes;
    const Entry now = number << kNumberShift | epoch_bits_;
    Entry& entry = entry_of(number);
    const uint32_t count = count_.load(std::memory_order_relaxed);
    list_[count].store(line, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_release);  // pairs with the one in visit()
    count_.store(count + 1, std::memory_order_relaxed);
    // Before a handler's compiled code can read the entry, the line is in the list.
    std::atomic_signal_fence(std::memory_order_release);
    entry = entry >> kFlagBits == now >> kFlagBits ? now | kPutOff | kAgain : now | kPutOff;
  }

  // How many lines are put off. A signal handler may ask, too.
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }

  // Calls flush(line) for each line that is put off, and leaves the list as it is. A signal handler of the thread may call it at any time.
  template <class FlushLine>
  void visit(const FlushLine& flush) const {
    const uint32_t count = count_.load(std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_acquire);  // pairs with the one in put_in()
    for (uint32_t i = 0; i < count; ++i) flush(list_[i].load(std::memory_order_relaxed));
  }
  // Empties the list. REQUIRES: all lines in it have been flushed.
  void clear() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    count_.store(0, std::memory_order_relaxed);
  }
  // Begins the next epoch, in which no line has been flushed yet. What is put off stays put off.
  void begin_epoch() {
    const Entry next = (epoch_bits_ + kEpochOne) % (kEpochs * kEpochOne);
    if (next == 0) [[unlikely]]
      memset(table_.entries, 0xff, sizeof table_.entries);  // entries of no line and no epoch
    // A handler's compiled code may read mark and entries in between: no entry may look like one of the new epoch.
    std::atomic_signal_fence(std::memory_order_release);
    epoch_bits_ = next;
    table_.mark = next | kPutOff | kAgain;
  }
  // For compiled code: the lines whose flush needs nothing done. A line that was put in and has not been flushed again is not among them yet.
  const PutOff& put_off() const { return table_; }

 private:
  // A line's number, the epoch that it was last flushed in, and kPutOff and kAgain of that epoch.
  using Entry = uint64_t;
  static constexpr Entry kPutOff = 1, kAgain = 2;
  static constexpr unsigned kFlagBits = 2, kEpochBits = 12, kNumberShift = kFlagBits + kEpochBits;
  static constexpr Entry kEpochOne = 1u << kFlagBits,
                         kEpochs = (1u << kEpochBits) - 1;  // the last is no epoch
  static_assert(kNumberShift == kAbiPersistPutOffShift);
  // The rest has room for the number of any line that a program can have with addresses of 57 bits: no two lines are taken for one.
  static_assert(64 - kNumberShift >= 56 - 6);

  Entry& entry_of(uint64_t number) { return table_.entries[PutOff::index_of(number)]; }

  Entry epoch_bits_ = kEpochOne;  // not 0: the table's zeros are of no epoch
  std::atomic<uint32_t> count_{0};
  PutOff table_ = {.mark = kEpochOne | kPutOff | kAgain};
  std::atomic<uintptr_t> list_[kListLines];
};

}  // namespace persist
