// Direct: what compiled code looks at before it calls the runtime, so that most of its flushes and fences are no call (spillway/abi.inc, compiler/persist/Direct.h).
//
//   a flush of a line      in the range of its instruction: compiled code executes the instruction
//                          among those that are put off:    it does nothing
//   a fence                pending is 0, fences above 0:    it executes sfence, and then counts down
//   else                   it calls
//
// A thread's own (thread.h says when it opens what). Others close it after the domains have changed, and so do handlers of the thread's signals:
//  1 who changes the domains has all threads pass a barrier, then closes it for each, and has them pass another: what was stored before a look at what was open is stored
//  2 who opens it writes tickets, which open nothing, looks at the domains' version, and puts what it opens in the place of the tickets, unless they are gone: either the look
//    comes later than the change, or the tickets are closed
//
// Lines that are flushed so are not counted; fences are, later.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"

namespace persist {

#define SPILLWAY_NUMBER(name, value, doc) inline constexpr uint64_t kAbi##name = value;
#include "spillway/abi.inc"

// Lines whose flush waits for the fence: how an entry of this epoch ends that says so, and entries by lines' numbers. (line_set.h)
struct PutOff {
  static constexpr size_t kEntries = kAbiPersistPutOffEntries;

  uint64_t mark = 3;
  uint64_t entries[kEntries] = {};

  static constexpr size_t index_of(uint64_t number) { return (number ^ number / kEntries) % kEntries; }
};
// None, and a ticket: no entry has that mark.
inline constexpr PutOff kNonePutOff, kPutOffTicket;

struct alignas(base::kLineBytes) Direct {
  std::atomic<uint64_t> ranges[3] = {};  // by sys::LineFlush; range_of(), or 0
  std::atomic<const PutOff*> put_off{&kNonePutOff};
  uint32_t pending = 0;  // Thread::pending()
  std::atomic<int32_t> fences{0};

  static constexpr uint64_t kRangeTicket = uint64_t{1} << kAbiPersistRangeShift;  // of no pages

  // Opens one of these, if `looks` says that the domains are still those. REQUIRES: it is not open. A ticket that is left opens nothing.
  template <class Look>
  void open_range(size_t instruction, uint64_t range, const Look& looks) {
    open(ranges[instruction], kRangeTicket, range, looks);
  }
  template <class Look>
  void open_put_off(const PutOff& table, const Look& looks) {
    open<const PutOff*>(put_off, &kPutOffTicket, &table, looks);
  }
  // Of another thread, or a handler, too.
  void close() {
    for (auto& range : ranges) range.store(0, std::memory_order_relaxed);
    put_off.store(&kNonePutOff, std::memory_order_relaxed);
  }
  // The OS pages that lie in [begin, begin + bytes) as a whole; 0: none, or they are too many, or too far up.
  static uint64_t range_of(uintptr_t begin, uintptr_t bytes) {
    const uint64_t first = (begin + base::kOsPageBytes - 1) / base::kOsPageBytes,
                   end = (begin + bytes) / base::kOsPageBytes;
    const bool fits = (end - first) >> kAbiPersistRangeShift == 0 && end >> (64 - kAbiPersistRangeShift) == 0;
    if (end <= first || !fits) return 0;
    return first << kAbiPersistRangeShift | (end - first);
  }

 private:
  template <class Value, class Look>
  static void open(std::atomic<Value>& place, Value ticket, Value value, const Look& looks) {
    place.store(ticket, std::memory_order_relaxed);
    if (looks()) place.compare_exchange_strong(ticket, value, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Direct) >= 8 * kAbiPersistThreadWords &&
              offsetof(Direct, fences) + 4 <= 8 * kAbiPersistThreadWords);
static_assert(offsetof(Direct, ranges) == kAbiPersistThreadRanges &&
              offsetof(Direct, put_off) == kAbiPersistThreadPutOff &&
              offsetof(Direct, pending) == kAbiPersistThreadPending &&
              offsetof(Direct, fences) == kAbiPersistThreadFences);

}  // namespace persist
