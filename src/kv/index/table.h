// Table: hopscotch hashing over 32,768 slots of 8 bytes, locked by regions. (uDepot, section 4.2; Herlihy, Shavit,
// Tzafrir: Hopscotch Hashing, DISC 2008, without the bitmaps: an entry says itself how far it is from home)
//
//   slots     [ region 0: 4,096 slots | region 1 | ... | region 7 ], a ring
//   words     one for each region: | version 40 | count 16 | depth 7 | locked 1 |
//   reaches   one for each 32 homes: how many groups of eight slots, from a home on, its entries extend over, at most
//
// Invariants
//  1 An entry is in one of the kNeighbourhood slots from its home on
//  2 Whoever stores to a slot holds the lock of the region that the slot is in. A neighbourhood lies in one region or two: what was read of it shows
//    one moment if neither word has changed meanwhile
//  3 `depth` is how many hash bits choose this table, for the homes in this region. Growth moves one region at a time (index.h). kAbsent: none of the
//    region's homes is in this table
//  4 `count` is how many entries have their home in the region. It and `depth` change under the region's own lock
//  5 A reach is right whenever the regions' words say that nothing is being changed. It grows as entries are put in or moved, and is measured anew
//    when a region is moved to another table
//  6 Regions are locked in the order of their numbers, no more than two of a table at a time, or three while an image is taken
#pragma once
#include <emmintrin.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kv/index/entry.h"
#include "sys/lock.h"

namespace kv {

inline constexpr unsigned kHomeBits = 15;
inline constexpr uint32_t kSlots = 1u << kHomeBits;
inline constexpr uint32_t kRegionSlots = 4096;
inline constexpr uint32_t kRegions = kSlots / kRegionSlots;
inline constexpr size_t kTableBytes = kSlots * sizeof(uint64_t);
inline constexpr unsigned kMaxDepth = 48;
inline constexpr unsigned kAbsent = 127;

inline constexpr uint32_t kGroup = 8;        // slots that are looked at together
inline constexpr uint32_t kReachHomes = 32;  // homes that share a reach

constexpr uint32_t slot_at(uint32_t home, uint32_t offset) { return (home + offset) & (kSlots - 1); }
constexpr uint32_t home_of(uint64_t hash) { return hash & (kSlots - 1); }
constexpr uint32_t region_of(uint32_t home) { return home / kRegionSlots; }
constexpr uint32_t next_region(uint32_t region) { return (region + 1) % kRegions; }

// A region's word, unpacked.
struct RegionWord {
  uint64_t bits;

  bool is_locked() const { return (bits & 1) != 0; }
  unsigned depth() const { return bits >> 1 & 127; }
  uint32_t count() const { return bits >> 8 & 0xffff; }
  RegionWord with(unsigned depth, uint32_t count) const {
    return {(bits & ~uint64_t{0xffffff}) | uint64_t{count} << 8 | uint64_t{depth} << 1 | (bits & 1)};
  }
  static constexpr uint64_t kLocked = 1;
  static constexpr uint64_t kVersion = uint64_t{1} << 24;
};

// A table without its slots: only their memory is given back when a table has been merged.
struct alignas(64) Table {
  enum class Change : uint8_t { kNone, kSplit, kMerge };

  std::atomic<uint64_t> words[kRegions] = {};
  std::atomic<std::atomic<uint64_t>*> slots{nullptr};  // kSlots of them; set once
  Table* parent = nullptr;                             // that this one was split from
  // The hash bits after those of the home that chose this table when it was made, and how many there were. Further bits that choose it now are zeros.
  uint64_t prefix = 0;
  unsigned birth_depth = 0;
  // children[depth]: the table for hashes with a 1 after `depth` bits; set by the first split at that depth, for good.
  std::atomic<Table*> children[kMaxDepth] = {};
  std::atomic<uint8_t> reaches[kSlots / kReachHomes] = {};

  // Guards what follows. Taken before a region's lock, and a parent's before its child's.
  sys::Mutex change_lock;
  std::atomic<Change> change{Change::kNone};  // read without the lock as a hint
  unsigned depth = 0;        // of all regions; during a change, of those that are split it is depth + 1
  uint32_t moved_count = 0;  // during a change: how many regions are split
  uint32_t cursor = 0;       // the region to move next

  // While an index is being restored: the depths that the regions will have (index_restore.cc).
  uint8_t goals[kRegions] = {kAbsent, kAbsent, kAbsent, kAbsent, kAbsent, kAbsent, kAbsent, kAbsent};

  // Locks a region and returns its word. Spins: holders do no I/O.
  RegionWord lock(uint32_t region);
  // Unlocks it, with a new version and this word's depth and count.
  void unlock(uint32_t region, RegionWord word) {
    words[region].store((word.bits & ~RegionWord::kLocked) + RegionWord::kVersion, std::memory_order_release);
  }

  uint64_t at(uint32_t slot) const {
    return slots.load(std::memory_order_relaxed)[slot].load(std::memory_order_relaxed);
  }
  void set(uint32_t slot, uint64_t entry) {
    slots.load(std::memory_order_relaxed)[slot].store(entry, std::memory_order_relaxed);
  }

  // Calls take(slot, entry) for each entry of a home, until it returns false.
  template <class Take>
  void for_each(uint32_t home, const Take& take) const;

  // Puts an entry, whose offset is ignored, into a slot of its home's neighbourhood, and moves others to make room if need be. Uses slots of the home's
  // region, and if `both` of the next one as well. False: there is no room. REQUIRES: these regions are locked.
  bool place(uint32_t home, uint64_t entry, bool both);

  // Measures the reaches of a region's homes anew. REQUIRES: it and the next one are locked.
  void measure(uint32_t region);

  // How many entries there are in all regions; changes meanwhile may be missed.
  uint64_t count() const;

 private:
  // Which slots of the group from home + first on hold an entry of that home: a bit for each.
  uint32_t homed(uint32_t home, uint32_t first) const;
  void reach(uint32_t home, uint32_t offset);
};

// Is the neighbourhood of a home partly in the next region?
constexpr bool crosses(uint32_t home) { return home % kRegionSlots > kRegionSlots - kNeighbourhood; }

// Holds the lock of a table's region, and if `both` that of the next one as well.
class RegionLocks {
 public:
  RegionLocks(Table& table, uint32_t region, bool both) : table_(table), region_(region), both_(both) {
    const bool wraps = both && next_region(region) < region;
    if (wraps) next_word_ = table.lock(next_region(region));
    word_ = table.lock(region);
    if (both && !wraps) next_word_ = table.lock(next_region(region));
  }
  ~RegionLocks() {
    if (both_) table_.unlock(next_region(region_), next_word_);
    table_.unlock(region_, word_);
  }
  RegionLocks(const RegionLocks&) = delete;
  RegionLocks& operator=(const RegionLocks&) = delete;

  // The first region's word: changes to it take effect when the locks are released.
  RegionWord& word() { return word_; }
  // Entries of both regions. REQUIRES: both().
  uint32_t count() const { return word_.count() + next_word_.count(); }
  bool both() const { return both_; }

 private:
  Table& table_;
  uint32_t region_;
  bool both_;
  RegionWord word_ = {};
  RegionWord next_word_ = {};
};

// The lower halves of eight slots, or the upper ones, as two vectors of four. The slots may change meanwhile: a reader without locks compares versions
// afterwards.
struct Halves {
  __m128i first, second;

  // A bit for each of the eight that equals the corresponding element of these vectors.
  uint32_t equal(__m128i to_first, __m128i to_second) const {
    const int low = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(first, to_first)));
    const int high = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(second, to_second)));
    return static_cast<uint32_t>(low | high << 4);
  }
};

[[clang::no_sanitize("thread")]] inline Halves halves(const std::atomic<uint64_t>* slots, bool upper) {
  const auto* const from = reinterpret_cast<const __m128i*>(slots);
  const __m128 a = _mm_castsi128_ps(_mm_loadu_si128(from)), b = _mm_castsi128_ps(_mm_loadu_si128(from + 1));
  const __m128 c = _mm_castsi128_ps(_mm_loadu_si128(from + 2)),
               d = _mm_castsi128_ps(_mm_loadu_si128(from + 3));
  if (upper)
    return {_mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd)), _mm_castps_si128(_mm_shuffle_ps(c, d, 0xdd))};
  return {_mm_castps_si128(_mm_shuffle_ps(a, b, 0x88)), _mm_castps_si128(_mm_shuffle_ps(c, d, 0x88))};
}

inline uint32_t Table::homed(uint32_t home, uint32_t first) const {
  const uint32_t begin = slot_at(home, first);
  if (begin > kSlots - kGroup) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < kGroup; ++i)
      if (EntryFormat::offset(at(slot_at(begin, i))) == first + i) found |= 1u << i;
    return found;
  }
  const Halves lower = halves(slots.load(std::memory_order_relaxed) + begin, false);
  const __m128i mask = _mm_set1_epi32(kNeighbourhood - 1);
  const __m128i offsets = _mm_add_epi32(_mm_set1_epi32(static_cast<int>(first)), _mm_setr_epi32(0, 1, 2, 3));
  return Halves{_mm_and_si128(lower.first, mask), _mm_and_si128(lower.second, mask)}.equal(
      offsets, _mm_add_epi32(offsets, _mm_set1_epi32(4)));
}

template <class Take>
void Table::for_each(uint32_t home, const Take& take) const {
  uint32_t groups = 1;
  for (uint32_t group = 0; group < groups; ++group) {
    for (uint32_t found = homed(home, group * kGroup); found != 0; found &= found - 1) {
      const uint32_t slot = slot_at(home, group * kGroup + static_cast<uint32_t>(std::countr_zero(found)));
      // A free slot looks like an entry at home.
      if (const uint64_t entry = at(slot); entry != 0 && !take(slot, entry)) return;
    }
    // Most entries are in the first group: the reach is read only afterwards.
    if (group == 0) groups = reaches[home / kReachHomes].load(std::memory_order_relaxed);
  }
}

}  // namespace kv
