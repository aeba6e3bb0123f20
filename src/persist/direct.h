// Direct: what compiled code looks at before it calls the runtime, so that most of its flushes and fences need no call (spillway/abi.inc,
// compiler/persist/Direct.h).
//
//   flush of a line that is   in the range of the flush's instruction:   compiled code executes the instruction
//                             in the table of lines that are put off:    it does nothing
//   fence while               pending is 0, and fences above 0:          it executes sfence, and counts down
//   anything else                                                        it calls
//
// Each thread has one, and opens what its state allows (thread.h). Threads that change the domains close it, and so do the thread's own signal handlers:
//  1 whoever changes the domains has all threads pass a barrier, then closes every thread's Direct, and has them pass another barrier. After that,
//    all that a thread stored before it saw something open is visible
//  2 whoever opens something first writes a ticket, which opens nothing, then reads the domains' version, and replaces the ticket, unless it is gone.
//    So either it sees the change of the domains, or whoever made that change has removed the ticket
//
// Lines that compiled code flushes by itself are not counted; its fences are counted later.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"

namespace persist {

#define SPILLWAY_NUMBER(name, value, doc) inline constexpr uint64_t kAbi##name = value;
#include "spillway/abi.inc"

// The table of lines whose flush waits for the fence: the low bits that mark such an entry in this epoch, and the entries, by line number. (line_set.h)
struct PutOff {
  static constexpr size_t kEntries = kAbiPersistPutOffEntries;

  uint64_t mark = 3;
  uint64_t entries[kEntries] = {};

  static constexpr size_t index_of(uint64_t number) { return (number ^ number / kEntries) % kEntries; }
};
// An empty table, and a ticket: no entry has their mark.
inline constexpr PutOff kNonePutOff, kPutOffTicket;

struct alignas(base::kLineBytes) Direct {
  std::atomic<uint64_t> ranges[3] = {};  // by sys::LineFlush; range_of(), or 0
  std::atomic<const PutOff*> put_off{&kNonePutOff};
  uint32_t pending = 0;  // Thread::pending()
  std::atomic<int32_t> fences{0};

  static constexpr uint64_t kRangeTicket = uint64_t{1} << kAbiPersistRangeShift;  // of no pages

  // Opens a range, or the table, if looks() says that the domains have not changed. If they have, a ticket stays, which opens nothing. REQUIRES: not open.
  template <class Look>
  void open_range(size_t instruction, uint64_t range, const Look& looks) {
    open(ranges[instruction], kRangeTicket, range, looks);
  }
  template <class Look>
  void open_put_off(const PutOff& table, const Look& looks) {
    open<const PutOff*>(put_off, &kPutOffTicket, &table, looks);
  }
  // Any thread, and signal handlers.
  void close() {
    for (auto& range : ranges) range.store(0, std::memory_order_relaxed);
    put_off.store(&kNonePutOff, std::memory_order_relaxed);
  }
  // The range of whole OS pages in [begin, begin + bytes); 0: there are none, or too many, or their addresses are too high.
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
