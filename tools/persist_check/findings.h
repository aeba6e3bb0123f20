// What a history shows without a recovery: flushes and fences that are missing, or not needed.
#pragma once
#include <cstdint>
#include <vector>

#include "history.h"

namespace persist_check {

enum class FindingKind {
  kMissingFlush,  // a line was stored to, and not flushed before its mapping ended. The site is the store's
  kMissingFence,  // a line was flushed, and the thread has not fenced. The site is the flush's
  kRedundantFlush,  // of lines that were not stored to since their last flush, which was by the same thread, or is fenced
  kFlushOfNothing,  // of lines that nobody has ever stored to
  kRedundantFence,  // of a thread that has flushed nothing since its last fence
};
// With the first two, the program may lose what it believes to be durable. The others only take time.
constexpr bool is_bug(FindingKind kind) { return kind <= FindingKind::kMissingFence; }

struct Finding {
  FindingKind kind;
  uint64_t site = 0;
  bool is_found = false;  // kMissingFlush: the store was found, not reported; the site is where it was found
  uint64_t count = 0;     // how often this was found; for the first two, in how many lines
  size_t event = 0;       // where it was found first
  LineId line = {};       // the line there; meaningless for fences
};

// Each kind and site once, in the order in which they were first found. What a program could still have done when it was killed does not count as missing.
std::vector<Finding> find_static(const History& history);

}  // namespace persist_check
