// Trace: the pages that a program asked for, in order; numbered from 0 as they appear, so that a simulator keeps what it knows of each
// in arrays.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "base/mix.h"

namespace hitrate {

struct Trace {
  std::vector<uint32_t> accesses;  // numbers of pages
  uint32_t page_count = 0;         // how many different ones
};

// Makes a trace of pages that have any 64-bit ids.
class TraceBuilder {
 public:
  // Accesses behind the first `most` are dropped; 0: none are.
  explicit TraceBuilder(uint64_t most = 0) : most_(most == 0 ? kMostAccesses : most) {}

  bool is_empty() const { return trace_.accesses.empty(); }
  bool is_full() const { return trace_.accesses.size() >= most_; }
  void add(uint64_t id) {
    if (is_full()) return;
    if (2 * (trace_.page_count + uint64_t{1}) > cells_.size()) grow();
    uint64_t cell = base::mix(id) & (cells_.size() - 1);
    while (cells_[cell] != 0 && ids_[cells_[cell] - 1] != id) cell = (cell + 1) & (cells_.size() - 1);
    if (cells_[cell] == 0) {
      ids_.push_back(id);
      cells_[cell] = ++trace_.page_count;
    }
    trace_.accesses.push_back(cells_[cell] - 1);
  }
  Trace take() { return std::move(trace_); }

 private:
  static constexpr uint64_t kMostAccesses = uint64_t{1} << 31;

  void grow() {
    cells_.assign(cells_.empty() ? 1024 : 2 * cells_.size(), 0);
    for (uint32_t number = 0; number < trace_.page_count; ++number) {
      uint64_t cell = base::mix(ids_[number]) & (cells_.size() - 1);
      while (cells_[cell] != 0) cell = (cell + 1) & (cells_.size() - 1);
      cells_[cell] = number + 1;
    }
  }

  uint64_t most_;
  Trace trace_;
  std::vector<uint64_t> ids_;    // by number
  std::vector<uint32_t> cells_;  // open addressing: number + 1, 0 where there is none; a power of two of them
};

}  // namespace hitrate
