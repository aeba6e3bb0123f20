#include "kv/index.h"

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/ids.h"
#include "sys/huge_pages.h"
#include "sys/memory.h"

namespace kv {

namespace {

constexpr size_t kBatch = 16;  // lookups whose cache misses overlap
constexpr unsigned kDirectoryBitsMax = 22;
constexpr uint32_t kChunksMax = 1u << 17;
constexpr uint32_t kChunkTables = 8;
constexpr size_t kChunkBytes = kChunkTables * kTableBytes;
static_assert(kChunkBytes == sys::kHugePageBytes);
constexpr size_t kDirectoryBytes = (size_t{1} << kDirectoryBitsMax) * sizeof(std::atomic<Table*>);
// A table and its child are merged when both together would fill so much of one.
constexpr uint64_t kMergeBelow = kSlots * 2 / 5;
// A region that has so few entries makes its table a candidate; it is asked every so many removals.
constexpr uint32_t kSparse = kRegionSlots / 5;
constexpr uint32_t kSparseEvery = 32;
// Tables that are filled so far, at random, need not grow.
constexpr uint64_t kReserved = kSlots * 9 / 10;

uint64_t low_bits(unsigned count) { return (uint64_t{1} << count) - 1; }

// The bits of a hash that have chosen neither table nor home.
uint64_t rest(uint64_t hash, unsigned depth) { return hash >> (kHomeBits + depth); }

// The table to go to from this one for a hash, as far as a region's depth tells; null: this is the one.
Table* nearer(const Table& table, uint64_t hash, unsigned depth) {
  if (depth == kAbsent) return table.parent;
  const uint64_t wrong = (rest(hash, 0) ^ table.prefix) & low_bits(depth);
  if (wrong == 0) return nullptr;
  const auto bit = static_cast<unsigned>(std::countr_zero(wrong));
  // Pairs with the release in begin_split(): the child's slots and words are there.
  return bit < table.birth_depth ? table.parent : table.children[bit].load(std::memory_order_acquire);
}

// Calls visit(slot, home, entry) for all entries whose home is in the region. REQUIRES: it and the next one are locked.
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

}  // namespace

// Tables, and the memory behind their slots.
struct Index::Chunk {
  Table tables[kChunkTables];
  char* slots = nullptr;
};

base::Expected<Index*> Index::open(unsigned address_bits) {
  CHECK(address_bits >= EntryFormat::kAddressBitsMin && address_bits <= EntryFormat::kAddressBitsMax);
  auto own = sys::map_anonymous(base::round_up(sizeof(Index), base::kOsPageBytes), "an index");
  if (!own) return std::unexpected(own.error());
  auto* const index = new (*own) Index(address_bits);
  auto directory = sys::map_anonymous(kDirectoryBytes, "an index's directory");
  if (!directory) {
    index->close();
    return std::unexpected(directory.error());
  }
  index->directory_ = reinterpret_cast<std::atomic<Table*>*>(*directory);
  auto chunks = sys::map_anonymous(kChunksMax * sizeof(Chunk*), "an index's tables");
  if (!chunks) {
    index->close();
    return std::unexpected(chunks.error());
  }
  index->chunks_ = reinterpret_cast<Chunk**>(*chunks);
  Table* const first = index->new_table(nullptr, 0, 0);
  if (first == nullptr) {
    index->close();
    return base::failure(ENOMEM, "cannot get memory for an index's first table");
  }
  for (auto& word : first->words) word.store(RegionWord{0}.with(0, 0).bits, std::memory_order_relaxed);
  index->live_count_.store(1, std::memory_order_relaxed);
  index->directory_[0].store(first, std::memory_order_release);
  return index;
}

void Index::close() {
  for (uint32_t number = 0; number < table_count_.load(std::memory_order_relaxed); number += kChunkTables)
    free_chunk(chunks_[number / kChunkTables]);
  free_chunk(spare_.load(std::memory_order_relaxed));
  if (chunks_ != nullptr) sys::unmap(chunks_, kChunksMax * sizeof(Chunk*));
  if (directory_ != nullptr) sys::unmap(directory_, kDirectoryBytes);
  this->~Index();
  sys::unmap(this, base::round_up(sizeof(Index), base::kOsPageBytes));
}

// --- lookups and changes of entries ---

Table* Index::guess(uint64_t hash) const {
  // Pairs with the release in publish(). A directory that grows meanwhile leads near enough.
  const uint64_t mask = directory_mask_.load(std::memory_order_acquire);
  return directory_[rest(hash, 0) & mask].load(std::memory_order_acquire);
}

Location Index::location(uint64_t entry) const {
  return {.address = format_.address(entry), .size = EntryFormat::size(entry), .found = true};
}

// Calls look(table, depth) until nothing has changed meanwhile in the neighbourhood that it looked at.
template <class Look>
void Index::search(uint64_t hash, const Look& look) const {
  const uint32_t home = home_of(hash), region = region_of(home), next = next_region(region);
  const bool both = crosses(home);
  for (Table* table = guess(hash);;) {
    // Pairs with the release in Table::unlock().
    const RegionWord word{table->words[region].load(std::memory_order_acquire)};
    const RegionWord other{both ? table->words[next].load(std::memory_order_acquire) : 0};
    if (word.is_locked() || other.is_locked()) {
      _mm_pause();
      continue;
    }
    if (Table* const better = nearer(*table, hash, word.depth()); better != nullptr) {
      table = better;
      continue;
    }
    look(*table, word.depth());
    // What look() has read, by relaxed loads, was read before the words are: pairs with the fence in Table::lock().
    std::atomic_thread_fence(std::memory_order_acquire);
    if (table->words[region].load(std::memory_order_relaxed) == word.bits &&
        (!both || table->words[next].load(std::memory_order_relaxed) == other.bits))
      return;
  }
}

// Calls act(table, locks) with the table's region of the hash locked, and with `both` the next one as well.
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

// Calls take(slot, entry) for what may be of the hash's key, until it returns false.
template <class Take>
void Index::candidates(const Table& table, uint64_t hash, unsigned depth, const Take& take) const {
  const uint64_t left = rest(hash, depth);
  table.for_each(home_of(hash), [&](uint32_t slot, uint64_t entry) {
    return !format_.matches(entry, left) || take(slot, entry);
  });
}

Location Index::find(uint64_t hash) const {
  Location found;
  search(hash, [&](const Table& table, unsigned depth) {
    found = {};
    candidates(table, hash, depth, [&](uint32_t, uint64_t entry) {
      found = location(entry);
      return false;
    });
  });
  return found;
}

void Index::find(std::span<const uint64_t> hashes, std::span<Location> found) const {
  CHECK_EQ(hashes.size(), found.size());
  for (size_t begin = 0; begin < hashes.size(); begin += kBatch) {
    const size_t end = std::min(begin + kBatch, hashes.size());
    for (size_t i = begin; i < end; ++i) prefetch(hashes[i]);
    for (size_t i = begin; i < end; ++i) found[i] = find(hashes[i]);
  }
}

size_t Index::find_all(uint64_t hash, std::span<Location, kCandidatesMax> found) const {
  size_t count = 0;
  search(hash, [&](const Table& table, unsigned depth) {
    count = 0;
    candidates(table, hash, depth, [&](uint32_t, uint64_t entry) {
      found[count++] = location(entry);
      return true;
    });
  });
  return count;
}

void Index::prefetch(uint64_t hash) const {
  const uint32_t home = home_of(hash);
  const Table* const table = guess(hash);
  const std::atomic<uint64_t>* const slots = table->slots.load(std::memory_order_relaxed);
  __builtin_prefetch(&table->words[region_of(home)]);
  __builtin_prefetch(slots + home);
  __builtin_prefetch(slots + slot_at(home, kGroup));
}

Index::Inserted Index::insert(uint64_t hash, uint64_t address, uint32_t size,
                              std::span<const uint64_t> known) {
  CHECK_LT(address, format_.addresses());
  const uint32_t home = home_of(hash);
  bool both = crosses(home);
  for (;;) {
    enum class Outcome { kDone, kOther, kNoRoom };
    Table* used = nullptr;
    unsigned depth = 0;
    const Outcome outcome = locked(hash, both, [&](Table& table, RegionLocks& locks) {
      used = &table;
      depth = locks.word().depth();
      bool other = false;
      candidates(table, hash, depth, [&](uint32_t, uint64_t entry) {
        other = std::find(known.begin(), known.end(), format_.address(entry)) == known.end();
        return !other;
      });
      if (other) return Outcome::kOther;
      if (!table.place(home, format_.make(rest(hash, depth), address, size), both)) return Outcome::kNoRoom;
      locks.word() = locks.word().with(depth, locks.word().count() + 1);
      return Outcome::kDone;
    });
    if (outcome == Outcome::kOther) return Inserted::kOther;
    if (outcome == Outcome::kDone) {
      help(*used);
      return Inserted::kDone;
    }
    if (!both) {
      both = true;
    } else {
      if (!grow(*used, region_of(home), depth)) return Inserted::kFull;
      both = crosses(home);
    }
  }
}

bool Index::replace(uint64_t hash, uint64_t address, uint64_t new_address, uint32_t new_size) {
  CHECK_LT(new_address, format_.addresses());
  const uint32_t home = home_of(hash);
  return locked(hash, crosses(home), [&](Table& table, RegionLocks& locks) {
    const unsigned depth = locks.word().depth();
    bool done = false;
    candidates(table, hash, depth, [&](uint32_t slot, uint64_t entry) {
      if (format_.address(entry) != address) return true;
      table.set(slot, EntryFormat::with_offset(format_.make(rest(hash, depth), new_address, new_size),
                                               EntryFormat::offset(entry)));
      done = true;
      return false;
    });
    return done;
  });
}

bool Index::remove(uint64_t hash, uint64_t address) {
  const uint32_t home = home_of(hash);
  Table* used = nullptr;
  bool is_sparse = false;
  const bool done = locked(hash, crosses(home), [&](Table& table, RegionLocks& locks) {
    used = &table;
    bool found = false;
    candidates(table, hash, locks.word().depth(), [&](uint32_t slot, uint64_t entry) {
      if (format_.address(entry) != address) return true;
      table.set(slot, 0);
      const uint32_t count = locks.word().count() - 1;
      locks.word() = locks.word().with(locks.word().depth(), count);
      is_sparse = count <= kSparse && count % kSparseEvery == 0;
      found = true;
      return false;
    });
    return found;
  });
  if (done) help(*used);
  if (is_sparse) shrink(*used);
  return done;
}

// --- growth and shrinking ---

Table& Index::table(uint32_t number) const {
  return chunks_[number / kChunkTables]->tables[number % kChunkTables];
}

// Zeros are free slots.
Index::Chunk* Index::new_chunk(bool huge) {
  auto own = sys::map_anonymous(base::round_up(sizeof(Chunk), base::kOsPageBytes), "an index's tables");
  if (!own) return nullptr;
  auto slots = sys::map_anonymous(2 * kChunkBytes, "an index's tables");
  if (!slots) {
    sys::unmap(*own, base::round_up(sizeof(Chunk), base::kOsPageBytes));
    return nullptr;
  }
  auto* const chunk = new (*own) Chunk;
  chunk->slots = reinterpret_cast<char*>(base::round_up(reinterpret_cast<uint64_t>(*slots), kChunkBytes));
  if (chunk->slots != *slots) sys::unmap(*slots, chunk->slots - *slots);
  sys::unmap(chunk->slots + kChunkBytes, *slots + kChunkBytes - chunk->slots);
  if (huge) sys::prefer_huge_pages(chunk->slots, kChunkBytes);
  return chunk;
}

void Index::free_chunk(Chunk* chunk) {
  if (chunk == nullptr) return;
  sys::unmap(chunk->slots, kChunkBytes);
  sys::unmap(chunk, base::round_up(sizeof(Chunk), base::kOsPageBytes));
}

bool Index::prepare() {
  if (spare_.load(std::memory_order_relaxed) != nullptr) return true;
  Chunk* chunk = new_chunk(true);
  if (chunk == nullptr) return false;
  for (size_t at = 0; at < kChunkBytes; at += base::kOsPageBytes)
    *const_cast<volatile char*>(chunk->slots + at) = 0;
  {
    sys::LockGuard guard(memory_lock_);
    if (spare_.load(std::memory_order_relaxed) == nullptr)
      spare_.store(std::exchange(chunk, nullptr), std::memory_order_relaxed);
  }
  free_chunk(chunk);
  return true;
}

Table* Index::new_table(Table* parent, uint64_t prefix, unsigned depth) {
  sys::LockGuard guard(memory_lock_);
  const uint32_t number = table_count_.load(std::memory_order_relaxed);
  if (number % kChunkTables == 0) {
    if (number == kChunksMax * kChunkTables) return nullptr;
    // The first chunk is filled page by page: a store with few keys takes little.
    Chunk* chunk = spare_.exchange(nullptr, std::memory_order_relaxed);
    if (chunk == nullptr) chunk = new_chunk(number != 0);
    if (chunk == nullptr) return nullptr;
    chunks_[number / kChunkTables] = chunk;
  }
  Table& made = table(number);
  made.slots.store(reinterpret_cast<std::atomic<uint64_t>*>(chunks_[number / kChunkTables]->slots +
                                                            number % kChunkTables * kTableBytes),
                   std::memory_order_relaxed);
  made.parent = parent;
  made.prefix = prefix;
  made.birth_depth = made.depth = depth;
  for (auto& word : made.words) word.store(RegionWord{0}.with(kAbsent, 0).bits, std::memory_order_relaxed);
  table_count_.store(number + 1, std::memory_order_release);
  return &made;
}

bool Index::reserve(uint64_t entries) {
  unsigned depth = 0;
  while ((kReserved << depth) < entries) ++depth;
  // Those that a split adds come behind.
  for (uint32_t number = 0; number < table_count_.load(std::memory_order_relaxed); ++number) {
    Table& own = table(number);
    sys::LockGuard guard(own.change_lock);
    if (RegionWord{own.words[0].load(std::memory_order_relaxed)}.depth() == kAbsent) continue;
    while (own.depth < depth)
      if (!begin_split(own) || !finish_split(own)) return false;
  }
  return true;
}

// Makes room for a home in this region, which had none when its depth was this. Returns false when it cannot.
bool Index::grow(Table& table, uint32_t region, unsigned depth) {
  // Regions that are half empty and have no room have entries of one home, which growth does not part.
  const auto count = [&](uint32_t of) {
    return RegionWord{table.words[of].load(std::memory_order_relaxed)}.count();
  };
  if (count(region) + count(next_region(region)) < kRegionSlots) return false;
  if (Table* const parent = table.parent; parent != nullptr) {
    // The parent's lock is kept: no merge of this table begins (invariant 4).
    sys::LockGuard parent_guard(parent->change_lock);
    if (parent->change.load(std::memory_order_relaxed) != Table::Change::kNone &&
        parent->children[parent->depth].load(std::memory_order_relaxed) == &table && !finish_split(*parent))
      return false;
    return split(table, region, depth);
  }
  return split(table, region, depth);
}

bool Index::split(Table& table, uint32_t region, unsigned depth) {
  sys::LockGuard guard(table.change_lock);
  if (RegionWord{table.words[region].load(std::memory_order_relaxed)}.depth() != depth)
    return true;  // somebody has
  if (!begin_split(table)) return false;
  // A region that has been moved, and has no room all the same, needs the next split.
  return is_to_move(table, region) ? move_region(table, region) : finish_split(table);
}

// Moves a region on, if a change of this table, or between it and its parent, is under way and nobody else does so.
void Index::help(Table& table) {
  const auto advance = [this](Table& changing) {
    if (changing.change.load(std::memory_order_relaxed) == Table::Change::kNone) return;
    if (!changing.change_lock.try_lock()) return;
    for (uint32_t i = 0; i < kRegions; ++i)
      if (const uint32_t region = changing.cursor++ % kRegions; is_to_move(changing, region)) {
        move_region(changing, region);
        break;
      }
    changing.change_lock.unlock();
  };
  advance(table);
  if (table.parent != nullptr) advance(*table.parent);
}

// Begins to merge this table with its last child, or its parent with it, if they have few entries.
void Index::shrink(Table& table) {
  const auto try_merge = [this](Table& parent, Table& child) {
    if (parent.count() + child.count() > kMergeBelow) return;
    if (!parent.change_lock.try_lock()) return;
    if (child.change_lock.try_lock()) {
      if (parent.change.load(std::memory_order_relaxed) == Table::Change::kNone &&
          child.change.load(std::memory_order_relaxed) == Table::Change::kNone &&
          parent.depth == child.birth_depth && child.depth == child.birth_depth)
        begin_merge(parent, child);
      child.change_lock.unlock();
    }
    parent.change_lock.unlock();
  };
  for (unsigned bit = table.birth_depth; bit < kDepthMax; ++bit)
    if (Table* const child = table.children[bit].load(std::memory_order_acquire); child != nullptr)
      try_merge(table, *child);
  if (table.parent != nullptr) try_merge(*table.parent, table);
}

// REQUIRES: change_lock. A split is under way afterwards, if true is returned.
bool Index::begin_split(Table& table) {
  if (table.change.load(std::memory_order_relaxed) == Table::Change::kMerge)
    table.change.store(Table::Change::kSplit, std::memory_order_relaxed);
  if (table.change.load(std::memory_order_relaxed) == Table::Change::kSplit) return true;
  if (table.depth + 1 >= kDepthMax) return false;
  std::atomic<Table*>& child = table.children[table.depth];
  if (child.load(std::memory_order_relaxed) == nullptr) {
    Table* const made = new_table(&table, table.prefix | uint64_t{1} << table.depth, table.depth + 1);
    if (made == nullptr) return false;
    child.store(made, std::memory_order_release);  // pairs with the acquire in nearer()
  }
  live_count_.fetch_add(1, std::memory_order_relaxed);
  table.moved_count = 0;
  table.change.store(Table::Change::kSplit, std::memory_order_relaxed);
  return true;
}

// REQUIRES: change_lock of both, no change under way.
void Index::begin_merge(Table& table, Table& child) {
  CHECK(table.children[child.birth_depth - 1].load(std::memory_order_relaxed) == &child);
  table.depth = child.birth_depth - 1;
  table.moved_count = kRegions;
  table.change.store(Table::Change::kMerge, std::memory_order_relaxed);
}

// Moves a region that is to be moved, and ends the change with the last one. REQUIRES: change_lock.
bool Index::move_region(Table& table, uint32_t region) {
  Table& child = *table.children[table.depth].load(std::memory_order_relaxed);
  if (table.change.load(std::memory_order_relaxed) == Table::Change::kSplit) {
    if (!move_out(table, child, region)) return false;
    ++table.moved_count;
  } else if (move_back(table, child, region)) {
    --table.moved_count;
  } else {
    table.change.store(Table::Change::kSplit,
                       std::memory_order_relaxed);  // what cannot be merged stays split
  }
  regions_moved_.fetch_add(1, std::memory_order_relaxed);
  end_change(table, child);
  return true;
}

// REQUIRES: change_lock, a change under way; it ends as a split if true is returned.
bool Index::finish_split(Table& table) {
  table.change.store(Table::Change::kSplit, std::memory_order_relaxed);
  for (uint32_t region = 0; region < kRegions; ++region)
    if (is_to_move(table, region) && !move_region(table, region)) return false;
  return true;
}

// REQUIRES: change_lock.
bool Index::is_to_move(const Table& table, uint32_t region) {
  const unsigned depth = RegionWord{table.words[region].load(std::memory_order_relaxed)}.depth();
  const Table::Change change = table.change.load(std::memory_order_relaxed);
  return change == (depth == table.depth ? Table::Change::kSplit : Table::Change::kMerge);
}

// Ends a change that has nothing left to move. REQUIRES: change_lock.
void Index::end_change(Table& table, Table& child) {
  const bool is_split = table.change.load(std::memory_order_relaxed) == Table::Change::kSplit;
  if (table.moved_count != (is_split ? kRegions : 0)) return;
  table.change.store(Table::Change::kNone, std::memory_order_relaxed);
  publish(child, is_split ? child : table);
  if (is_split) {
    ++table.depth;
  } else {
    sys::release(child.slots.load(std::memory_order_relaxed), kTableBytes);
    live_count_.fetch_sub(1, std::memory_order_relaxed);
  }
}

// Lets the directory lead to `table` where it is about the hashes of `child`.
void Index::publish(Table& child, Table& table) {
  if (child.birth_depth > kDirectoryBitsMax) return;
  sys::LockGuard guard(memory_lock_);
  uint64_t mask = directory_mask_.load(std::memory_order_relaxed);
  while (mask < low_bits(child.birth_depth)) {
    for (uint64_t i = 0; i <= mask; ++i)
      directory_[mask + 1 + i].store(directory_[i].load(std::memory_order_relaxed),
                                     std::memory_order_relaxed);
    mask = mask << 1 | 1;
    directory_mask_.store(mask, std::memory_order_release);  // pairs with the acquire in guess()
  }
  for (uint64_t i = child.prefix; i <= mask; i += uint64_t{1} << child.birth_depth)
    directory_[i].store(&table, std::memory_order_release);
}

// Moves those homes' entries that have a 1 next to the child. All or none: false, when there is no room or an entry has no bit.
bool Index::move_out(Table& table, Table& child, uint32_t region) {
  RegionLocks own(table, region, true), its(child, region, true);
  bool fits = true;
  uint32_t count = 0;
  for_each_homed(table, region, [&](uint32_t, uint32_t home, uint64_t entry) {
    fits = fits && format_.has_bit(entry);
    if (!fits || !format_.bit(entry)) return;
    fits = child.place(home, format_.without_bit(entry), true);
    if (fits) ++count;
  });
  if (!fits) {
    for_each_homed(child, region, [&](uint32_t slot, uint32_t, uint64_t) { child.set(slot, 0); });
    return false;
  }
  for_each_homed(table, region, [&](uint32_t slot, uint32_t, uint64_t entry) {
    table.set(slot, format_.bit(entry) ? 0 : format_.without_bit(entry));
  });
  table.measure(region);
  its.word() = its.word().with(table.depth + 1, count);
  own.word() = own.word().with(table.depth + 1, own.word().count() - count);
  return true;
}

// Takes the child's entries of those homes. All or none: false, when there is no room.
bool Index::move_back(Table& table, Table& child, uint32_t region) {
  RegionLocks own(table, region, true), its(child, region, true);
  for_each_homed(table, region, [&](uint32_t slot, uint32_t, uint64_t entry) {
    table.set(slot, format_.with_bit(entry, false));
  });
  bool fits = true;
  for_each_homed(child, region, [&](uint32_t, uint32_t home, uint64_t entry) {
    fits = fits && table.place(home, format_.with_bit(entry, true), true);
  });
  if (!fits) {
    for_each_homed(table, region, [&](uint32_t slot, uint32_t, uint64_t entry) {
      table.set(slot, format_.bit(entry) ? 0 : format_.without_bit(entry));
    });
    return false;
  }
  for_each_homed(child, region, [&](uint32_t slot, uint32_t, uint64_t) { child.set(slot, 0); });
  child.measure(region);
  own.word() = own.word().with(table.depth, own.word().count() + its.word().count());
  its.word() = its.word().with(kAbsent, 0);
  return true;
}

IndexCounts Index::counts() const {
  IndexCounts counts = {
      .tables = live_count_.load(std::memory_order_relaxed),
      .regions_moved = regions_moved_.load(std::memory_order_relaxed),
      .depth = static_cast<unsigned>(std::popcount(directory_mask_.load(std::memory_order_relaxed)))};
  const uint32_t tables = table_count_.load(std::memory_order_acquire);
  for (uint32_t number = 0; number < tables; ++number) counts.entries += table(number).count();
  counts.memory_bytes = counts.tables * kTableBytes + tables * sizeof(Table) + sizeof(Index) +
                        (directory_mask_.load(std::memory_order_relaxed) + 1) * sizeof(std::atomic<Table*>);
  return counts;
}

void Index::verify() const {
  for (uint32_t number = 0; number < table_count_.load(std::memory_order_relaxed); ++number) {
    const Table& own = table(number);
    uint32_t homed[kRegions] = {}, moved = 0;
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      const uint64_t entry = own.at(slot);
      if (entry == 0) continue;
      CHECK_NE(format_.tag(entry), 0u);
      ++homed[region_of(slot_at(slot, kSlots - EntryFormat::offset(entry)))];
    }
    for (uint32_t region = 0; region < kRegions; ++region) {
      const RegionWord word{own.words[region].load(std::memory_order_relaxed)};
      CHECK(!word.is_locked());
      CHECK_EQ(word.count(), homed[region]);
      if (word.depth() == kAbsent) {
        CHECK(own.parent != nullptr && word.count() == 0);
        continue;
      }
      moved += word.depth() == own.depth + 1;
      CHECK(word.depth() == own.depth ||
            (word.depth() == own.depth + 1 &&
             own.change.load(std::memory_order_relaxed) != Table::Change::kNone));
    }
    if (own.change.load(std::memory_order_relaxed) != Table::Change::kNone) CHECK_EQ(moved, own.moved_count);
  }
}

}  // namespace kv
