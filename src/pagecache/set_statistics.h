// SetStatistics: how the pages and the misses of a cache are spread over its sets. Each set is managed by itself, and one with many popular
// pages has no more room than any other. (set-associative page cache, "set-associative caching")
#pragma once
#include <cstdint>
#include <vector>

namespace pagecache {

// How a number varies from set to set. A percentile is the number of one of the sets: that many per cent of the others have no more.
struct Spread {
  uint32_t min = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
  double mean = 0;

  // Sorts the numbers. If there are none, everything is 0.
  static Spread of(std::vector<uint32_t>& numbers);
};

// The sets of one node.
struct NodeStatistics {
  uint64_t set_count = 0;
  uint64_t frame_count = 0;
  uint64_t page_count = 0;
  uint64_t dirty_count = 0;
  uint64_t miss_count = 0;  // since each set was first used
};

// All sets of a cache; no snapshot, since they are looked at one after the other.
struct SetStatistics {
  uint64_t set_count = 0;
  uint64_t page_count = 0;  // in memory, or being read
  uint64_t dirty_count = 0;
  uint64_t held_count = 0;  // pages that calls or views hold, or that are being read or written
  Spread frames;
  Spread pages;
  Spread misses;  // since each set was first used
  std::vector<NodeStatistics> nodes;
};

}  // namespace pagecache
