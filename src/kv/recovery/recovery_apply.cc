// Recovery's steps 4 and 5: records of replayed segments go to the index.
//
//  1 Records are counted by part. A part is given by the bits of the hash that choose a table of the index, so all records of a key are in one part
//  2 The index is made as large as the keys need; how many there are is estimated from part 0
//  3 The records of some segments at a time are staged, one part after the other; several threads copy them to places that are known in advance
//  4 Each part of what is staged is applied by one thread. It looks at a table or two, which stay in its CPU's cache, and other threads look at other
//    tables. The order does not matter: of two records of a key the newer one counts, whichever comes first
//
// This is the order of work of the cache-aware batch update (docs/batch.md).
#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "kv/index/entry.h"
#include "kv/recovery/recovery_inside.h"

namespace kv {

namespace {

constexpr uint64_t kPartRecords = 4096;
constexpr uint64_t kMaxParts = 1024;
constexpr size_t kPrefetched = 8;  // records whose cache misses overlap
// How many records are staged at a time: a share of all within these bounds, or those of one segment if they are more.
constexpr uint64_t kStagedShare = 4, kMinStaged = 4096, kMaxStaged = 1 << 20;

// Where the entry at this grain would be if all records had the same size, as they often have. Does not look at the entries, each of which is a
// cache miss. REQUIRES: there are entries.
size_t guess(const FoundSegment& segment, uint32_t grain) {
  const size_t count = segment.entries.size();
  return std::min(count - 1, static_cast<size_t>(grain * uint64_t{count} / segment.footer.used_grains));
}

// The first entry at or after this grain; the end of the entries if there is none; null if there are no entries.
const SummaryEntry* first_from(const FoundSegment& segment, uint32_t grain) {
  const std::vector<SummaryEntry>& entries = segment.entries;
  if (entries.empty()) return nullptr;
  const size_t first = guess(segment, grain);
  if (entries[first].grain == grain) return &entries[first];
  size_t begin = first, end = first;
  for (size_t step = 1; begin > 0 && entries[begin].grain > grain; step *= 2)
    begin = begin > step ? begin - step : 0;
  for (size_t step = 1; end < entries.size() && entries[end].grain < grain; step *= 2)
    end = std::min(entries.size(), end + step);
  return std::ranges::lower_bound(entries.data() + begin, entries.data() + end, grain, {},
                                  &SummaryEntry::grain);
}

}  // namespace

void Recovery::hold(Worker& worker, uint64_t address, uint32_t size) {
  Live& live = worker.live[segment_of(address)];
  live.grains += size_code::grains(size);
  ++live.records;
}

void Recovery::release(Worker& worker, uint64_t address, uint32_t size) {
  Live& live = worker.live[segment_of(address)];
  live.grains -= size_code::grains(size);
  --live.records;
}

// Tombstones count by their segments' footers, not here.
void Recovery::release(Worker& worker, const Known& known) {
  if (known.entry->kind() != RecordKind::kTombstone) release(worker, known.at.address, known.at.size);
}

// The entry of the record at an address; null: none begins there.
base::Expected<const SummaryEntry*> Recovery::entry_at(Worker& worker, uint64_t address) {
  const auto index = static_cast<uint32_t>(segment_of(address));
  FoundSegment& segment = segments_[index];
  if (!segment.is_known) return nullptr;
  // Segments that are not replayed are listed only when they are needed. Pairs with the release in RecoveryReader::list().
  if (!segment.is_listed.load(std::memory_order_acquire)) {
    sys::LockGuard scope(locks_[index % kLocks]);
    if (auto listed = list_once(worker, index); !listed) return std::unexpected(listed.error());
  }
  const uint32_t grain = geometry_.grain_of(address);
  const std::span<const SummaryEntry> entries = segment.entries;
  const SummaryEntry* const at = first_from(segment, grain);
  return at != nullptr && at != entries.data() + entries.size() && at->grain == grain ? at : nullptr;
}

// By the bits of the hash that choose the index's tables, the first one lowest.
uint32_t Recovery::part_of(const KeyHash& hash) const {
  return static_cast<uint32_t>(hash.low >> kHomeBits) & (part_count_ - 1);
}

// Step 4.
base::Expected<void> Recovery::apply_all() {
  uint64_t count = 0;
  for (uint32_t i = 0; i < segments_.size(); ++i)
    if (is_replayed_[i]) count += segments_[i].entries.size();
  if (count == 0) return {};
  part_count_ =
      static_cast<uint32_t>(std::bit_ceil(std::clamp<uint64_t>(count / kPartRecords, 1, kMaxParts)));
  part_ends_.resize(part_count_);
  if (auto counted = for_all_segments(&Recovery::count_parts); !counted) return counted;
  if (recovered_.report.checkpoint == 0 && !reserve())
    return base::failure(ENOMEM, "store: no memory for the index");
  uint64_t most = std::clamp(count / kStagedShare, kMinStaged, kMaxStaged);
  for (const Parted& parted : parted_) most = std::max<uint64_t>(most, parted.count);
  staging_ = std::make_unique_for_overwrite<std::byte[]>(std::min(count, most) * sizeof(Placed));
  for (uint32_t begin = 0, end = 0; begin < segments_.size(); begin = end) {
    for (uint64_t some = 0; end < segments_.size() && some + parted_[end].count <= most; ++end)
      some += parted_[end].count;
    if (auto applied = apply_some(begin, end); !applied) return applied;
  }
  staging_.reset();
  return {};
}

base::Expected<void> Recovery::count_parts(Worker& worker, uint32_t index) {
  if (!is_replayed_[index]) return {};
  Parted& parted = parted_[index];
  parted.parts.resize(part_count_);
  uint64_t last_sequence = 0;
  for (const SummaryEntry& entry : segments_[index].entries) {
    if (!is_to_apply(index, entry)) continue;
    last_sequence = std::max(last_sequence, entry.sequence());
    const uint32_t part = part_of(entry.hash);
    if (part == 0) worker.sample.push_back(entry.hash.low);
    ++parted.parts[part];
    ++parted.count;
  }
  log_.recovered_sequence(last_sequence);
  return {};
}

// Part 0 has all records of its keys: the log has about as many keys as part 0, times the number of parts. A sixteenth less is reserved, since tables
// take more than Index::reserve() counts on: so the index does not become larger than it would by growing.
bool Recovery::reserve() {
  std::vector<uint64_t> sample;
  for (uint32_t i = 0; i < worker_count_; ++i)
    sample.insert(sample.end(), workers_[i].sample.begin(), workers_[i].sample.end());
  std::ranges::sort(sample);
  const auto repeated = std::ranges::unique(sample);
  uint64_t records = 0;
  for (const Parted& parted : parted_) records += parted.count;
  // If hashes are not random, all keys may be in part 0.
  const uint64_t keys = std::min(records, (sample.size() - repeated.size()) * part_count_);
  has_others_ = keys < records - records / 8;
  return index_->reserve(keys - keys / 16);
}

// Stages and applies the records of these segments.
base::Expected<void> Recovery::apply_some(uint32_t begin, uint32_t end) {
  uint32_t staged = 0;
  for (uint32_t part = 0; part < part_count_; ++part) {
    for (uint32_t i = begin; i < end; ++i)
      if (is_replayed_[i]) staged += std::exchange(parted_[i].parts[part], staged);
    part_ends_[part] = staged;
  }
  const auto stage_some = [&](Worker&, uint64_t i, uint64_t) {
    if (is_replayed_[begin + i]) stage(static_cast<uint32_t>(begin + i));
    return base::Expected<void>();
  };
  if (auto done = for_all(end - begin, 1, stage_some); !done) return done;
  return for_all(part_count_, 1, [&](Worker& worker, uint64_t part, uint64_t) {
    return apply(worker, static_cast<uint32_t>(part));
  });
}

void Recovery::stage(uint32_t index) {
  Placed* const staged = staged_records();
  std::vector<uint32_t>& parts = parted_[index].parts;
  for (const SummaryEntry& entry : segments_[index].entries)
    if (is_to_apply(index, entry))
      staged[parts[part_of(entry.hash)]++] = {.entry = entry,
                                              .address = geometry_.address(index, entry.grain)};
}

base::Expected<void> Recovery::apply(Worker& worker, uint32_t part) {
  const uint32_t begin = part == 0 ? 0 : part_ends_[part - 1];
  const std::span all(staged_records() + begin, part_ends_[part] - begin);
  for (size_t i = 0; i < all.size(); ++i) {
    if (i + 2 * kPrefetched < all.size()) index_->prefetch(all[i + 2 * kPrefetched].entry.hash.low);
    if (has_others_ && i + kPrefetched < all.size()) prefetch_other(all[i + kPrefetched].entry);
    for (bool is_applied = false; !is_applied;) {
      auto applied = try_apply(worker, all[i].entry, all[i].address);
      if (!applied) return std::unexpected(applied.error());
      is_applied = *applied;
    }
  }
  return {};
}

// If the index has a record of the key, prefetches the entry that lists it.
void Recovery::prefetch_other(const SummaryEntry& entry) const {
  const Location other = index_->find(entry.hash.low);
  if (!other.found) return;
  const FoundSegment& segment = segments_[segment_of(other.address)];
  // As in entry_at().
  if (!segment.is_listed.load(std::memory_order_acquire) || segment.entries.empty()) return;
  __builtin_prefetch(&segment.entries[guess(segment, geometry_.grain_of(other.address))]);
}

// False: another thread has changed the index meanwhile; to be tried again.
base::Expected<bool> Recovery::try_apply(Worker& worker, const SummaryEntry& entry, uint64_t address) {
  const uint32_t size = size_code::of(entry.grains);
  const bool is_live = entry.kind() != RecordKind::kTombstone;  // tombstones count already
  // Without a checkpoint, what the index has can be told apart: it is all from segments that have been listed.
  if (recovered_.report.checkpoint == 0 &&
      index_->insert(entry.hash.low, address, size, {}) == Index::Inserted::kDone) {
    if (is_live) hold(worker, address, size);
    return true;
  }
  const size_t count = index_->find_all(entry.hash.low, worker.candidates);
  // The newest record of the key. A checkpoint may know two, since images of tables that are split while it is taken show different moments.
  Known known;
  const Location* unknown = nullptr;  // a candidate where no record is known
  for (size_t i = 0; i < count; ++i) {
    const Location candidate = worker.candidates[i];
    worker.others[i] = candidate.address;
    auto found = entry_at(worker, candidate.address);
    if (!found) return std::unexpected(found.error());
    if (*found == nullptr) unknown = &worker.candidates[i];
    Known other = {candidate, *found};
    if (other.entry == nullptr || other.entry->hash != entry.hash) continue;
    if (known.entry == nullptr || other.entry->sequence() > known.entry->sequence()) std::swap(known, other);
    if (other.entry == nullptr) continue;
    if (!index_->remove(entry.hash.low, other.at.address)) return false;
    release(worker, other);
  }
  if (known.entry != nullptr) {
    if (known.entry->sequence() >= entry.sequence()) return true;
    if (!index_->replace(entry.hash.low, known.at.address, address, size)) return false;
    release(worker, known);
    if (is_live) hold(worker, address, size);
    return true;
  }
  if (unknown != nullptr) {
    // Its segment, or what there would list it, cannot be read or is damaged. A replayed record is newer than what a checkpoint knew, and the unknown
    // one is unlikely to be another key's.
    if (!index_->replace(entry.hash.low, unknown->address, address, size)) return false;
    release(worker, unknown->address, unknown->size);
    if (is_live) hold(worker, address, size);
    return true;
  }
  switch (index_->insert(entry.hash.low, address, size, {worker.others, count})) {
    case Index::Inserted::kDone:
      if (is_live) hold(worker, address, size);
      return true;
    case Index::Inserted::kOther: return false;
    case Index::Inserted::kFull: break;
  }
  return base::failure(ENOMEM, "store: no memory for the index");
}

// Step 5.
base::Expected<void> Recovery::end_tombstones(Worker&, uint32_t index) {
  if (!is_replayed_[index] || segments_[index].footer.tombstone_count == 0) return {};
  for (const SummaryEntry& entry : segments_[index].entries)
    if (entry.kind() == RecordKind::kTombstone)
      index_->remove(entry.hash.low, geometry_.address(index, entry.grain));
  return {};
}

}  // namespace kv
