// Restores an index from images.
//
// Images show different moments: a table's may be from before a split, and its child's from after it. So the depth that each region of each table will
// have, its goal, is decided first. Goals
//  1 are no less than the depths in the image
//  2 separate a table's entries from those of all its children that have homes; and a table has a child for each bit that it is deeper than at its birth
//  3 are such as a table can have, whether it is being split or not: they differ by 1 at most, and a child that a split is filling is not split itself
// Then every entry moves to where the bits of its tag lead. Nearly all are there already.
#include <algorithm>

#include "base/check.h"
#include "kv/index/index_inside.h"

namespace kv {

namespace {

// Tables without an image were made between others while images were taken. At most this many are accepted for each image, plus kTablesBeside.
constexpr uint32_t kTablesForImage = 4;
constexpr uint32_t kTablesBeside = 256;

unsigned most(const Table& table) {
  unsigned depth = table.birth_depth;
  for (uint8_t goal : table.goals)
    if (goal != kAbsent) depth = std::max<unsigned>(depth, goal);
  return depth;
}

// Raises the goals of the regions that have homes to at least this depth.
void raise(Table& table, unsigned depth) {
  for (uint8_t& goal : table.goals)
    if (goal != kAbsent) goal = static_cast<uint8_t>(std::max<unsigned>(goal, depth));
}

bool is_parted(const Table& table, unsigned depth) {
  return std::ranges::all_of(table.goals, [&](uint8_t goal) { return goal == kAbsent || goal == depth; });
}

// Is the entry in that home's neighbourhood, at whatever offset?
bool holds(const Table& table, uint32_t home, uint64_t entry) {
  for (uint32_t offset = 0; offset < kNeighbourhood; ++offset)
    if (table.at(slot_at(home, offset)) == EntryFormat::with_offset(entry, offset)) return true;
  return false;
}

base::Expected<void> strange() { return base::failure(EBADMSG, "index: an image holds what no table can"); }

}  // namespace

base::Expected<void> Index::restore_shape(const TableShape& shape) {
  if (!shape.is_possible()) return strange();
  if (image_count_++ == 0) {
    CHECK(table_count() == 1 && table(0).count() == 0);
    for (auto& word : table(0).words)
      word.store(RegionWord{0}.with(kAbsent, 0).bits, std::memory_order_relaxed);
  }
  Table* own = &table(0);
  for (uint64_t left = shape.prefix; left != 0 && own != nullptr; left &= left - 1)
    own = restored_child(*own, static_cast<unsigned>(std::countr_zero(left)));
  if (own == nullptr) return base::failure(ENOMEM, "index: no memory for what its images hold");
  for (uint32_t region = 0; region < kRegions; ++region) {
    if (own->goals[region] != kAbsent) return base::failure(EBADMSG, "index: two images of one table");
    own->words[region].store(RegionWord{0}.with(shape.depths[region], 0).bits, std::memory_order_relaxed);
  }
  std::ranges::copy(shape.depths, own->goals);
  return {};
}

base::Expected<void> Index::restore_slots(const TableImage& image) {
  const Table* own = &table(0);
  for (uint64_t left = image.shape.prefix; left != 0; left &= left - 1)
    // Pairs with the release in child_of(): other threads may be restoring shapes meanwhile.
    own = own->children[std::countr_zero(left)].load(std::memory_order_acquire);
  std::atomic<uint64_t>* const slots = own->slots.load(std::memory_order_relaxed);
  const uint32_t present = image.shape.present();
  uint32_t strange_count = 0;
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const uint64_t entry = image.slots[slot];
    const uint32_t home = slot_at(slot, kSlots - EntryFormat::offset(entry));
    const bool is_possible = format_.tag(entry) != 0 && (present >> region_of(home) & 1) != 0;
    strange_count += entry != 0 && !is_possible;
    slots[slot].store(entry, std::memory_order_relaxed);
  }
  if (strange_count != 0) return strange();
  return {};
}

// The table's child for hashes with a 1 after `bit` bits. Null: out of memory, or there are too many tables without an image.
Table* Index::restored_child(Table& table, unsigned bit) {
  if (Table* const child = table.children[bit].load(std::memory_order_relaxed); child != nullptr)
    return child;
  if (table_count() >= uint64_t{kTablesForImage} * image_count_ + kTablesBeside) return nullptr;
  return child_of(table, bit);
}

base::Expected<void> Index::join_images() {
  for (uint32_t number = table_count(); --number > 0;) {
    const Table& own = table(number);
    for (uint32_t region = 0; region < kRegions; ++region) {
      uint8_t& goal = own.parent->goals[region];
      if (own.goals[region] != kAbsent && (goal == kAbsent || goal < own.birth_depth))
        goal = static_cast<uint8_t>(own.birth_depth);
    }
  }
  for (uint8_t& goal : table(0).goals)
    if (goal == kAbsent) goal = 0;
  // Tables that set_goals() adds come later in this loop.
  for (uint32_t number = 0; number < table_count(); ++number)
    if (!set_goals(table(number))) return base::failure(ENOMEM, "index: no memory for what its images hold");
  // Children first: then what a child gets from its parent is as deep as what it has already.
  for (uint32_t number = table_count(); number-- > 0;)
    for (uint32_t region = 0; region < kRegions; ++region)
      if (!deepen(table(number), region))
        return base::failure(EBADMSG, "index: its images cannot be put together");
  return {};
}

// False: there is no memory. REQUIRES: the goals of the parent are set.
bool Index::set_goals(Table& table) {
  const unsigned depth = most(table);
  if (depth == table.birth_depth) return true;
  raise(table, depth - 1);
  if (!is_parted(table, depth)) {
    const Table* const last = restored_child(table, depth - 1);
    if (last == nullptr) return false;
    if (!is_parted(*last, last->birth_depth)) raise(table, depth);
  }
  for (unsigned bit = table.birth_depth; bit < depth; ++bit) {
    Table* const child = restored_child(table, bit);
    if (child == nullptr) return false;
    for (uint32_t region = 0; region < kRegions; ++region)
      if (table.goals[region] != kAbsent && table.goals[region] > bit && child->goals[region] == kAbsent)
        child->goals[region] = static_cast<uint8_t>(child->birth_depth);
  }
  return true;
}

// Moves the image's entries of a region to where its goal puts them. False: there is no room, or an entry has too few bits left.
bool Index::deepen(Table& table, uint32_t region) {
  const unsigned depth = RegionWord{table.words[region].load(std::memory_order_relaxed)}.depth();
  if (depth == kAbsent || depth == table.goals[region]) return true;
  bool fits = true;
  for_each_homed(table, region, [&](uint32_t slot, uint32_t home, uint64_t entry) {
    Table* to = &table;
    for (unsigned bit = depth; bit < to->goals[region]; ++bit) {
      fits = fits && format_.has_bit(entry);
      if (!fits) return;
      if (format_.bit(entry)) to = to->children[bit].load(std::memory_order_relaxed);
      entry = format_.without_bit(entry);
    }
    table.set(slot, to == &table ? entry : 0);
    // The child's image may have the entry already, if it was taken after the split.
    if (to != &table && !holds(*to, home, entry)) fits = to->place(home, entry, true);
  });
  return fits;
}

void Index::sift(uint32_t number, Keep keep, const void* context) {
  Table& table = this->table(number);
  uint32_t counts[kRegions] = {};
  for (auto& reach : table.reaches) reach.store(0, std::memory_order_relaxed);
  std::atomic<uint64_t>* const slots = table.slots.load(std::memory_order_relaxed);
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const uint64_t entry = slots[slot].load(std::memory_order_relaxed);
    if (entry == 0) continue;
    if (!keep(context, format_.address(entry), EntryFormat::size(entry))) {
      slots[slot].store(0, std::memory_order_relaxed);
      continue;
    }
    const uint32_t offset = EntryFormat::offset(entry), home = slot_at(slot, kSlots - offset);
    ++counts[region_of(home)];
    std::atomic<uint8_t>& reach = table.reaches[home / kReachHomes];
    const auto groups = static_cast<uint8_t>(offset / kGroup + 1);
    if (reach.load(std::memory_order_relaxed) < groups) reach.store(groups, std::memory_order_relaxed);
  }
  table.depth = most(table);
  if (!is_parted(table, table.depth)) {
    --table.depth;
    table.change.store(Table::Change::kSplit, std::memory_order_relaxed);
  }
  table.moved_count = 0;
  for (uint32_t region = 0; region < kRegions; ++region) {
    table.moved_count += table.goals[region] == table.depth + 1;
    table.words[region].store(RegionWord{0}.with(table.goals[region], counts[region]).bits,
                              std::memory_order_relaxed);
  }
}

void Index::end_restore() {
  for (uint32_t number = 0; number < table_count(); ++number) publish(table(number), table(number));
  live_count_.store(table_count(), std::memory_order_relaxed);
}

}  // namespace kv
