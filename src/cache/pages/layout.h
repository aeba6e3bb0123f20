// Layout: the addresses, in its process, of a cache's data structures, for another process that reads a page of it
// (page_reader.h). They do not change while the cache lives.
#pragma once
#include <bit>
#include <cstdint>

#include "base/ids.h"
#include "base/mix.h"

namespace cache {

inline constexpr uint32_t kMaxPartitions = 16;

// Neighbouring regions go to different partitions.
inline uint32_t partition_of(base::PageId page, unsigned region_shift, uint32_t partition_count) {
  return static_cast<uint32_t>(base::spread(index(page) >> region_shift) >> 32 & (partition_count - 1));
}

struct Layout {
  struct Part {
    uint64_t leaves;  // of its PageMap
    uint64_t frames;  // Frame by Frame
    uint64_t memory;  // the pages that they hold
    uint64_t frame_count;
  };
  uint64_t range_begin;
  uint64_t range_bytes;
  uint64_t page_bytes;
  uint64_t directory;  // PageDirectory's leaf numbers
  uint32_t region_shift;
  uint32_t partition_count;
  Part parts[kMaxPartitions];

  // Can it be computed with? What was read from another process may be anything; the addresses in it are only read from.
  bool is_possible(uint64_t expected_begin) const {
    return range_begin == expected_begin && page_bytes >= base::kOsPageBytes &&
           std::has_single_bit(page_bytes) && region_shift < 64 && partition_count <= kMaxPartitions &&
           std::has_single_bit(partition_count);
  }
};

}  // namespace cache
