// Trace: the pages that a program asked for, in order; numbered from 0 as they appear, so that a simulator keeps what it knows of each
// in arrays.
#pragma once
#include <cstdint>
#include <unordered_map>
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
  explicit TraceBuilder(uint64_t most = 0) : most_(most == 0 ? kMaxAccesses : most) {}

  bool is_empty() const { return trace_.accesses.empty(); }
  bool is_full() const { return trace_.accesses.size() >= most_; }
  void add(uint64_t id) {
    if (is_full()) return;
    const auto [at, is_new] = numbers_.try_emplace(id, trace_.page_count);
    if (is_new) ++trace_.page_count;
    trace_.accesses.push_back(at->second);
  }
  Trace take() { return std::move(trace_); }

 private:
  static constexpr uint64_t kMaxAccesses = uint64_t{1} << 31;

  uint64_t most_;
  Trace trace_;
  std::unordered_map<uint64_t, uint32_t> numbers_;  // of ids
};

}  // namespace hitrate
