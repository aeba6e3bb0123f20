// LineSet: the lines that one thread flushes between two fences, so that none is written back more often than it must be.
//
// A flush promises nothing before the fence that follows it, so of several flushes of a line all but the last may be left out, and that may
// wait for the fence. But a flush that is executed at once costs next to nothing, since it goes on beside what the thread does next; and
// a store to a line that is being written back waits. So each line is treated as it was used before:
//
//   not known, or flushed once in the last epoch that it was flushed in    flushed at once
//   flushed again in this epoch                                            put off until the fence
//   flushed again in that epoch                                            put off from its first flush on
//
// An epoch ends with a fence, or when the list of what is put off is full: then all of it is flushed, which is never too early.
//
// Invariants
//  1 whatever was put off stands in the list until clear(). The table only says what to do with the next flush of a line, and may forget any; but an
//    entry of this epoch that is marked as put off is in the list: the table is emptied when epochs begin anew
//  2 the list is changed by its thread alone, a line first, the count after it, and the entry last: a signal handler of the thread finds all in it, but for the line
//    that is being put in. So does another thread that keeps this one from changing it (thread.h)
//
// Thread contract: one thread's. Beyond Ribbon (PACT'20, 2.1), which hands every flush to another thread.
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
    kNow,     // the caller executes it
    kPutOff,  // nothing: it is in the list
    kPutIn    // the caller puts it in the list
  };

  // What becomes of a flush of this line. REQUIRES: it is the address of its first byte. Cost: some 1 ns.
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
    std::atomic_signal_fence(
        std::memory_order_release);  // what compiled code of a handler reads is true by then
    entry = entry >> kFlagBits == now >> kFlagBits ? now | kPutOff | kAgain : now | kPutOff;
  }

  // How many lines are put off. Another of the thread's functions, or a signal handler, may ask.
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }

  // flush(line) for each line that is put off. The list stays as it is. A signal handler of the thread may call it at any time.
  template <class FlushLine>
  void visit(const FlushLine& flush) const {
    const uint32_t count = count_.load(std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_acquire);  // pairs with the one in put_in()
    for (uint32_t i = 0; i < count; ++i) flush(list_[i].load(std::memory_order_relaxed));
  }
  // Nothing is put off any more. REQUIRES: all that was has been flushed.
  void clear() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    count_.store(0, std::memory_order_relaxed);
  }
  // What is flushed from now on is flushed for the first time. What is put off stays so.
  void begin_epoch() {
    const Entry next = (epoch_bits_ + kEpochOne) % (kEpochs * kEpochOne);
    if (next == 0) [[unlikely]]
      memset(table_.entries, 0xff, sizeof table_.entries);  // of no line, and of no epoch
    // A handler's compiled code may read both meanwhile: no entry is of the new epoch.
    std::atomic_signal_fence(std::memory_order_release);
    epoch_bits_ = next;
    table_.mark = next | kPutOff | kAgain;
  }
  // For compiled code: lines for which add() has nothing to do. Those that were put in and not flushed again are not among them yet.
  const PutOff& put_off() const { return table_; }

 private:
  // A line's number, the epoch that it was last flushed in, and kPutOff and kAgain of that epoch.
  using Entry = uint64_t;
  static constexpr Entry kPutOff = 1, kAgain = 2;
  static constexpr unsigned kFlagBits = 2, kEpochBits = 12, kNumberShift = kFlagBits + kEpochBits;
  static constexpr Entry kEpochOne = 1u << kFlagBits,
                         kEpochs = (1u << kEpochBits) - 1;  // the last is no epoch
  static_assert(kNumberShift == kAbiPersistPutOffShift);
  // All lines that programs can have with 57-bit addresses have room beside that: no two are taken for one.
  static_assert(64 - kNumberShift >= 56 - 6);

  Entry& entry_of(uint64_t number) { return table_.entries[PutOff::index_of(number)]; }

  Entry epoch_bits_ = kEpochOne;  // what is all zeros is of none
  std::atomic<uint32_t> count_{0};
  PutOff table_ = {.mark = kEpochOne | kPutOff | kAgain};
  std::atomic<uintptr_t> list_[kListLines];
};

}  // namespace persist
