// Makes regions of a stored table, and takes checkpoints.
#include <algorithm>
#include <new>
#include <utility>

#include "base/ids.h"
#include "batch/stored/stored_table.h"
#include "sys/kernel.h"

namespace batch {
namespace {

constexpr uint64_t kErrorNs = 10'000'000;  // after an error, until the next try

}  // namespace

void StoredTable::run_maker(void* argument) {
  Thread& self = *static_cast<Thread*>(argument);
  StoredTable& table = *self.table;
  sys::LockGuard scope(table.lock_);
  table.make_while_needed(self.maker);
}

void StoredTable::make_while_needed(Maker& maker) {
  while (!ends_) {
    const uint32_t index = wants_making() ? choose() : kNone;
    if (index == kNone) {
      wait();
      continue;
    }
    if (auto made = make(index, maker); !made) {
      if (made.error().number == EAGAIN) continue;
      error_ = made.error();
      ++error_count_;
      event_.notify_all();
      // Waits for the full time, although others notify meanwhile.
      const uint64_t until = sys::monotonic_ns() + kErrorNs;
      for (uint64_t now; !ends_ && (now = sys::monotonic_ns()) < until;) wait(until - now);
    }
  }
}

// The next region that has staged changes and is not being made.
uint32_t StoredTable::choose() {
  if (const uint32_t index = std::exchange(long_list_, kNone); index != kNone)
    if (!regions_[index].is_making && !regions_[index].staged.is_empty()) return index;
  for (size_t i = 0; i < regions_.size(); ++i) {
    const uint32_t index = find(cursor_);
    const Region& region = regions_[index];
    cursor_ = region.end();
    if (!region.is_making && !region.staged.is_empty()) return index;
  }
  return kNone;
}

base::Expected<void> StoredTable::make_all(Maker& maker) {
  ++flusher_count_;
  event_.notify_all();
  base::Expected<void> result;
  for (uint64_t position = 0; result;) {
    const uint32_t index = find(position);
    Region& region = regions_[index];
    if (region.is_making) {
      wait();
      continue;
    }
    // What is staged for the region or its parts from now on came after the call.
    const uint64_t end = region.end();
    if (!region.staged.is_empty()) result = make(index, maker);
    if (!result && result.error().number == EAGAIN) {
      result = make_others(index, maker);
      continue;
    }
    position = end;
    if (position == 0) break;
  }
  --flusher_count_;
  return result;
}

// Fails if changes have been dropped for lack of room since it last failed.
base::Expected<void> StoredTable::tell_dropped() {
  if (!std::exchange(has_dropped_, false)) return {};
  return base::failure(ENOSPC, "table: some records have no room: too many keys are near each other");
}

// Makes some other region, or waits until other threads have made one, so that there are chunks for this region's parts.
base::Expected<void> StoredTable::make_others(uint32_t index, Maker& maker) {
  for (uint64_t position = regions_[index].end(); find(position) != index;
       position = regions_[find(position)].end()) {
    const uint32_t other = find(position);
    if (regions_[other].is_making || regions_[other].staged.is_empty()) continue;
    auto made = make(other, maker);
    if (made || made.error().number != EAGAIN) return made;
  }
  wait(kErrorNs);
  return {};
}

// 1 the maker takes over the region's list
// 2 its changes are made, without the lock; the result may be several parts
// 3 the parts get slots
// 4 they are written there, without the lock
// 5 they take the region's place
// If a step fails, everything is as it was before step 1. EAGAIN: there are too few chunks to distribute the changes that were staged meanwhile among the
// parts; other regions have to be made first.
base::Expected<void> StoredTable::make(uint32_t index, Maker& maker) {
  Region& region = regions_[index];
  region.is_making = true;
  region.making = region.staged;
  region.making_from = region.staged_from;
  region.staged = {};
  const uint64_t made = is_replaying_ ? replayed_ : sequence_;
  maker.parts.clear();
  const auto result = make_parts(region, maker);
  base::Expected<void> done;
  if (result)
    done = write_parts(region, made, maker);
  else
    done = std::unexpected(result.error());
  if (done) {
    counts_.records += result->inserted - result->removed;
    counts_.missed += result->missed;
    counts_.dropped += result->dropped;
    has_dropped_ |= result->dropped > 0;
    ++counts_.regions_made;
    counts_.changes_made += region.making.count;
    install(index, maker, made);
  } else {
    put_back(region, maker);
  }
  region.is_making = false;
  if (region.staged.count >= kLongList) long_list_ = index;
  event_.notify_all();
  return done;
}

// Step 2.
base::Expected<Merge::Result> StoredTable::make_parts(const Region& region, Maker& maker) {
  const MapEntry entry = region.entry;
  const Unlocked scope(*this);
  if (!gather(region.making, {}, maker)) return base::failure(ENOMEM, "table: no memory to make changes");
  return make_records(region.prefix, entry, maker);
}

// Steps 3 and 4. In step 5 install() distributes the changes that were staged meanwhile among the parts. For this it needs a chunk for each part, besides
// those that it frees: they are reserved here.
base::Expected<void> StoredTable::write_parts(const Region& region, uint64_t made, Maker& maker) {
  const uint32_t own_chunks = staged_.chunks_of(region.making);
  const auto parts = static_cast<uint32_t>(maker.parts.size());
  uint32_t reserved = parts > 1 && parts > own_chunks ? parts - own_chunks : 0;
  if (reserved > 0 && staged_.free_count() < reserved_chunks_ + reserved) {
    if (!region.staged.is_empty())
      return base::failure(EAGAIN, "table: no room for changes of what becomes of a region");
    // Keys that lie in clusters may make more parts than there are chunks. Nothing has been staged meanwhile, and nothing will be until step 5:
    // has_room() says no.
    reserved = staged_.chunk_count();
  }
  reserved_chunks_ += reserved;
  auto done = take_slots(maker);
  if (done) {
    ++writing_count_;
    {
      const Unlocked scope(*this);
      for (size_t i = 0; done && i < maker.parts.size(); ++i) done = write_part(maker.parts[i], made, maker);
    }
    --writing_count_;
  }
  reserved_chunks_ -= reserved;
  return done;
}

// Undoes steps 1 and 3: puts the maker's changes before those that were staged meanwhile.
void StoredTable::put_back(Region& region, const Maker& maker) {
  for (const Part& part : maker.parts) slots_.give_back(part.slot);
  staged_.append(region.making, region.staged);
  region.staged = region.making;
  region.staged_from = region.making_from;
  region.making = {};
}

// Sets maker.changes to the changes of both lists, in their order. False: out of memory.
bool StoredTable::gather(const StagedChanges::List& list, const StagedChanges::List& more,
                         Maker& maker) const {
  const uint64_t count = uint64_t{list.count} + more.count;
  if (!maker.change_bytes.reserve(count * sizeof(StoredChange))) return false;
  maker.changes = {reinterpret_cast<StoredChange*>(maker.change_bytes.data()), count};
  uint32_t order = 0;
  const auto add = [&](Code code, const std::byte* record) {
    new (&maker.changes[order]) StoredChange{.position = positions_.of(load_key(record, shape_.key_bytes)),
                                             .order = order,
                                             .code = code,
                                             .record = record};
    ++order;
  };
  staged_.for_each(list, add);
  staged_.for_each(more, add);
  return true;
}

// Reads the records of a slot into maker.records. Returns how many there are.
base::Expected<uint64_t> StoredTable::read_records(const MapEntry& entry, Maker& maker) const {
  const uint32_t record_bytes = shape_.record_bytes();
  const uint64_t pages_bytes = entry.page_count * kPageBytes;
  if (!maker.pages.reserve(pages_bytes) || !maker.records.reserve(entry.count * record_bytes))
    return base::failure(ENOMEM, "table: no memory to make changes");
  const BucketStore::Piece piece = {.offset = slot_offset(entry.slot), .to = maker.pages.first(pages_bytes)};
  if (entry.page_count > 0)
    if (auto read = maker.access->read({&piece, 1}); !read) return std::unexpected(read.error());
  uint64_t count = 0;
  for (uint32_t page = 0; page < entry.page_count; ++page) {
    const std::span bytes = piece.to.subspan(page * kPageBytes, kPageBytes);
    uint32_t page_count = 0;
    if (!read_page(shape_, bytes, entry.made, page_count) || page_count > entry.count - count)
      return std::unexpected(damaged(slot_offset(entry.slot) + page * kPageBytes));
    memcpy(maker.records.data() + count * record_bytes, page_records(bytes),
           size_t{page_count} * record_bytes);
    count += page_count;
  }
  if (count != entry.count) return std::unexpected(damaged(slot_offset(entry.slot)));
  return count;
}

// Makes maker.changes in the records of the slot, and cuts the result into parts. If too many keys for one part lie too close to each other, no records are
// inserted there.
base::Expected<Merge::Result> StoredTable::make_records(uint64_t prefix, const MapEntry& entry,
                                                        Maker& maker) const {
  const auto count = read_records(entry, maker);
  if (!count) return std::unexpected(count.error());
  if (!maker.made_records.reserve((*count + maker.changes.size()) * shape_.record_bytes()))
    return base::failure(ENOMEM, "table: no memory to make changes");
  maker.full.clear();
  for (;;) {
    const Merge::Result made =
        merge_->run(maker.records.data(), *count, maker.changes, maker.full, maker.made_records.data());
    maker.parts.clear();
    if (cut(maker, 0, made.count, entry.depth, prefix)) return made;
  }
}

base::Error StoredTable::damaged(uint64_t offset) const {
  return base::Error::of(EBADMSG, "table: the page of ", store_->name(), " at offset ", offset,
                         " is damaged; restore the file");
}

// Cuts the records [begin, end), which are those of the region with this depth and prefix, into parts that each fit into a slot. False: too many lie in
// the smallest possible region, which was added to maker.full.
bool StoredTable::cut(Maker& maker, uint64_t begin, uint64_t end, uint32_t depth, uint64_t prefix) const {
  if (end - begin <= records_of_slot()) {
    Part& part = maker.parts.emplace_back();
    part.depth = depth;
    part.prefix = prefix;
    part.begin = begin;
    part.count = end - begin;
    return true;
  }
  if (depth == kMaxDepth) {
    maker.full.push_back({prefix, prefix + ((uint64_t{1} << (64 - depth)) - 1)});
    return false;
  }
  const uint64_t half = prefix | uint64_t{1} << (63 - depth);
  uint64_t low = begin, high = end;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const std::byte* const record = maker.made_records.data() + middle * shape_.record_bytes();
    if (positions_.of(load_key(record, shape_.key_bytes)) < half)
      low = middle + 1;
    else
      high = middle;
  }
  return cut(maker, begin, low, depth + 1, prefix) && cut(maker, low, end, depth + 1, half);
}

base::Expected<void> StoredTable::write_part(Part& part, uint64_t made, Maker& maker) const {
  if (part.count == 0) return {};
  const uint32_t record_bytes = shape_.record_bytes();
  part.page_count = static_cast<uint32_t>((part.count + page_records_ - 1) / page_records_);
  const uint64_t bytes = part.page_count * kPageBytes;
  if (!maker.pages.reserve(bytes)) return base::failure(ENOMEM, "table: no memory to make changes");
  for (uint32_t i = 0; i < part.page_count; ++i) {
    const uint64_t first = uint64_t{i} * page_records_;
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(page_records_, part.count - first));
    const std::byte* const from = maker.made_records.data() + (part.begin + first) * record_bytes;
    const std::span page = maker.pages.first(bytes).subspan(i * kPageBytes, kPageBytes);
    memcpy(page.data() + sizeof(PageHeader), from, size_t{count} * record_bytes);
    seal_page(shape_, page, made, count);
    part.fences[i] = fence_of(positions_.of(load_key(from, shape_.key_bytes)), part.depth);
  }
  return maker.access->write(slot_offset(part.slot), maker.pages.first(bytes));
}

// Step 5: the parts take the region's place, the first one in its object.
void StoredTable::install(uint32_t index, Maker& maker, uint64_t made) {
  slots_.give_up(regions_[index].entry.slot);
  staged_.clear(regions_[index].making);
  for (size_t i = 0; i < maker.parts.size(); ++i) {
    const Part& part = maker.parts[i];
    const auto at = i == 0 ? index : static_cast<uint32_t>(regions_.size());
    Region& region = i == 0 ? regions_[index] : regions_.emplace_back();
    region.entry = {.slot = part.slot,
                    .made = made,
                    .count = part.count,
                    .depth = part.depth,
                    .page_count = part.page_count};
    region.prefix = part.prefix;
    memcpy(region.fences, part.fences, part.page_count * sizeof(uint32_t));
    ++region.version;
    if (maker.parts.size() > 1) set_directory(region, at);
  }
  if (maker.parts.size() == 1) return;
  // Distributes what was staged meanwhile.
  const uint64_t from = regions_[index].staged_from;
  StagedChanges::List list = regions_[index].staged;
  regions_[index].staged = {};
  staged_.drain(list, [&](Code code, const std::byte* record) {
    const Key key = load_key(record, shape_.key_bytes);
    Region& region = regions_[find(positions_.of(key))];
    region.staged_from = from;
    staged_.append(region.staged, code, key, record, record + shape_.key_bytes);
  });
}

void StoredTable::set_directory(const Region& region, uint32_t index) {
  if (region.entry.depth > depth_ || directory_.empty()) {
    std::vector<uint32_t> larger(size_t{1} << std::max(depth_, region.entry.depth));
    const uint32_t more = std::max(depth_, region.entry.depth) - depth_;
    if (!directory_.empty())
      for (size_t i = 0; i < larger.size(); ++i) larger[i] = directory_[i >> more];
    depth_ += more;
    directory_ = std::move(larger);
  }
  const uint64_t begin = depth_ == 0 ? 0 : region.prefix >> (64 - depth_);
  const uint64_t count = uint64_t{1} << (depth_ - region.entry.depth);
  std::fill_n(directory_.begin() + static_cast<ptrdiff_t>(begin), count, index);
}

// ---- Slots

// Takes a slot for each part that has records.
base::Expected<void> StoredTable::take_slots(Maker& maker) {
  for (Part& part : maker.parts) {
    while (part.count > 0) {
      // Some slots are kept for the next checkpoint's map.
      const bool is_short = slots_.free_count() <= map_slot_count() + 1;
      if (!is_short && (part.slot = slots_.take()) != 0) break;
      if (is_checkpointing_) {
        wait();
        continue;
      }
      if (!is_short && slots_.raise_limit()) continue;
      // Other makers will give up slots when they have written their parts.
      if (!slots_.has_given_up() && writing_count_ > 0) {
        wait();
        continue;
      }
      if (!slots_.has_given_up())
        return base::failure(ENOSPC, "table: no room left in ", store_->name(), ", which has ",
                             store_->bytes(), " bytes; make it larger");
      if (auto done = checkpoint(*maker.access); !done) return done;
    }
  }
  return {};
}

// ---- Checkpoints

// The largest size that a map of the present regions may have: if each region fills its slot.
uint64_t StoredTable::map_bytes_most() const {
  return regions_.size() * (sizeof(MapEntry) + slot_pages_ * sizeof(uint32_t));
}

uint64_t StoredTable::map_slot_count() const {
  return map_bytes_most() / (slot_bytes() - sizeof(MapHeader)) + 1;
}

// The position of the first record in the log that a start after a crash would need.
uint64_t StoredTable::log_tail() const {
  uint64_t tail = is_replaying_ ? record_begin_ : log_->end();
  for (const Region& region : regions_) tail = std::min(tail, region.oldest());
  return tail;
}

std::vector<std::byte> StoredTable::make_map() const {
  std::vector<std::byte> map;
  map.reserve(map_bytes_most());
  const auto add = [&](const void* from, size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(from);
    map.insert(map.end(), begin, begin + bytes);
  };
  uint64_t position = 0;
  do {
    const Region& region = regions_[find(position)];
    add(&region.entry, sizeof region.entry);
    add(region.fences, region.entry.page_count * sizeof(uint32_t));
    position = region.end();
  } while (position != 0);
  return map;
}

base::Expected<void> StoredTable::write_map(BucketStore::Access& access, std::span<const std::byte> map,
                                            std::span<const uint64_t> slots, uint64_t number) const {
  Bytes slot;
  if (!slot.reserve(slot_bytes())) return base::failure(ENOMEM, "table: no memory for a checkpoint");
  for (size_t i = 0; i < slots.size(); ++i) {
    const uint64_t bytes = std::min<uint64_t>(map.size(), slot_bytes() - sizeof(MapHeader));
    memcpy(slot.data() + sizeof(MapHeader), map.data(), bytes);
    map = map.subspan(bytes);
    const uint64_t used = base::round_up(sizeof(MapHeader) + bytes, kPageBytes);
    memset(slot.data() + sizeof(MapHeader) + bytes, 0, used - sizeof(MapHeader) - bytes);
    seal_map_slot(slot.first(used),
                  {.number = number, .next_slot = i + 1 < slots.size() ? slots[i + 1] : 0, .bytes = bytes});
    if (auto written = access.write(slot_offset(slots[i]), slot.first(used)); !written) return written;
  }
  return {};
}

base::Expected<void> StoredTable::write_superblock(BucketStore::Access& access, Superblock superblock) const {
  superblock.seal();
  std::byte page[kPageBytes] = {};
  memcpy(page, &superblock, sizeof superblock);
  if (auto written = access.write(superblock.number % 2 * kPageBytes, page); !written) return written;
  return access.sync();
}

base::Expected<void> StoredTable::checkpoint(BucketStore::Access& access, bool is_last) {
  while (is_checkpointing_) wait();
  is_checkpointing_ = true;
  Superblock next = superblock_;
  ++next.number;
  next.sequence = sequence_;
  if (log_ != nullptr) next.log_tail = log_tail();
  if (is_last) next.log_id = 0;
  const std::vector<std::byte> map = make_map();
  next.map_bytes = map.size();
  const uint64_t slot_data = slot_bytes() - sizeof(MapHeader);
  std::vector<uint64_t> map_slots((map.size() + slot_data - 1) / slot_data);
  for (uint64_t& slot : map_slots) slot = slots_.take_anywhere();
  const std::vector<uint64_t> given_up = slots_.take_given_up();
  next.map_slot = map_slots[0];
  base::Expected<void> done;
  bool may_be_there = false;
  if (std::ranges::find(map_slots, uint64_t{0}) != map_slots.end())
    done = base::failure(ENOSPC, "table: no room left for a map in ", store_->name());
  if (done) {
    const Unlocked scope(*this);
    done = write_map(access, map, map_slots, next.number);
    // This also flushes what makers have written to the slots that the map names.
    if (done) done = access.sync();
  }
  // Invariant 4.
  if (done && log_ != nullptr && next.log_id != 0 && !is_replaying_) done = sync_log();
  if (done) {
    may_be_there = true;
    const Unlocked scope(*this);
    done = write_superblock(access, next);
  }
  if (done) {
    for (const uint64_t slot : given_up) slots_.give_back(slot);
    for (const uint64_t slot : map_slots_) slots_.give_back(slot);
    map_slots_ = std::move(map_slots);
    superblock_ = next;
    if (log_ != nullptr && !is_replaying_) log_->set_tail(next.log_tail);
    ++counts_.checkpoints;
  } else {
    for (const uint64_t slot : given_up) slots_.give_up(slot);
    // If writing the superblock failed, it may nevertheless be on the medium: its map's slots stay in use until the next checkpoint.
    for (const uint64_t slot : map_slots) may_be_there ? slots_.give_up(slot) : slots_.give_back(slot);
  }
  is_checkpointing_ = false;
  event_.notify_all();
  return done;
}

}  // namespace batch
