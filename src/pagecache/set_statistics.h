// SetStatistics: how what a cache holds, and what it missed, is spread over its sets: they are managed each alone, and one that has many
// pages which are asked for often has no more room than any other. (set-associative page cache, "set-associative caching")
#pragma once
#include <cstdint>
#include <vector>

namespace pagecache {

// Of a number that each set has. Percentiles are numbers that a set has: so many percent of the others have no more.
struct Spread {
  uint32_t min = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
  double mean = 0;

  // All 0 of none. Sorts them.
  static Spread of(std::vector<uint32_t>& numbers);
};

// Of the sets of a node.
struct NodeStatistics {
  uint64_t set_count = 0;
  uint64_t frame_count = 0;
  uint64_t page_count = 0;
  uint64_t dirty_count = 0;
  uint64_t miss_count = 0;  // since each set was first one
};

// Of the sets that the cache had when it was looked at, one after the other.
struct SetStatistics {
  uint64_t set_count = 0;
  uint64_t page_count = 0;  // that are there, or are being read
  uint64_t dirty_count = 0;
  uint64_t held_count = 0;  // that calls or views hold, or that are being read or written
  Spread frames;
  Spread pages;
  Spread misses;  // since the set was first one
  std::vector<NodeStatistics> nodes;
};

}  // namespace pagecache
