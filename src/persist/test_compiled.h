// For tests: what code that spillcc compiled does before it calls, or instead (compiler/persist/Direct.h). The instructions themselves are left out:
// with real memory nobody can see that they are missing.
#pragma once
#include "persist/thread.h"

namespace persist {

// What a program that asks the CPU uses. (Asking costs a virtual machine some microseconds.)
inline const sys::LineFlush kBestFlush = sys::best_line_flush();

enum class By { kCall, kInstruction, kNothing };

// Who flushes a line that the program flushes with this instruction.
inline By flush_compiled(Thread& thread, uintptr_t address, sys::LineFlush instruction = kBestFlush) {
  const Direct& direct = thread.direct();
  const uint64_t range = direct.ranges[static_cast<size_t>(instruction)].load(std::memory_order_relaxed);
  const uint64_t count = range % (uint64_t{1} << kAbiPersistRangeShift);
  if (address / base::kOsPageBytes - (range >> kAbiPersistRangeShift) < count) return By::kInstruction;
  if (instruction == sys::LineFlush::kClflush) {
    thread.flush_ordered(address);
    return By::kCall;
  }
  const PutOff& put_off = *direct.put_off.load(std::memory_order_relaxed);
  const uint64_t number = address / base::kLineBytes;
  const uint64_t wanted = number << kAbiPersistPutOffShift | put_off.mark;
  if (put_off.entries[PutOff::index_of(number)] == wanted) return By::kNothing;
  thread.flush(address);
  return By::kCall;
}

inline base::Expected<void> fence_compiled(Thread& thread) {
  Direct& direct = thread.direct();
  const int32_t left = direct.fences.load(std::memory_order_relaxed);
  if (direct.pending != 0 || left <= 0) return thread.fence();
  direct.fences.store(left - 1, std::memory_order_relaxed);
  return {};
}

}  // namespace persist
