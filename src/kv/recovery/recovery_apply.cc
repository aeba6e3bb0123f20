// Recovery's steps 4 and 5: records of replayed segments go to the index.
//
// They are parted by the bits of the hash that choose a table of the index, and each part is applied by one thread: it looks at a table or
// two, which stay in its CPU's cache, and others look at other ones.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "kv/index/entry.h"
#include "kv/recovery/recovery_inside.h"

namespace kv {

namespace {

constexpr uint64_t kPartRecords = 4096;
constexpr uint64_t kPartsMax = 1024;
constexpr size_t kPrefetched = 8;  // records whose cache misses overlap
// How many records of a log are dead is not known before: the index is to have room for these at once, and grows as it must.
constexpr uint64_t kReservedPart = 8;

// Where the entry at this grain would be if all records were alike in size, as they are as a rule. REQUIRES: not empty.
size_t guess(std::span<const SummaryEntry> entries, uint32_t grain) {
  const uint64_t end_grain = entries.back().grain + uint64_t{entries.back().grains};
  return std::min(entries.size() - 1, static_cast<size_t>(grain * entries.size() / end_grain));
}

// The first entry at this grain or behind it; the end, if there is none; null of none at all.
const SummaryEntry* first_from(std::span<const SummaryEntry> entries, uint32_t grain) {
  if (entries.empty()) return nullptr;
  const size_t first = guess(entries, grain);
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

// Tombstones are held by their segments.
void Recovery::release(Worker& worker, const Known& known) {
  if (known.entry->kind() != RecordKind::kTombstone) release(worker, known.at.address, known.at.size);
}

// What is listed at an address; null: nothing begins there.
base::Expected<const SummaryEntry*> Recovery::entry_at(Worker& worker, uint64_t address) {
  const auto index = static_cast<uint32_t>(segment_of(address));
  FoundSegment& segment = segments_[index];
  if (!segment.is_known) return nullptr;
  // Of what a checkpoint knows only what is needed is listed. Pairs with the release in RecoveryReader::list().
  if (!segment.is_listed.load(std::memory_order_acquire)) {
    sys::LockGuard scope(locks_[index % kLocks]);
    if (auto listed = list_once(worker, index); !listed) return std::unexpected(listed.error());
  }
  const uint32_t grain = geometry_.grain_of(address);
  const std::span<const SummaryEntry> entries = segment.entries;
  const SummaryEntry* const at = first_from(entries, grain);
  return at != nullptr && at != entries.data() + entries.size() && at->grain == grain ? at : nullptr;
}

// The bits by which the index's tables are chosen, in their order.
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
      static_cast<uint32_t>(std::bit_ceil(std::clamp<uint64_t>(count / kPartRecords, 1, kPartsMax)));
  if (recovered_.report.checkpoint == 0 && !index_->reserve(count / kReservedPart))
    return base::failure(ENOMEM, "store: no memory for the index");
  if (auto parted = for_all_segments(&Recovery::part); !parted) return parted;
  return for_all(part_count_, 1, [&](Worker& worker, uint64_t part, uint64_t) {
    return apply(worker, static_cast<uint32_t>(part));
  });
}

base::Expected<void> Recovery::part(Worker&, uint32_t index) {
  if (!is_replayed_[index]) return {};
  const std::span<const SummaryEntry> entries = segments_[index].entries;
  Parted& parted = parted_[index];
  parted.ends.resize(part_count_);
  uint64_t last_sequence = 0;
  uint32_t count = 0;
  for (const SummaryEntry& entry : entries) {
    if (!is_to_apply(index, entry)) continue;
    last_sequence = std::max(last_sequence, entry.sequence());
    ++parted.ends[part_of(entry.hash)];
    ++count;
  }
  log_.recovered_sequence(last_sequence);
  parted.numbers.resize(count);
  uint32_t before = 0;
  for (uint32_t& end : parted.ends) before += std::exchange(end, before);  // its part's beginning, so far
  for (uint32_t i = 0; i < entries.size(); ++i)
    if (is_to_apply(index, entries[i])) parted.numbers[parted.ends[part_of(entries[i].hash)]++] = i;
  return {};
}

base::Expected<void> Recovery::apply(Worker& worker, uint32_t part) {
  std::vector<Placed>& replayed = worker.replayed;
  replayed.clear();
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    if (!is_replayed_[i]) continue;
    const Parted& parted = parted_[i];
    for (uint32_t at = part == 0 ? 0 : parted.ends[part - 1]; at < parted.ends[part]; ++at) {
      const SummaryEntry& entry = segments_[i].entries[parted.numbers[at]];
      replayed.push_back({.entry = entry, .address = geometry_.address(i, entry.grain)});
    }
  }
  for (size_t i = 0; i < replayed.size(); ++i) {
    if (i + kPrefetched < replayed.size()) prefetch(replayed[i + kPrefetched].entry);
    for (bool is_applied = false; !is_applied;) {
      auto applied = try_apply(worker, replayed[i].entry, replayed[i].address);
      if (!applied) return std::unexpected(applied.error());
      is_applied = *applied;
    }
  }
  return {};
}

// Begins to bring what try_apply() will look at into the cache: with a checkpoint most keys are in the index, without one few.
void Recovery::prefetch(const SummaryEntry& entry) const {
  if (recovered_.report.checkpoint == 0) {
    index_->prefetch(entry.hash.low);
    return;
  }
  const Location other = index_->find(entry.hash.low);
  if (!other.found) return;
  const FoundSegment& segment = segments_[segment_of(other.address)];
  // As in entry_at().
  if (!segment.is_listed.load(std::memory_order_acquire) || segment.entries.empty()) return;
  __builtin_prefetch(&segment.entries[guess(segment.entries, geometry_.grain_of(other.address))]);
}

// False: others have changed what it looked at.
base::Expected<bool> Recovery::try_apply(Worker& worker, const SummaryEntry& entry, uint64_t address) {
  const uint32_t size = size_code::of(entry.grains);
  const bool is_live = entry.kind() != RecordKind::kTombstone;  // those are held already
  // Without a checkpoint the index knows of no segment that cannot be read.
  if (recovered_.report.checkpoint == 0 &&
      index_->insert(entry.hash.low, address, size, {}) == Index::Inserted::kDone) {
    if (is_live) hold(worker, address, size);
    return true;
  }
  const size_t count = index_->find_all(entry.hash.low, worker.candidates);
  // The newest of the key, of which a checkpoint may know two: tables that are split while it is taken are of different times.
  Known known;
  for (size_t i = 0; i < count; ++i) {
    const Location candidate = worker.candidates[i];
    worker.others[i] = candidate.address;
    auto found = entry_at(worker, candidate.address);
    if (!found) return std::unexpected(found.error());
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
  for (const Location& other : std::span(worker.candidates, count)) {
    if (segments_[segment_of(other.address)].is_known) continue;
    // What is replayed is newer than what a checkpoint knew; that this was another key's happens once in millions.
    if (!index_->replace(entry.hash.low, other.address, address, size)) return false;
    release(worker, other.address, other.size);
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
