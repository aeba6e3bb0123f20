// What a stored table looks like on its medium (docs/formats/batch.md). The terms of this folder:
//
//   position     a key's place in the order of all keys, as a 64-bit number (positions.h)
//   region       the records whose positions begin with the same `depth` bits; it is read, changed and written as a whole
//   slot         a piece of the medium with room for one region. When a region is written again, it goes to another slot
//   page         4 KiB of a slot: what is read in order to read a single key
//   sequence     the number of a change; it is larger than those of all changes before. With a log, it is the position in the log where the change ends
//   checkpoint   a map that says which slots make up the table, and a superblock that refers to the map. A slot that is written after a checkpoint belongs
//                to the table on the medium from the next checkpoint on
//
//   slot 0       two superblocks, in its first and its second page: the valid one with the larger number counts
//   other slots  a region's records, sorted by position, in pages that are all full except the last; or a part of the map
//
// The map has an entry for each region, in the order of the regions' positions, and lies in a chain of slots. All numbers are little-endian.
#pragma once
#include <bit>
#include <cstring>
#include <span>

#include "batch/shape.h"

namespace batch {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint32_t kMinSlotPages = 2, kMaxSlotPages = 64;
inline constexpr uint32_t kMaxDepth = 28;
inline constexpr uint64_t kSuperblockBytes = 512;  // a sector: a power failure does not leave it half written

// Begins each page.
struct PageHeader {
  uint64_t checksum = 0;  // of the rest of the page
  uint64_t made = 0;      // the same as in the region's MapEntry
  uint32_t count = 0;     // of the records that follow
  uint32_t zero = 0;
};
static_assert(sizeof(PageHeader) == 24);

constexpr uint32_t records_of_page(const Shape& shape) {
  return static_cast<uint32_t>((kPageBytes - sizeof(PageHeader)) / shape.record_bytes());
}

// Writes the header of a page whose `count` records are in place, and zeros after them.
void seal_page(const Shape& shape, std::span<std::byte> page, uint64_t made, uint32_t count);
// Is the page as seal_page() left it, with this `made`? If so, sets `count` to the number of its records.
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
  uint64_t number =
      0;  // of the checkpoint; 0: there is none yet, and everything else on the medium is meaningless
  uint64_t map_slot = 0;  // the first slot of the map
  uint64_t map_bytes = 0;
  uint64_t sequence = 0;  // of the last change that may be in a slot
  uint64_t log_id = 0;    // of the log that is needed; 0: none is needed, since all changes are in slots
  uint64_t log_tail = 0;  // position of the first record of the log that may be needed
  // Records of the log count only if they have the same incarnation. It is drawn at random when a table begins to use a log, and grows by one each time
  // that a table is opened that was not closed.
  uint32_t incarnation = 0;
  uint32_t zero = 0;
  uint64_t checksum = 0;  // of all members before it

  void seal();
  bool is_sealed() const;
};
static_assert(sizeof(Superblock) <= kSuperblockBytes);

// Begins each slot of the map.
struct MapHeader {
  uint64_t checksum = 0;   // of the rest of the header and the map's bytes
  uint64_t number = 0;     // of the checkpoint
  uint64_t next_slot = 0;  // of the map; 0: this is the last one
  uint64_t bytes = 0;      // how many bytes of the map follow
};
static_assert(sizeof(MapHeader) == 32);
// Writes the header, with its checksum, before the map's bytes, which are in place already.
void seal_map_slot(std::span<std::byte> slot, MapHeader header);
// Sets `header`. False: the slot does not belong to this checkpoint's map, or is damaged.
bool read_map_slot(std::span<const std::byte> slot, uint64_t number, MapHeader& header);

// A region in the map. The fences of its pages follow, 4 bytes each.
struct MapEntry {
  uint64_t slot = 0;  // 0: the region has no records
  // The slot has all of the region's changes with a sequence up to this one, and no others.
  uint64_t made = 0;
  uint64_t count = 0;  // of records
  uint32_t depth = 0;
  uint32_t page_count = 0;
};
static_assert(sizeof(MapEntry) == 32);

// What a map says about a region.
struct MapRegion {
  MapEntry entry;
  uint64_t prefix = 0;                  // its first position
  uint32_t fences[kMaxSlotPages] = {};  // entry.page_count of them
};

// Reads a map, region after region, and checks it: the regions must cover each position once, and each entry must be consistent. The caller has to check
// whether the slots exist.
class MapReader {
 public:
  struct Limits {
    uint64_t sequence = 0;    // the superblock's
    uint32_t slot_pages = 0;  // kMaxSlotPages at most
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
  Wide prefix_ = 0;  // of the next region
};

}  // namespace batch
