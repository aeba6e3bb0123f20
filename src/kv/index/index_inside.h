// What the files of the index share. No other file includes this.
#pragma once
#include <bit>

#include "kv/index/index.h"
#include "sys/huge_pages.h"

namespace kv {

inline constexpr uint32_t kChunkTables = 8;
inline constexpr size_t kChunkBytes = kChunkTables * kTableBytes;
static_assert(kChunkBytes == sys::kHugePageBytes);
inline constexpr uint32_t kMaxChunks = 1u << 17;
inline constexpr unsigned kMaxDirectoryBits = 22;

// Tables, and the memory behind their slots.
struct Index::Chunk {
  Table tables[kChunkTables];
  char* slots = nullptr;
};

constexpr uint64_t low_bits(unsigned count) { return (uint64_t{1} << count) - 1; }

// The bits of a hash that have chosen neither table nor home, at this depth.
constexpr uint64_t rest(uint64_t hash, unsigned depth) { return hash >> (kHomeBits + depth); }

// The next table on the way to the one that a hash belongs to, given the depth of the hash's region here; null: this is the one.
inline Table* nearer(const Table& table, uint64_t hash, unsigned depth) {
  if (depth == kAbsent) return table.parent;
  const uint64_t wrong = (rest(hash, 0) ^ table.prefix) & low_bits(depth);
  if (wrong == 0) return nullptr;
  const auto bit = static_cast<unsigned>(std::countr_zero(wrong));
  // Pairs with the release in child_of(): the child's slots and words are set.
  return bit < table.birth_depth ? table.parent : table.children[bit].load(std::memory_order_acquire);
}

// Calls visit(slot, home, entry) for each entry whose home is in the region. REQUIRES: it and the next one are locked.
template <class Visit>
void for_each_homed(const Table& table, uint32_t region, const Visit& visit) {
  const uint32_t begin = region * kRegionSlots;
  for (uint32_t i = 0; i < kRegionSlots + kNeighbourhood - 1; ++i) {
    const uint32_t slot = slot_at(begin, i);
    const uint64_t entry = table.at(slot);
    if (entry == 0) continue;
    const uint32_t home = slot_at(slot, kSlots - EntryFormat::offset(entry));
    if (region_of(home) == region) visit(slot, home, entry);
  }
}

inline Table& Index::table(uint32_t number) const {
  return chunks_[number / kChunkTables]->tables[number % kChunkTables];
}

inline Table* Index::guess(uint64_t hash) const {
  // Pairs with the release in publish(). If the directory grows meanwhile, this may be the wrong table, but the right one can be reached from it.
  const uint64_t mask = directory_mask_.load(std::memory_order_acquire);
  return directory_[rest(hash, 0) & mask].load(std::memory_order_acquire);
}

// Calls act(table, locks) for the table of the hash, with the hash's region locked, and if `both` the next one as well.
template <class Do>
auto Index::locked(uint64_t hash, bool both, const Do& act) const {
  const uint32_t region = region_of(home_of(hash));
  for (Table* table = guess(hash);;) {
    RegionLocks locks(*table, region, both);
    Table* const better = nearer(*table, hash, locks.word().depth());
    if (better == nullptr) return act(*table, locks);
    table = better;
  }
}

}  // namespace kv
