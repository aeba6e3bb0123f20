// What a stored table looks like on its medium (docs/formats/batch.md). The words of this folder:
//
//   position   where a key is in the order of all (positions.h)
//   region     an interval of positions: those that begin with the same `depth` bits
//   slot       a piece of the medium that has room for a region's records. A region that is made anew gets another slot
//   page       4 KiB of a slot: what a read of a key reads
//   sequence   a number that each change has, larger than those before it. Of a table with a log: where in the log it ends
//   checkpoint what says which slots are those of the table. What is written to slots since does not count until the next one
//
//   slot 0     a superblock in its first page, another in its second: that with the larger number counts
//   others     regions' records, sorted by position, page after page, the last one not full; or a part of the map
//
// The map has an entry for each region, in the order of their positions, and lies in slots that are chained. All numbers are little-endian.
#pragma once
#include <bit>
#include <cstring>
#include <span>

#include "batch/shape.h"

namespace batch {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint32_t kSlotPagesMin = 2, kSlotPagesMax = 64;
inline constexpr uint32_t kDepthMax = 28;
inline constexpr uint64_t kSuperblockBytes = 512;  // a sector: it is there as a whole, or not

// Begins each page.
struct PageHeader {
  uint64_t checksum = 0;  // of the rest of the page
  uint64_t made = 0;      // the region's
  uint32_t count = 0;     // of records, which follow
  uint32_t zero = 0;
};
static_assert(sizeof(PageHeader) == 24);

constexpr uint32_t records_of_page(const Shape& shape) {
  return static_cast<uint32_t>((kPageBytes - sizeof(PageHeader)) / shape.record_bytes());
}

// Gives a page, whose records are there, its header, and zeros behind them.
void seal_page(const Shape& shape, std::span<std::byte> page, uint64_t made, uint32_t count);
// Is it what seal_page() left, of a region that was made so? Then `count` is its records'.
bool read_page(const Shape& shape, std::span<const std::byte> page, uint64_t made, uint32_t& count);
inline const std::byte* page_records(std::span<const std::byte> page) {
  return page.data() + sizeof(PageHeader);
}

struct TableId {
  uint64_t words[2] = {};
  friend bool operator==(const TableId&, const TableId&) = default;
};

struct Superblock {
  static constexpr char kMagic[8] = {'S', 'P', 'I', 'L', 'L', 'B', 'A', 'T'};
  static constexpr uint32_t kVersion = 1;

  char magic[8] = {};
  uint32_t version = kVersion;
  uint32_t key_bytes = 0;
  uint32_t value_bytes = 0;
  uint32_t slot_pages = 0;
  uint64_t key_space = 0;
  TableId id;
  uint64_t number = 0;    // of the checkpoint; 0: there is none yet, nor anything else
  uint64_t map_slot = 0;  // the first one; 0: there are no regions but one without records
  uint64_t map_bytes = 0;
  uint64_t sequence = 0;  // of the last change that may be in a slot
  uint64_t log_id = 0;    // 0: all is in the slots; else what a log is needed for, that has this one
  uint64_t log_tail = 0;  // where its first record is that may be needed
  // Of the log's records that count: drawn when a table begins to use a log, and one more each time that it is opened before it was closed.
  uint32_t incarnation = 0;
  uint32_t zero = 0;
  uint64_t checksum = 0;  // of what precedes it

  void seal();
  bool is_sealed() const;
};
static_assert(sizeof(Superblock) <= kSuperblockBytes);

// Begins each slot of the map.
struct MapHeader {
  uint64_t checksum = 0;   // of the rest, as far as it is used
  uint64_t number = 0;     // of the checkpoint
  uint64_t next_slot = 0;  // 0: it is the last one
  uint64_t bytes = 0;      // of the map, which follow
};
static_assert(sizeof(MapHeader) == 32);
void seal_map_slot(std::span<std::byte> slot, MapHeader header);
// False: it is not one of this checkpoint's.
bool read_map_slot(std::span<const std::byte> slot, uint64_t number, MapHeader& header);

// Of a region in the map; its fences follow, 4 bytes each.
struct MapEntry {
  uint64_t slot = 0;  // 0: it has no records
  uint64_t made = 0;  // all its changes with a sequence up to this one are in the slot, and no others
  uint64_t count = 0;
  uint32_t depth = 0;
  uint32_t page_count = 0;
};
static_assert(sizeof(MapEntry) == 32);

// What a map has of a region.
struct MapRegion {
  MapEntry entry;
  uint64_t prefix = 0;                  // its first position
  uint32_t fences[kSlotPagesMax] = {};  // entry.page_count of them
};

// Takes a map apart, region after region. It is right when the regions have all positions, each once, and what is said of one fits
// together; which slots there are is for others to know.
class MapReader {
 public:
  struct Limits {
    uint64_t sequence = 0;    // of the last change
    uint32_t slot_pages = 0;  // kSlotPagesMax at most
    uint32_t page_records = 0;
  };
  // The map outlives the reader.
  MapReader(std::span<const std::byte> map, const Limits& limits) : rest_(map), limits_(limits) {}

  enum class Next { kRegion, kEnd, kDamaged };
  Next next(MapRegion& region);

 private:
  using Wide = unsigned __int128;
  static constexpr Wide kAll = Wide{1} << 64;

  std::span<const std::byte> rest_;
  Limits limits_;
  Wide prefix_ = 0;  // of the next one
};

}  // namespace batch
