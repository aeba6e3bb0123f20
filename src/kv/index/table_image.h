// TableImage: a table as a checkpoint keeps it. An image that comes from outside may hold anything.
#pragma once
#include <bit>
#include <cstdint>

#include "kv/index/table.h"

namespace kv {

// Which hashes a table is for, region by region (Table::prefix, RegionWord::depth).
struct TableShape {
  uint64_t prefix = 0;
  uint8_t depths[kRegions] = {};  // kAbsent: none of the region's homes is here

  // A child is made for hashes with one more bit, a 1: the highest bit of its prefix.
  constexpr unsigned birth_depth() const { return static_cast<unsigned>(std::bit_width(prefix)); }
  // The regions that have homes here: a bit for each.
  constexpr uint32_t present() const {
    uint32_t regions = 0;
    for (uint32_t region = 0; region < kRegions; ++region)
      regions |= (depths[region] == kAbsent ? 0u : 1u) << region;
    return regions;
  }
  // Could there be such a table: has it homes, and is it deep enough for its prefix?
  constexpr bool is_possible() const {
    for (uint8_t depth : depths)
      if (depth != kAbsent && (depth < birth_depth() || depth >= kMaxDepth)) return false;
    return present() != 0;
  }
};

struct TableImage {
  TableShape shape;
  uint64_t slots[kSlots];
};

}  // namespace kv
