// What a thread of lines_load.cc does to its lines. One source, compiled twice: as programs are compiled, and by spillcc -fspill-persist.
#pragma once
#include <cstdint>
#include <vector>

namespace lines {

inline constexpr uint64_t kLineBytes = 64;
inline constexpr uint64_t kLines = 1024;  // of a thread: 64 KiB, which is in its second-level cache
inline constexpr uint64_t kBatchFlushes = 1024;

enum class Instruction { kClwb, kClflushopt, kClflush };
enum class State { kDirty, kClean, kAbsent };

struct Work {
  char* memory;
  Instruction instruction;
  State state;                  // of each line, before its flush
  uint64_t fence;               // after so many flushes; 0: none
  std::vector<uint32_t> order;  // offsets of lines, of an epoch; empty: kLines, each once
  uint64_t value = 0;

  uint64_t epochs() const { return order.size() > kBatchFlushes ? 1 : kBatchFlushes / order.size(); }
  uint64_t flushes() const { return order.empty() ? kBatchFlushes : order.size() * epochs(); }
  // Of a batch, and the one after it.
  uint64_t fences() const { return 1 + (!order.empty() ? epochs() : fence == 0 ? 0 : kBatchFlushes / fence); }
};

// A batch. Returns its ticks of the time stamp counter.
uint64_t run_native(Work& work);
uint64_t run_compiled(Work& work);

}  // namespace lines
