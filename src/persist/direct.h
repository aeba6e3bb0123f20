// Direct: what compiled code looks at before it calls the runtime, so that most of its flushes and fences are no call (spillway/abi.inc, compiler/Direct.h).
//
//   a flush of a line      in the range of its instruction: compiled code executes the instruction
//                          among those that are put off:    it does nothing
//   a fence                pending is 0, fences above 0:    it executes sfence, and then counts down
//   else                   it calls
//
// A thread's own (thread.h says when it opens what). Others close it after the domains have changed: they have all threads pass a barrier, close it, and have them pass another. Who opens it looks
// at the domains' version afterwards, and closes it again if that is new: one of both comes later and sees the other.
//
// What is flushed and fenced so is not counted.
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
// None: no entry has that mark.
inline constexpr PutOff kNonePutOff;

struct alignas(base::kLineBytes) Direct {
  std::atomic<uint64_t> ranges[3] = {};  // by sys::LineFlush; range_of(), or 0
  std::atomic<const PutOff*> put_off{&kNonePutOff};
  uint32_t pending = 0;  // Thread::pending()
  std::atomic<int32_t> fences{0};

  // Of another thread, too.
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
};
static_assert(offsetof(Direct, ranges) == kAbiPersistThreadRanges &&
              offsetof(Direct, put_off) == kAbiPersistThreadPutOff &&
              offsetof(Direct, pending) == kAbiPersistThreadPending &&
              offsetof(Direct, fences) == kAbiPersistThreadFences);

}  // namespace persist
