#include "kv/log/log.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kv/index/entry.h"
#include "sys/memory.h"

namespace kv {
namespace {

// As rounded by the index's size code.
uint64_t held_grains(uint32_t grains) { return size_code::grains(size_code::of(grains)); }

}  // namespace

base::Expected<void> Log::open(const Identity& identity, uint32_t stream_count) {
  CHECK(stream_count >= 1 && stream_count <= kMaxStreams);
  identity_ = &identity;
  stream_count_ = stream_count;
  segment_count_ = static_cast<uint32_t>(identity.geometry.segment_count);
  auto memory = sys::map_anonymous(segment_count_ * sizeof(Segment), "the segments of a store");
  if (!memory) return std::unexpected(memory.error());
  segments_ = reinterpret_cast<Segment*>(*memory);
  for (uint32_t i = 0; i < segment_count_; ++i) new (&segments_[i]) Segment;
  free_count_ = segment_count_;
  pace_.open(identity.geometry.grain_bytes);
  free_low_ = kReserve + stream_count;
  free_high_ = free_low_ + 1 + segment_count_ / 128;
  // Segments that may hold nothing when all others are full: those that stay free, and the open one of each stream.
  const uint64_t idle = free_high_ + stream_count + 1;
  const uint64_t most = segment_count_ > idle ? segment_count_ - idle : 1;
  const uint64_t wanted = identity.geometry.segment_count * (100 - identity.geometry.spare_percent) / 100;
  limit_most_bytes_ =
      std::min(most, wanted) * (identity.geometry.segment_bytes - identity.geometry.grain_bytes);
  limit_bytes_.store(limit_most_bytes_, std::memory_order_relaxed);
  return {};
}

void Log::close() {
  if (segments_ == nullptr) return;
  for (uint32_t i = 0; i < segment_count_; ++i)
    if (segments_[i].entries != nullptr) unmap_entries(segments_[i]);
  sys::unmap(segments_, segment_count_ * sizeof(Segment));
}

uint32_t Log::usable_grains(uint32_t entry_count) const {
  return identity_->geometry.segment_grains() - 1 - summary_grains(identity_->geometry, entry_count);
}

// --- writers ---

// A segment that still has room for any record was sealed early, and has lost nothing.
Log::Ends Log::ends_of(const Segment& segment) const {
  const uint64_t used = segment.used_grains - 1, end = usable_grains(segment.entry_count) - used;
  return {.used_grains = used, .lost_grains = end > record_grains_most() ? 0 : end};
}

// REQUIRES: lock_.
void Log::count_ends(const Segment& segment, bool is_sealed) {
  const auto [used, lost] = ends_of(segment);
  sealed_ends_.used_grains += is_sealed ? used : -used;
  sealed_ends_.lost_grains += is_sealed ? lost : -lost;
  const uint64_t all = sealed_ends_.used_grains + sealed_ends_.lost_grains;
  using Product = unsigned __int128;
  const uint64_t limit =
      all == 0 ? limit_most_bytes_
               : static_cast<uint64_t>(Product{limit_most_bytes_} * sealed_ends_.used_grains / all);
  limit_bytes_.store(limit, std::memory_order_relaxed);
}

// Takes a ready segment, unless only `reserve` segments are left; kNone: there is none. REQUIRES: lock_.
uint32_t Log::take_ready(uint32_t reserve) {
  if (ready_count_ == 0 || available() <= reserve) return kNone;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    Segment& segment = segments_[i];
    if (segment.state.load(std::memory_order_relaxed) != Segment::State::kReady) continue;
    --ready_count_;
    segment.state.store(Segment::State::kOpen, std::memory_order_relaxed);
    segment.filling.store(Filling{.used_grains = 1, .entry_count = 0}.word(), std::memory_order_relaxed);
    segment.first_expiry.store(0, std::memory_order_relaxed);
    segment.last_sequence.store(0, std::memory_order_relaxed);
    segment.has_old_copies.store(false, std::memory_order_relaxed);
    segment.is_void.store(false, std::memory_order_relaxed);
    segment.is_damaged = false;
    segment.failed_reads = 0;
    segment.left_grains = 0;
    segment.failed_address = 0;
    taken_generation_ = std::max(taken_generation_, segment.generation.load(std::memory_order_relaxed));
    return i;
  }
  return kNone;
}

// REQUIRES: the stream's lock; it has a segment.
void Log::fill(Stream& stream) {
  Segment& segment = segments_[stream.segment.load(std::memory_order_relaxed)];
  // First taken from the stream, then closed, and only then FULL: invariant 5.
  stream.segment.store(kNone, std::memory_order_seq_cst);
  // Pairs with the release in append().
  const Filling last = Filling::of(segment.filling.fetch_or(Filling::kClosed, std::memory_order_acquire));
  segment.used_grains = last.used_grains;
  segment.entry_count = last.entry_count;
  sys::LockGuard scope(lock_);
  segment.state.store(Segment::State::kFull, std::memory_order_release);
}

// False: the stream has no segment, or one without room for this.
bool Log::append(const Stream& stream, const Request& request, Extent& extent) {
  // Pairs with the release in allocate(): the segment has been prepared.
  const uint32_t index = stream.segment.load(std::memory_order_acquire);
  if (index == kNone) return false;
  Segment& segment = segments_[index];
  segment.writers.fetch_add(1, std::memory_order_seq_cst);
  bool fits = stream.segment.load(std::memory_order_seq_cst) == index;
  uint64_t word = segment.filling.load(std::memory_order_relaxed);
  Filling filling = Filling::of(word);
  while (fits) {
    filling = Filling::of(word);
    fits = (word & Filling::kClosed) == 0 && uint64_t{filling.used_grains} + request.grains <=
                                                 uint64_t{1} + usable_grains(filling.entry_count + 1);
    const Filling next = {filling.used_grains + request.grains, filling.entry_count + 1};
    // Pairs with the acquire in fill(), which counts all room that was given out.
    if (fits && segment.filling.compare_exchange_weak(word, next.word(), std::memory_order_release,
                                                      std::memory_order_relaxed))
      break;
  }
  if (!fits) {
    leave(segment);
    return false;
  }
  SummaryEntry& entry = segment.entries[filling.entry_count];
  entry = request.entry;
  entry.grain = filling.used_grains;
  entry.grains = request.grains;
  uint64_t first = segment.first_expiry.load(std::memory_order_relaxed);
  while (request.expiry != 0 && (first == 0 || request.expiry < first) &&
         !segment.first_expiry.compare_exchange_weak(first, request.expiry, std::memory_order_relaxed)) {
  }
  // A relocated record has an old sequence, but was found to be above the floor: its segment must not be dropped for that sequence.
  const bool is_relocation = request.stream == relocation_stream();
  const uint64_t sequence = is_relocation ? last_sequence() : request.entry.sequence();
  uint64_t last = segment.last_sequence.load(std::memory_order_relaxed);
  while (last < sequence &&
         !segment.last_sequence.compare_exchange_weak(last, sequence, std::memory_order_relaxed)) {
  }
  extent = {.address = identity_->geometry.address(index, filling.used_grains),
            .generation = segment.generation.load(std::memory_order_relaxed),
            .segment = index,
            .entry = filling.entry_count};
  hold(extent.address, size_code::of(request.grains));
  if (entry.kind() == RecordKind::kTombstone)
    tombstone_bytes_.fetch_add(charge(held_grains(request.grains)), std::memory_order_relaxed);
  return true;
}

uint32_t Log::newest_stream() const {
  uint32_t newest = 0;
  uint64_t highest = 0;
  for (uint32_t i = 0; i < stream_count_; ++i) {
    const uint32_t index = streams_[i].segment.load(std::memory_order_relaxed);
    const uint64_t generation =
        index == kNone ? 0 : segments_[index].generation.load(std::memory_order_relaxed);
    if (generation <= highest) continue;
    newest = i;
    highest = generation;
  }
  return newest;
}

Log::Room Log::allocate(Request& request, Extent& extent) {
  const bool is_relocation = request.stream == relocation_stream();
  const bool is_tombstone = request.entry.kind() == RecordKind::kTombstone;
  if (has_failed()) return Room::kFailed;
  if (!is_relocation && !is_tombstone && !request.is_kept && is_full()) return Room::kWaitForLimit;
  CHECK_LE(request.grains, usable_grains(1));
  Stream& stream = streams_[request.stream];
  if (append(stream, request, extent)) return Room::kDone;
  bool is_filled = false, is_opened = false, is_done = false;
  {
    sys::LockGuard scope(stream.lock);
    // Another writer may have opened a segment meanwhile, and others may have filled it.
    while (!(is_done = append(stream, request, extent))) {
      if (stream.segment.load(std::memory_order_relaxed) != kNone) {
        fill(stream);
        is_filled = true;
      }
      sys::LockGuard all(lock_);
      const uint32_t next = take_ready(is_relocation ? 0 : is_tombstone ? kReserve - 1 : kReserve);
      if (next == kNone) break;
      stream.segment.store(next, std::memory_order_release);
      is_opened = true;
    }
  }
  for (uint32_t i = 0; is_tombstone && !is_relocation && !is_done && i < stream_count_; ++i)
    is_done = append(streams_[i], request, extent);
  // These are system calls: no lock is held meanwhile.
  if (is_filled || is_opened) keeper_wanted.notify_all();
  if (is_opened) collector_wanted.notify_all();
  return is_done ? Room::kDone : Room::kWait;
}

void Log::finish(const Extent& extent, bool written) {
  Segment& segment = segments_[extent.segment];
  if (!written) {
    // The entry is this writer's alone until leave().
    SummaryEntry& entry = segment.entries[extent.entry];
    if (entry.kind() == RecordKind::kTombstone)
      release_tombstone(extent.address, entry.grains);
    else
      release(extent.address, size_code::of(entry.grains));
    entry.sequence_and_kind = with_kind(entry.sequence(), RecordKind::kVoid);
  }
  leave(segment);
}

void Log::leave(Segment& segment) {
  // Pairs with the acquire in seal().
  if (segment.writers.fetch_sub(1, std::memory_order_release) == 1 &&
      segment.state.load(std::memory_order_acquire) == Segment::State::kFull)
    keeper_wanted.notify_all();
}

void Log::hold(uint64_t address, uint32_t size_code) {
  const uint64_t grains = size_code::grains(size_code);
  segments_[identity_->geometry.segment_of(address)].live_grains.fetch_add(grains, std::memory_order_relaxed);
  live_bytes_.fetch_add(charge(grains), std::memory_order_relaxed);
}

void Log::release(uint64_t address, uint32_t size_code) {
  const uint64_t grains = size_code::grains(size_code);
  // Pairs with the acquire in Collector::empty(): whoever sees the record released also sees that a snapshot keeps it.
  segments_[identity_->geometry.segment_of(address)].live_grains.fetch_sub(grains, std::memory_order_release);
  live_bytes_.fetch_sub(charge(grains), std::memory_order_relaxed);
}

void Log::release_tombstone(uint64_t address, uint32_t grains) {
  release(address, size_code::of(grains));
  tombstone_bytes_.fetch_sub(charge(held_grains(grains)), std::memory_order_relaxed);
}

// --- for recovery; counts ---

void Log::recovered(uint32_t index, Segment::State state, uint64_t generation) {
  sys::LockGuard scope(lock_);
  Segment& segment = segments_[index];
  segment.generation.store(generation, std::memory_order_relaxed);
  segment.state.store(state, std::memory_order_relaxed);
  if (state != Segment::State::kFree) --free_count_;
  if (state == Segment::State::kEmptied) ++emptied_count_;
  generation_ = std::max(generation_, generation);
  // An emptied segment may hold copies until it is given back.
  if (state == Segment::State::kSealed || state == Segment::State::kEmptied)
    taken_generation_ = std::max(taken_generation_, generation);
}

// All tombstones count as live: the collector finds out which of them hide nothing any more.
void Log::recovered_content(uint32_t index, const SegmentFooter& footer) {
  Segment& segment = segments_[index];
  segment.used_grains = footer.used_grains;
  segment.entry_count = footer.entry_count;
  segment.first_expiry.store(footer.first_expiry, std::memory_order_relaxed);
  segment.last_sequence.store(footer.last_sequence, std::memory_order_relaxed);
  recovered_tombstones(index, {}, footer);
  sys::LockGuard scope(lock_);
  count_ends(segment, true);
}

// Adds differences, modulo 2^64.
void Log::recovered_tombstones(uint32_t index, const SegmentFooter& before, const SegmentFooter& now) {
  const uint64_t grains = uint64_t{now.tombstone_grains} - before.tombstone_grains;
  const uint64_t count = uint64_t{now.tombstone_count} - before.tombstone_count;
  recovered_live(index, grains, count);
  tombstone_bytes_.fetch_add(grains * identity_->geometry.grain_bytes + count * charge(0),
                             std::memory_order_relaxed);
}

base::Expected<void> Log::recovered_unsealed(uint32_t index, std::span<const SummaryEntry> entries) {
  Segment& segment = segments_[index];
  if (auto mapped = map_entries(segment); !mapped) return mapped;
  memcpy(segment.entries, entries.data(), entries.size_bytes());
  segment.has_old_copies.store(true, std::memory_order_relaxed);
  sys::LockGuard scope(lock_);
  count_ends(segment, false);
  // Fewer than the footer says if the summary turned out to be damaged only after recovered_content().
  segment.entry_count = static_cast<uint32_t>(entries.size());
  segment.state.store(Segment::State::kUnsealed, std::memory_order_relaxed);
  put_off(segment);
  return {};
}

void Log::recovered_live(uint32_t index, uint64_t grains, uint64_t records) {
  segments_[index].live_grains.fetch_add(grains, std::memory_order_relaxed);
  live_bytes_.fetch_add(grains * identity_->geometry.grain_bytes + records * charge(0),
                        std::memory_order_relaxed);
}

void Log::recovered_sequence(uint64_t sequence) {
  uint64_t known = sequence_.load(std::memory_order_relaxed);
  while (known < sequence && !sequence_.compare_exchange_weak(known, sequence, std::memory_order_relaxed)) {
  }
}

void Log::recovered_copies(uint32_t index) {
  segments_[index].has_old_copies.store(true, std::memory_order_relaxed);
}

void Log::recovered_unreadable(uint32_t index) {
  segments_[index].is_damaged = true;
  segments_[index].has_old_copies.store(true, std::memory_order_relaxed);
  recovered_live(index, 1, 0);
}

void Log::skip_generations(uint64_t count) {
  sys::LockGuard scope(lock_);
  generation_ += count;
}

uint64_t Log::taken_generation() {
  sys::LockGuard scope(lock_);
  return taken_generation_;
}

void Log::verify() {
  sys::LockGuard scope(lock_);
  std::vector<uint64_t> generations;
  uint32_t free_count = 0, emptied_count = 0;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    const Segment& segment = segments_[i];
    const auto state = segment.state.load(std::memory_order_relaxed);
    free_count += state <= Segment::State::kReady;
    emptied_count += state == Segment::State::kEmptied && !is_put_off(segment);
    if (state <= Segment::State::kPreparing) {
      CHECK_EQ(segment.live_grains.load(std::memory_order_relaxed), 0u);
      continue;
    }
    // Of open segments the collector, which keeps running, may be a writer.
    if (state >= Segment::State::kUnsealed && state <= Segment::State::kEmptied)
      CHECK_EQ(segment.writers.load(std::memory_order_relaxed), 0u);
    const uint64_t generation = segment.generation.load(std::memory_order_relaxed);
    CHECK_LE(generation, generation_);
    if (generation != 0) generations.push_back(generation);  // 0: of one that could not be read
  }
  CHECK_EQ(free_count, free_count_ + preparing_count_ + ready_count_);
  CHECK_EQ(emptied_count, emptied_count_);
  std::ranges::sort(generations);
  CHECK(std::ranges::adjacent_find(generations) == generations.end());
}

LogCounts Log::counts() {
  LogCounts counts;
  sys::LockGuard scope(lock_);
  for (uint32_t i = 0; i < segment_count_; ++i) {
    counts.live_grains += segments_[i].live_grains.load(std::memory_order_relaxed);
    counts.kept_segments += segments_[i].keeps.load(std::memory_order_relaxed) != 0;
    counts.put_off_segments += is_put_off(segments_[i]);
    switch (segments_[i].state.load(std::memory_order_relaxed)) {
      case Segment::State::kFree:
      case Segment::State::kPreparing:
      case Segment::State::kReady: ++counts.free_segments; break;
      case Segment::State::kOpen:
      case Segment::State::kFull:
      case Segment::State::kUnsealed: ++counts.open_segments; break;
      case Segment::State::kSealed: ++counts.sealed_segments; break;
      case Segment::State::kEmptied: ++counts.emptied_segments; break;
      case Segment::State::kCheckpoint: ++counts.checkpoint_segments; break;
    }
  }
  counts.live_bytes = live_bytes_.load(std::memory_order_relaxed);
  counts.limit_bytes = limit_bytes_.load(std::memory_order_relaxed);
  counts.tombstone_bytes = tombstone_bytes_.load(std::memory_order_relaxed);
  counts.sequence = sequence_.load(std::memory_order_relaxed);
  counts.free_level = free_level();
  return counts;
}

}  // namespace kv
