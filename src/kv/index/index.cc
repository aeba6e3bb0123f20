#include "kv/index/index.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/ids.h"
#include "kv/index/index_inside.h"
#include "sys/memory.h"
#include "sys/spin.h"

namespace kv {

namespace {

constexpr size_t kAhead = 12;  // lookups whose cache misses overlap
constexpr size_t kDirectoryBytes = (size_t{1} << kMaxDirectoryBits) * sizeof(std::atomic<Table*>);
// With this few entries in a region, a merge of its table is considered, once in kSparseEvery removals.
constexpr uint32_t kSparse = kRegionSlots / 5;
constexpr uint32_t kSparseEvery = 32;

}  // namespace

base::Expected<Index*> Index::open(unsigned address_bits) {
  CHECK(address_bits >= EntryFormat::kMinAddressBits && address_bits <= EntryFormat::kMaxAddressBits);
  auto own = sys::map_anonymous(base::round_up(sizeof(Index), base::kOsPageBytes), "an index");
  if (!own) return std::unexpected(own.error());
  auto* const index = new (*own) Index(address_bits);
  auto directory = sys::map_anonymous(kDirectoryBytes, "an index's directory");
  if (!directory) {
    index->close();
    return std::unexpected(directory.error());
  }
  index->directory_ = reinterpret_cast<std::atomic<Table*>*>(*directory);
  auto chunks = sys::map_anonymous(kMaxChunks * sizeof(Chunk*), "an index's tables");
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
  sys::unmap(chunks_, kMaxChunks * sizeof(Chunk*));
  sys::unmap(directory_, kDirectoryBytes);
  this->~Index();
  sys::unmap(this, base::round_up(sizeof(Index), base::kOsPageBytes));
}

// --- memory ---

// Memory of kChunkBytes, aligned to a huge page: right below that of the previous chunk if possible, so that the kernel keeps one mapping for both. A
// process may have 65,530 mappings, and an index of ten billion keys has as many chunks. Null: out of memory.
char* Index::map_slots() {
  if (char* const last = last_slots_.load(std::memory_order_relaxed); last != nullptr) {
    auto beside = sys::map_anonymous(kChunkBytes, "an index's tables", last - kChunkBytes);
    if (!beside) return nullptr;
    if (*beside == last - kChunkBytes) return *beside;
    sys::unmap(*beside, kChunkBytes);
  }
  auto mapped = sys::map_anonymous(2 * kChunkBytes, "an index's tables");
  if (!mapped) return nullptr;
  char* const slots =
      reinterpret_cast<char*>(base::round_up(reinterpret_cast<uint64_t>(*mapped), kChunkBytes));
  if (slots != *mapped) sys::unmap(*mapped, slots - *mapped);
  sys::unmap(slots + kChunkBytes, *mapped + kChunkBytes - slots);
  return slots;
}

// The memory is zeros, which are free slots.
Index::Chunk* Index::new_chunk(bool huge) {
  auto own = sys::map_anonymous(base::round_up(sizeof(Chunk), base::kOsPageBytes), "an index's tables");
  if (!own) return nullptr;
  char* const slots = map_slots();
  if (slots == nullptr) {
    sys::unmap(*own, base::round_up(sizeof(Chunk), base::kOsPageBytes));
    return nullptr;
  }
  last_slots_.store(slots, std::memory_order_relaxed);
  auto* const chunk = new (*own) Chunk;
  chunk->slots = slots;
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
    if (number == kMaxChunks * kChunkTables) return nullptr;
    // The first chunk does not use huge pages, and so is filled page by page: a store with few keys takes little memory.
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

// --- lookups and changes of entries ---

Location Index::location(uint64_t entry) const {
  return {.address = format_.address(entry), .size = EntryFormat::size(entry), .found = true};
}

// Calls look(table, depth) for the table of the hash, and again until the neighbourhood that it looks at has not changed during the call.
template <class Look>
void Index::search(uint64_t hash, const Look& look) const {
  const uint32_t home = home_of(hash), region = region_of(home), next = next_region(region);
  const bool both = crosses(home);
  int spins = 0;
  for (Table* table = guess(hash);;) {
    // Pairs with the release in Table::unlock().
    const RegionWord word{table->words[region].load(std::memory_order_acquire)};
    const RegionWord other{both ? table->words[next].load(std::memory_order_acquire) : 0};
    if (word.is_locked() || other.is_locked()) {
      sys::spin(spins++);
      continue;
    }
    if (Table* const better = nearer(*table, hash, word.depth()); better != nullptr) {
      table = better;
      continue;
    }
    look(*table, word.depth());
    // Orders look()'s relaxed loads before the second read of the words: pairs with the fence in Table::lock().
    std::atomic_thread_fence(std::memory_order_acquire);
    if (table->words[region].load(std::memory_order_relaxed) == word.bits &&
        (!both || table->words[next].load(std::memory_order_relaxed) == other.bits))
      return;
  }
}

// Calls take(slot, entry) for each entry that may be of the hash's key, until it returns false.
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
  const auto prefetch_at = [&](size_t i) { prefetch_lookup(*guess(hashes[i]), home_of(hashes[i])); };
  const size_t first = std::min(kAhead, hashes.size());
  for (size_t i = 0; i < first; ++i) prefetch_at(i);
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (hashes.size() - i > kAhead) prefetch_at(i + kAhead);
    found[i] = find(hashes[i]);
  }
}

size_t Index::find_all(uint64_t hash, std::span<Location, kMaxCandidates> found) const {
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

Location Index::find_at(uint64_t hash, uint64_t address) const {
  Candidates all;
  const size_t count = find_all(hash, all);
  for (size_t i = 0; i < count; ++i)
    if (all[i].address == address) return all[i];
  return {};
}

void Index::prefetch_lookup(const Table& table, uint32_t home) {
  const std::atomic<uint64_t>* const slots = table.slots.load(std::memory_order_relaxed);
  __builtin_prefetch(&table.words[region_of(home)]);
  __builtin_prefetch(slots + home);
  __builtin_prefetch(slots + slot_at(home, kGroup));
}

void Index::prefetch(uint64_t hash) const {
  const Table& table = *guess(hash);
  const uint32_t home = home_of(hash);
  prefetch_lookup(table, home);
  // A search that does not end in the first group reads the reach, and goes on to the next groups.
  const std::atomic<uint64_t>* const slots = table.slots.load(std::memory_order_relaxed);
  __builtin_prefetch(&table.reaches[home / kReachHomes]);
  for (const uint32_t group : {2, 3}) __builtin_prefetch(slots + slot_at(home, group * kGroup));
}

Index::Inserted Index::insert(uint64_t hash, uint64_t address, uint32_t size, std::span<const uint64_t> known,
                              const Hook<Location>& hook) {
  CHECK_LT(address, format_.addresses());
  const uint32_t home = home_of(hash);
  bool both = crosses(home);
  for (;;) {
    enum class Outcome { kDone, kOther, kNoRoom, kCannotGrow };
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
      if (!table.place(home, format_.make(rest(hash, depth), address, size), both)) {
        // If there is no room although these regions are half empty, the entries share one home, and growth cannot separate them. This is decided
        // under the locks, since others may remove and move entries afterwards.
        return both && locks.count() < kRegionSlots ? Outcome::kCannotGrow : Outcome::kNoRoom;
      }
      locks.word() = locks.word().with(depth, locks.word().count() + 1);
      hook({});
      return Outcome::kDone;
    });
    if (outcome == Outcome::kOther) return Inserted::kOther;
    if (outcome == Outcome::kCannotGrow) return Inserted::kFull;
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

bool Index::replace(uint64_t hash, uint64_t address, uint64_t new_address, uint32_t new_size,
                    const Hook<Location>& hook) {
  CHECK_LT(new_address, format_.addresses());
  const uint32_t home = home_of(hash);
  return locked(hash, crosses(home), [&](Table& table, RegionLocks& locks) {
    const unsigned depth = locks.word().depth();
    bool done = false;
    candidates(table, hash, depth, [&](uint32_t slot, uint64_t entry) {
      if (format_.address(entry) != address) return true;
      hook(location(entry));
      table.set(slot, EntryFormat::with_offset(format_.make(rest(hash, depth), new_address, new_size),
                                               EntryFormat::offset(entry)));
      done = true;
      return false;
    });
    return done;
  });
}

bool Index::remove(uint64_t hash, uint64_t address, const Hook<Location>& hook) {
  const uint32_t home = home_of(hash);
  Table* used = nullptr;
  bool is_sparse = false;
  const bool done = locked(hash, crosses(home), [&](Table& table, RegionLocks& locks) {
    used = &table;
    bool found = false;
    candidates(table, hash, locks.word().depth(), [&](uint32_t slot, uint64_t entry) {
      if (format_.address(entry) != address) return true;
      hook(location(entry));
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
      const uint32_t home = slot_at(slot, kSlots - EntryFormat::offset(entry));
      CHECK_LT(EntryFormat::offset(entry) / kGroup,
               own.reaches[home / kReachHomes].load(std::memory_order_relaxed));
      ++homed[region_of(home)];
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
    for (uint32_t region = 0; region < kRegions && own.parent != nullptr; ++region) {
      const unsigned parents = RegionWord{own.parent->words[region].load(std::memory_order_relaxed)}.depth();
      const unsigned depth = RegionWord{own.words[region].load(std::memory_order_relaxed)}.depth();
      CHECK_EQ(depth != kAbsent, parents != kAbsent && parents >= own.birth_depth);
    }
    if (own.change.load(std::memory_order_relaxed) == Table::Change::kNone) continue;
    CHECK_EQ(moved, own.moved_count);
    const Table& child = *own.children[own.depth].load(std::memory_order_relaxed);
    CHECK(child.change.load(std::memory_order_relaxed) == Table::Change::kNone);
    CHECK_EQ(child.depth, child.birth_depth);
  }
}

}  // namespace kv
