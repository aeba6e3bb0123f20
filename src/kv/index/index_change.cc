// Growth and shrinking of the index: regions that move between a table and its child.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "kv/index/index_inside.h"
#include "sys/memory.h"

namespace kv {

namespace {

// A table and its child are merged when their entries together fill no more than this much of one.
constexpr uint64_t kMergeBelow = kSlots * 2 / 5;
// A table of random hashes takes this many entries before it has to grow.
constexpr uint64_t kReserved = kSlots * 9 / 10;

}  // namespace

bool Index::reserve(uint64_t entries) {
  unsigned depth = 0;
  while ((kReserved << depth) < entries) ++depth;
  return grow_to(depth);
}

void Index::begin_wide() {
  // That of an index with an entry for each address, or with as many tables as there can be.
  const int depth_most = std::min(std::countr_zero(format_.addresses()) - static_cast<int>(kHomeBits) + 1,
                                  std::countr_zero(kMaxChunks * kChunkTables));
  const int bits = static_cast<int>(format_.tag_bits()) - 1;  // of the hash, in a whole tag
  least_depth_ = static_cast<unsigned>(std::max(0, depth_most - bits));
  static_cast<void>(grow_to(least_depth_));
}

// Splits tables until each is chosen by so many bits. False: there is no memory, or an entry has no bit left.
bool Index::grow_to(unsigned depth) {
  // Tables that a split adds come later in this loop.
  for (uint32_t number = 0; number < table_count_.load(std::memory_order_relaxed); ++number) {
    Table& own = table(number);
    sys::LockGuard guard(own.change_lock);
    if (RegionWord{own.words[0].load(std::memory_order_relaxed)}.depth() == kAbsent) continue;
    while (own.depth < depth)
      if (!begin_split(own) || !finish_split(own)) return false;
  }
  return true;
}

// Makes room for a home of this region that had none when the region's depth was `depth`. False: it cannot.
bool Index::grow(Table& table, uint32_t region, unsigned depth) {
  if (Table* const parent = table.parent; parent != nullptr) {
    // The parent's lock is held throughout, so that no merge of this table begins (invariant 4).
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
    return true;  // somebody else has moved it
  if (!begin_split(table)) return false;
  // If the region has been moved and still has no room, this split has to end before the next one.
  return is_to_move(table, region) ? move_region(table, region) : finish_split(table);
}

// If a change of this table, or one between it and its parent, is under way, moves a region of it, unless somebody else is doing so.
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

// Begins to merge this table with its last child, or with its parent, if the two have few entries.
void Index::shrink(Table& table) {
  for (unsigned bit = table.birth_depth; bit < kMaxDepth; ++bit)
    if (Table* const child = table.children[bit].load(std::memory_order_acquire); child != nullptr)
      try_merge(table, *child);
  if (table.parent != nullptr) try_merge(*table.parent, table);
}

void Index::try_merge(Table& parent, Table& child) {
  if (child.birth_depth <= least_depth_) return;
  if (parent.count() + child.count() > kMergeBelow) return;
  if (!parent.change_lock.try_lock()) return;
  if (child.change_lock.try_lock()) {
    if (!is_imaged_.load(std::memory_order_relaxed) &&
        parent.change.load(std::memory_order_relaxed) == Table::Change::kNone &&
        child.change.load(std::memory_order_relaxed) == Table::Change::kNone &&
        parent.depth == child.birth_depth && child.depth == child.birth_depth)
      begin_merge(parent, child);
    child.change_lock.unlock();
  }
  parent.change_lock.unlock();
}

// The table's child for hashes with a 1 after `bit` bits; made if need be. Null: out of memory. REQUIRES: change_lock.
Table* Index::child_of(Table& table, unsigned bit) {
  std::atomic<Table*>& child = table.children[bit];
  if (Table* const known = child.load(std::memory_order_relaxed); known != nullptr) return known;
  Table* const made = new_table(&table, table.prefix | uint64_t{1} << bit, bit + 1);
  child.store(made, std::memory_order_release);  // pairs with the acquire in nearer()
  return made;
}

// True: a split is under way afterwards. REQUIRES: change_lock.
bool Index::begin_split(Table& table) {
  if (table.change.load(std::memory_order_relaxed) == Table::Change::kMerge)
    table.change.store(Table::Change::kSplit, std::memory_order_relaxed);
  if (table.change.load(std::memory_order_relaxed) == Table::Change::kSplit) return true;
  if (table.depth + 1 >= kMaxDepth) return false;
  if (child_of(table, table.depth) == nullptr) return false;
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

// Moves a region that is to be moved; the last one ends the change. REQUIRES: change_lock.
bool Index::move_region(Table& table, uint32_t region) {
  Table& child = *table.children[table.depth].load(std::memory_order_relaxed);
  if (table.change.load(std::memory_order_relaxed) == Table::Change::kSplit) {
    if (!move_out(table, child, region)) return false;
    ++table.moved_count;
  } else if (move_back(table, child, region)) {
    --table.moved_count;
  } else {
    // The region cannot be merged, so the table has to stay split: the merge becomes a split again.
    table.change.store(Table::Change::kSplit, std::memory_order_relaxed);
  }
  regions_moved_.fetch_add(1, std::memory_order_relaxed);
  end_change(table, child);
  return true;
}

// True: the change has ended as a split. REQUIRES: change_lock, a change under way.
bool Index::finish_split(Table& table) {
  table.change.store(Table::Change::kSplit, std::memory_order_relaxed);
  for (uint32_t region = 0; region < kRegions; ++region)
    if (is_to_move(table, region) && !move_region(table, region)) return false;
  // A merge that has moved nothing yet leaves nothing to move back: it is ended here.
  if (table.change.load(std::memory_order_relaxed) != Table::Change::kNone)
    end_change(table, *table.children[table.depth].load(std::memory_order_relaxed));
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

// Makes the directory lead to `table` for the hashes of `child`.
void Index::publish(Table& child, Table& table) {
  if (child.birth_depth > kMaxDirectoryBits) return;
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

// Moves the entries of the region's homes whose next bit is 1 to the child: all or none. False: there is no room, or an entry has no bit left.
bool Index::move_out(Table& table, Table& child, uint32_t region) {
  RegionLocks own(table, region, true), its(child, region, true);
  if (own.word().count() == 0) {  // an index that grows in advance: the memory of its slots is not touched
    its.word() = its.word().with(table.depth + 1, 0);
    own.word() = own.word().with(table.depth + 1, 0);
    return true;
  }
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

// Takes the child's entries of the region's homes: all or none. False: there is no room.
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

}  // namespace kv
