// Images of the index's tables.
#include <emmintrin.h>

#include "base/check.h"
#include "kv/index/index_inside.h"

namespace kv {

namespace {

constexpr int kCopies = 3;  // retries when changes spoil a copy, before those who make changes have to wait

void copy_region(const Table& table, uint32_t region, TableImage& to) {
  const std::atomic<uint64_t>* const slots = table.slots.load(std::memory_order_relaxed);
  for (uint32_t slot = region * kRegionSlots; slot < (region + 1) * kRegionSlots; ++slot)
    to.slots[slot] = slots[slot].load(std::memory_order_relaxed);
}

// Copies without locks. False: somebody has changed the table meanwhile.
bool copy_as_it_was(const Table& table, TableImage& to) {
  uint64_t words[kRegions];
  for (uint32_t region = 0; region < kRegions; ++region) {
    // Pairs with the release in Table::unlock().
    const RegionWord word{table.words[region].load(std::memory_order_acquire)};
    if (word.is_locked()) return false;
    words[region] = word.bits;
    to.shape.depths[region] = static_cast<uint8_t>(word.depth());
  }
  if (to.shape.present() == 0) return true;
  for (uint32_t region = 0; region < kRegions; ++region) {
    copy_region(table, region, to);
    if (table.words[region].load(std::memory_order_relaxed) != words[region]) return false;
  }
  // As in Index::search(): pairs with the fence in Table::lock().
  std::atomic_thread_fence(std::memory_order_acquire);
  for (uint32_t region = 0; region < kRegions; ++region)
    if (table.words[region].load(std::memory_order_relaxed) != words[region]) return false;
  return true;
}

// A region is unlocked only when the next one is locked, since entries of its homes may lie there. Entries of the last region's homes may lie in the first
// region, which stays locked to the end.
void copy_locked(Table& table, TableImage& to) {
  RegionWord words[kRegions];
  words[0] = table.lock(0);
  for (uint32_t region = 0; region < kRegions; ++region) {
    if (region + 1 < kRegions) words[region + 1] = table.lock(region + 1);
    to.shape.depths[region] = static_cast<uint8_t>(words[region].depth());
    copy_region(table, region, to);
    if (region != 0) table.unlock(region, words[region]);
  }
  table.unlock(0, words[0]);
}

}  // namespace

void Index::begin_images() {
  CHECK(!is_imaged_.exchange(true, std::memory_order_relaxed));
  for (uint32_t number = 0; number < table_count(); ++number) {
    Table& own = table(number);
    // Whoever begins a merge reads is_imaged_ under this lock: a merge has begun by now, or will not begin.
    sys::LockGuard guard(own.change_lock);
    if (own.change.load(std::memory_order_relaxed) != Table::Change::kMerge) continue;
    own.change.store(Table::Change::kSplit, std::memory_order_relaxed);
    end_change(own, *own.children[own.depth].load(std::memory_order_relaxed));
  }
}

void Index::end_images() {
  CHECK(is_imaged_.exchange(false, std::memory_order_relaxed));
  // Makes the merges that were put off. Children come first, since a table with children is not merged.
  for (uint32_t number = table_count(); --number > 0;) {
    Table& child = table(number);
    Table& parent = *child.parent;
    try_merge(parent, child);
    sys::LockGuard guard(parent.change_lock);
    for (uint32_t region = 0; region < kRegions; ++region)
      if (parent.change.load(std::memory_order_relaxed) == Table::Change::kMerge &&
          is_to_move(parent, region))
        move_region(parent, region);
  }
}

bool Index::image(uint32_t number, TableImage& to) const {
  CHECK_LT(number, table_count());
  Table& own = table(number);
  to.shape.prefix = own.prefix;
  for (int copies = 0;; ++copies) {
    if (copy_as_it_was(own, to)) break;
    if (copies == kCopies) {
      copy_locked(own, to);
      break;
    }
    _mm_pause();
  }
  return to.shape.present() != 0;
}

}  // namespace kv
