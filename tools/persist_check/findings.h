// What can be said of a history without a recovery: flushes and fences that are missing, and those that nobody needs.
#pragma once
#include <cstdint>
#include <vector>

#include "history.h"

namespace persist_check {

enum class FindingKind {
  kMissingFlush,    // stored, and not flushed before the mapping's end: site of the store
  kMissingFence,    // flushed, and the thread did not fence: site of the flush
  kRedundantFlush,  // of lines that were not stored to since the last flush, the thread's own or one that was fenced: site of the flush
  kFlushOfNothing,  // of lines that nobody ever stored to
  kRedundantFence,  // the thread has flushed nothing since its last: site of the fence
};
// Of the first two: the program may lose what it takes to be durable. The others only take time.
constexpr bool is_bug(FindingKind kind) { return kind <= FindingKind::kMissingFence; }

struct Finding {
  FindingKind kind;
  uint64_t site = 0;
  bool is_found = false;  // kMissingFlush: nobody told of the store; the site is where it was seen
  uint64_t count = 0;     // how often; of lines, for the first two
  size_t event = 0;       // the first time
  LineId line = {};       // the same; of no meaning for fences
};

// Each kind and site once, in the order of the first times. Of a program that was killed what it may still have had in mind is not missing.
std::vector<Finding> find_static(const History& history);

}  // namespace persist_check
