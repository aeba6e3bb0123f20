// The end of recovery's step 3: an open segment all of whose records are elsewhere, too, is given back.
//
// The collector's segment is such a one after a crash that came before the first victim was given back. If it were sealed, it would take room for
// good, and the collector of a full store, which has kReserve segments to begin with, would have none left after a few such lives. A segment
// with a record that is nowhere else has paid for itself: a victim was given back since it was opened.
#include <algorithm>
#include <bitset>
#include <memory>

#include "kv/recovery/recovery_inside.h"

namespace kv {

namespace {

struct Sought {
  uint64_t sequence;
  KeyHash hash;
  bool operator==(const Sought&) const = default;
};

// Bits of a filter that rules out most of a log's records as those that are sought.
constexpr size_t kFilterBits = 1 << 16;

}  // namespace

// REQUIRES: everything is replayed and could be read.
base::Expected<void> Recovery::drop_copies() {
  std::vector<uint32_t> unsealed;
  for (uint32_t i = 0; i < segments_.size(); ++i)
    if (is_replayed_[i] && !segments_[i].has_summary && !segments_[i].entries.empty()) unsealed.push_back(i);
  // One after the other, so that of two segments with the same copies one stays.
  std::ranges::sort(unsealed, std::greater<>(), [&](uint32_t i) { return segments_[i].header.generation; });
  for (const uint32_t i : unsealed) {
    auto are_elsewhere = are_all_elsewhere(i);
    if (!are_elsewhere) return std::unexpected(are_elsewhere.error());
    if (!*are_elsewhere) continue;
    segments_[i].entries.clear();
    segments_[i].has_copies = true;
  }
  return {};
}

// Are all of the segment's records in other segments, too?
base::Expected<bool> Recovery::are_all_elsewhere(uint32_t index) {
  uint64_t highest = 0;
  for (uint32_t i = 0; i < segments_.size(); ++i)
    if (i != index && is_replayed_[i]) highest = std::max(highest, segments_[i].footer.last_sequence);
  // A quick answer for a writer's segment, which has a record that is newer than those of all other segments.
  if (segments_[index].footer.last_sequence > highest) return false;
  std::vector<Sought> sought;
  const auto filter = std::make_unique<std::bitset<kFilterBits>>();
  for (const SummaryEntry& entry : segments_[index].entries) {
    sought.push_back({entry.sequence(), entry.hash});
    filter->set(entry.sequence() % kFilterBits);
  }
  std::ranges::sort(sought, {}, &Sought::sequence);
  std::vector<std::atomic<bool>> is_found(sought.size());
  const auto look = [&](Worker&, uint64_t segment, uint64_t) -> base::Expected<void> {
    if (segment == index || !is_replayed_[segment]) return {};
    for (const SummaryEntry& entry : segments_[segment].entries) {
      if (!filter->test(entry.sequence() % kFilterBits) || entry.kind() == RecordKind::kVoid) continue;
      for (auto at = std::ranges::lower_bound(sought, entry.sequence(), {}, &Sought::sequence);
           at != sought.end() && at->sequence == entry.sequence(); ++at)
        if (at->hash == entry.hash) is_found[at - sought.begin()].store(true, std::memory_order_relaxed);
    }
    return {};
  };
  if (auto looked = for_all(segments_.size(), 1, look); !looked) return std::unexpected(looked.error());
  return std::ranges::all_of(is_found,
                             [](const auto& found) { return found.load(std::memory_order_relaxed); });
}

}  // namespace kv
