#include "kv/log.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kv/entry.h"
#include "sys/memory.h"

namespace kv {
namespace {

// What has so little to gain is not collected.
constexpr uint32_t kGainParts = 64;
// Tombstones are to take less than this part of all segments: then the oldest segment is collected, so that older copies end.
constexpr uint32_t kTombstoneParts = 32;

// As the index tells it.
uint64_t held_grains(uint32_t grains) { return size_code::grains(size_code::of(grains)); }

uint64_t entries_bytes(const Geometry& geometry) {
  return uint64_t{geometry.segment_grains()} * sizeof(SummaryEntry);
}

}  // namespace

// A writer that waits for room.
struct Log::Call final : Waiter {
  bool is_limited = false;
  bool is_refused = false;
};

base::Expected<void> Log::open(const Identity& identity, uint32_t stream_count) {
  CHECK(stream_count >= 1 && stream_count <= kStreamsMax);
  identity_ = &identity;
  stream_count_ = stream_count;
  segment_count_ = static_cast<uint32_t>(identity.geometry.segment_count);
  auto memory = sys::map_anonymous(segment_count_ * sizeof(Segment), "the segments of a store");
  if (!memory) return std::unexpected(memory.error());
  segments_ = reinterpret_cast<Segment*>(*memory);
  for (uint32_t i = 0; i < segment_count_; ++i) new (&segments_[i]) Segment;
  free_count_ = segment_count_;
  free_low_ = kReserve + stream_count;
  free_high_ = free_low_ + 1 + segment_count_ / 128;
  // All streams' segments, and those that are not to be filled, hold nothing when the others are full.
  const uint64_t idle = free_high_ + stream_count + 1;
  const uint64_t most = segment_count_ > idle ? segment_count_ - idle : 1;
  const uint64_t wanted = segment_count_ * (100 - identity.geometry.spare_percent) / 100;
  limit_bytes_ = std::min(most, wanted) * (identity.geometry.segment_bytes - identity.geometry.grain_bytes);
  return {};
}

void Log::close() {
  if (segments_ == nullptr) return;
  for (uint32_t i = 0; i < segment_count_; ++i)
    if (segments_[i].entries != nullptr) sys::unmap(segments_[i].entries, entries_bytes(identity_->geometry));
  sys::unmap(segments_, segment_count_ * sizeof(Segment));
}

uint32_t Log::usable_grains(uint32_t entry_count) const {
  return identity_->geometry.segment_grains() - 1 - summary_grains(identity_->geometry, entry_count);
}

bool Log::fits(const Segment& segment, uint32_t grains) const {
  return uint64_t{segment.used_grains} + grains <= uint64_t{1} + usable_grains(segment.entry_count + 1);
}

// --- writers ---

// REQUIRES: lock_.
uint32_t Log::take_ready(bool is_relocation) {
  if (ready_count_ == 0 || (!is_relocation && available() <= kReserve)) return kNone;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    Segment& segment = segments_[i];
    if (segment.state.load(std::memory_order_relaxed) != Segment::State::kReady) continue;
    --ready_count_;
    segment.state.store(Segment::State::kOpen, std::memory_order_relaxed);
    segment.used_grains = 1;
    segment.entry_count = 0;
    segment.first_expiry.store(0, std::memory_order_relaxed);
    segment.has_old_copies.store(false, std::memory_order_relaxed);
    segment.is_damaged = false;
    segment.failed_reads = 0;
    taken_generation_ = std::max(taken_generation_, segment.generation.load(std::memory_order_relaxed));
    return i;
  }
  return kNone;
}

// REQUIRES: the stream's lock; it has a segment.
void Log::fill(Stream& stream) {
  sys::LockGuard scope(lock_);
  segments_[stream.segment].state.store(Segment::State::kFull, std::memory_order_release);
  stream.segment = kNone;
}

// While writers are paced each takes of what has been granted; the last may take more than is left.
bool Log::admit(uint32_t grains) {
  if (!is_paced_.load(std::memory_order_relaxed)) return true;
  if (granted_grains_.load(std::memory_order_relaxed) <= 0) return false;
  granted_grains_.fetch_sub(grains, std::memory_order_relaxed);
  return true;
}

Log::Room Log::allocate(uint32_t stream_index, uint32_t grains, SummaryEntry entry, uint64_t expiry,
                        Extent& extent) {
  const bool is_relocation = stream_index == relocation_stream();
  const bool is_tombstone = entry.kind() == RecordKind::kTombstone;
  if (!is_relocation && !is_tombstone && is_over_limit() && !has_failed()) return Room::kWaitForLimit;
  Stream& stream = streams_[stream_index];
  sys::LockGuard scope(stream.lock);
  if (has_failed()) return Room::kFailed;
  if (stream.segment != kNone && !fits(segments_[stream.segment], grains)) {
    fill(stream);
    keeper_wanted.notify_all();
  }
  if (stream.segment == kNone) {
    {
      sys::LockGuard all(lock_);
      stream.segment = take_ready(is_relocation);
    }
    keeper_wanted.notify_all();
    collector_wanted.notify_all();
    if (stream.segment == kNone) return Room::kWait;
  }
  if (!is_relocation && !admit(grains)) return Room::kWait;
  Segment& segment = segments_[stream.segment];
  CHECK(fits(segment, grains));  // records are much smaller than segments
  segment.writers.fetch_add(1, std::memory_order_relaxed);
  entry.grain = segment.used_grains;
  entry.grains = grains;
  segment.entries[segment.entry_count] = entry;
  const uint64_t first = segment.first_expiry.load(std::memory_order_relaxed);
  if (expiry != 0 && (first == 0 || expiry < first))
    segment.first_expiry.store(expiry, std::memory_order_relaxed);
  extent = {.address = identity_->geometry.address(stream.segment, segment.used_grains),
            .generation = segment.generation.load(std::memory_order_relaxed),
            .segment = stream.segment,
            .entry = segment.entry_count++};
  segment.used_grains += grains;
  hold(extent.address, size_code::of(grains));
  if (is_tombstone) tombstone_bytes_.fetch_add(charge(held_grains(grains)), std::memory_order_relaxed);
  return Room::kDone;
}

void Log::finish(const Extent& extent, bool written) {
  Segment& segment = segments_[extent.segment];
  if (!written) {
    // The entry is this writer's alone until the segment is sealed.
    SummaryEntry& entry = segment.entries[extent.entry];
    if (entry.kind() == RecordKind::kTombstone)
      release_tombstone(extent.address, entry.grains);
    else
      release(extent.address, size_code::of(entry.grains));
    entry.sequence_and_kind = with_kind(entry.sequence(), RecordKind::kVoid);
  }
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
  segments_[identity_->geometry.segment_of(address)].live_grains.fetch_sub(grains, std::memory_order_relaxed);
  live_bytes_.fetch_sub(charge(grains), std::memory_order_relaxed);
}

void Log::release_tombstone(uint64_t address, uint32_t grains) {
  release(address, size_code::of(grains));
  tombstone_bytes_.fetch_sub(charge(held_grains(grains)), std::memory_order_relaxed);
}

bool Log::wait_for_room(uint64_t since, Room why) {
  Call call;
  call.is_limited = why == Room::kWaitForLimit;
  {
    sys::LockGuard scope(lock_);
    if (has_failed()) return false;
    if (room_changes_.load(std::memory_order_relaxed) != since) return true;
    waiting_.append(call);
  }
  keeper_wanted.notify_all();
  collector_wanted.notify_all();
  call.wait();
  return !call.is_refused && !has_failed();
}

// Whoever waits asks again.
void Log::changed_room() {
  Waiters waiting;
  {
    sys::LockGuard scope(lock_);
    room_changes_.fetch_add(1, std::memory_order_release);
    waiting = waiting_.take_all();
  }
  waiting.wake_all();
}

void Log::fail() {
  failed_.store(true, std::memory_order_release);
  changed_room();
  collector_wanted.notify_all();
}

void Log::refuse_waiting() {
  Waiters waiting;
  {
    sys::LockGuard scope(lock_);
    room_changes_.fetch_add(1, std::memory_order_release);
    waiting = waiting_.take_all();
    waiting.for_each([](Waiter& waiter) { static_cast<Call&>(waiter).is_refused = true; });
  }
  waiting.wake_all();
}

int Log::flush(Channel& channel) {
  const int error = channel.flush();
  int known = 0;
  if (error != 0) flush_error_.compare_exchange_strong(known, error, std::memory_order_relaxed);
  return error;
}

// --- the collector's ---

Log::Need Log::need() {
  bool ends_pace = false;
  Need need;
  {
    sys::LockGuard scope(lock_);
    const uint32_t free = available();
    if (free >= free_high_) ends_pace = is_paced_.exchange(false, std::memory_order_relaxed);
    const bool waits = !waiting_.empty(), is_limited = waits && is_over_limit();
    need = {.collects = !has_failed() && (free < free_high_ || (waits && (is_limited || free <= kReserve))),
            .is_over_limit = is_limited};
  }
  if (ends_pace) changed_room();
  return need;
}

uint32_t Log::choose_victim(uint64_t expired_ms) {
  const uint32_t grains = identity_->geometry.segment_grains();
  const auto record_most = static_cast<uint32_t>(
      identity_->geometry.grains(record_bytes(kKeyBytesMax, identity_->geometry.value_bytes_max())));
  const bool wants_oldest = tombstone_bytes_.load(std::memory_order_relaxed) >
                            segment_count_ * identity_->geometry.segment_bytes / kTombstoneParts;
  uint32_t chosen = kNone;
  uint64_t chosen_bin = 0, chosen_generation = 0;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    const Segment& segment = segments_[i];
    // Pairs with the release in seal(): what is said of the segment is there.
    if (segment.state.load(std::memory_order_acquire) != Segment::State::kSealed ||
        segment.keeps.load(std::memory_order_relaxed) != 0)
      continue;
    const uint64_t live = segment.live_grains.load(std::memory_order_relaxed);
    if (segment.is_damaged && live != 0) continue;
    const uint64_t first_expiry = segment.first_expiry.load(std::memory_order_relaxed);
    uint64_t bin = 0;
    if (expired_ms != 0) {
      if (first_expiry == 0 || first_expiry > expired_ms) continue;
    } else if (!wants_oldest) {
      // What could not be used at the end is nothing that another segment would use, unless this one was sealed early.
      const uint64_t used = segment.used_grains - 1, end = usable_grains(segment.entry_count) - used;
      const uint64_t gain = (used > live ? used - live : 0) + (end > record_most ? end : 0);
      if (gain < std::max<uint64_t>(1, grains / kGainParts)) continue;
      bin = kGainParts - std::min<uint64_t>(kGainParts, gain * kGainParts / grains);
    }
    const uint64_t generation = segment.generation.load(std::memory_order_relaxed);
    if (chosen != kNone && (bin > chosen_bin || (bin == chosen_bin && generation > chosen_generation)))
      continue;
    chosen = i;
    chosen_bin = bin;
    chosen_generation = generation;
  }
  return chosen;
}

uint64_t Log::oldest_generation(uint32_t victim) const {
  uint64_t oldest = ~uint64_t{0};
  for (uint32_t i = 0; i < segment_count_; ++i) {
    const Segment& segment = segments_[i];
    const auto state = segment.state.load(std::memory_order_acquire);
    if (i == victim || state <= Segment::State::kReady || state == Segment::State::kCheckpoint) continue;
    if (segment.has_old_copies.load(std::memory_order_relaxed)) return 0;
    oldest = std::min(oldest, segment.generation.load(std::memory_order_relaxed));
  }
  return oldest;
}

// A victim's live records fill a segment at most, besides what is left of the collector's present one.
bool Log::may_start_victim() {
  sys::LockGuard scope(lock_);
  const uint32_t free = available();
  if (free < free_low_) is_paced_.store(true, std::memory_order_relaxed);
  return emptied_count_ == 0 || free > kReserve;
}

void Log::grant(uint64_t grains) {
  // What nobody has asked for is not kept for later.
  const auto most = static_cast<int64_t>(identity_->geometry.segment_grains());
  if (granted_grains_.fetch_add(static_cast<int64_t>(grains), std::memory_order_relaxed) > most)
    granted_grains_.store(most, std::memory_order_relaxed);
  changed_room();
}

void Log::tell_waiting() {
  Waiters waiting;
  {
    sys::LockGuard scope(lock_);
    is_paced_.store(false, std::memory_order_relaxed);
    const bool has_room = available() > kReserve, is_limited = is_over_limit();
    bool is_to_be_sealed = false;
    for (uint32_t i = 0; i < segment_count_; ++i)
      is_to_be_sealed |= segments_[i].state.load(std::memory_order_relaxed) == Segment::State::kFull;
    if (!has_room && is_to_be_sealed) return;
    room_changes_.fetch_add(1, std::memory_order_release);
    waiting = waiting_.take_all();
    waiting.for_each([&](Waiter& waiter) {
      auto& call = static_cast<Call&>(waiter);
      call.is_refused = !has_room || (is_limited && call.is_limited);
    });
  }
  waiting.wake_all();
}

void Log::emptied(uint32_t index) {
  sys::LockGuard scope(lock_);
  segments_[index].state.store(Segment::State::kEmptied, std::memory_order_release);
  ++emptied_count_;
}

// What is moved later has an old sequence: in a segment with records from before nothing would tell it from those.
bool Log::begin_checkpoint(CheckpointState& state) {
  {
    Stream& stream = streams_[relocation_stream()];
    sys::LockGuard scope(stream.lock);
    if (stream.segment != kNone) fill(stream);
  }
  keeper_wanted.notify_all();
  sys::LockGuard scope(lock_);
  state.generation = generation_;
  state.next_sequence = sequence_.load(std::memory_order_relaxed) + 1;
  state.unsealed_count = state.ready_count = 0;
  for (const bool is_ready : {false, true}) {
    for (uint32_t i = 0; i < segment_count_; ++i) {
      const auto now = segments_[i].state.load(std::memory_order_relaxed);
      if (now < Segment::State::kPreparing || now > Segment::State::kFull) continue;
      if ((now <= Segment::State::kReady) != is_ready) continue;
      if (state.unsealed_count == CheckpointState::kUnsealedMax) return false;
      state.unsealed[state.unsealed_count++] = i;
      state.ready_count += is_ready;
    }
  }
  return true;
}

uint32_t Log::take_for_checkpoint() {
  sys::LockGuard scope(lock_);
  if (free_count_ == 0 || available() <= free_high_) return kNone;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    Segment& segment = segments_[i];
    if (segment.state.load(std::memory_order_relaxed) != Segment::State::kFree) continue;
    --free_count_;
    segment.generation.store(++generation_, std::memory_order_relaxed);
    segment.state.store(Segment::State::kCheckpoint, std::memory_order_relaxed);
    return i;
  }
  return kNone;
}

uint64_t Log::sealed_records() {
  uint64_t records = 0;
  for (uint32_t i = 0; i < segment_count_; ++i)
    // Pairs with the release in seal().
    if (segments_[i].state.load(std::memory_order_acquire) == Segment::State::kSealed)
      records += segments_[i].entry_count;
  return records;
}

// --- recovery's, and what is told of it all ---

void Log::recovered(uint32_t index, Segment::State state, uint64_t generation) {
  sys::LockGuard scope(lock_);
  Segment& segment = segments_[index];
  segment.generation.store(generation, std::memory_order_relaxed);
  segment.state.store(state, std::memory_order_relaxed);
  if (state != Segment::State::kFree) --free_count_;
  if (state == Segment::State::kEmptied) ++emptied_count_;
  generation_ = std::max(generation_, generation);
  if (state == Segment::State::kSealed) taken_generation_ = std::max(taken_generation_, generation);
}

// All tombstones are kept, as long as older copies may be somewhere.
void Log::recovered_content(uint32_t index, const SegmentFooter& footer) {
  Segment& segment = segments_[index];
  segment.used_grains = footer.used_grains;
  segment.entry_count = footer.entry_count;
  segment.first_expiry.store(footer.first_expiry, std::memory_order_relaxed);
  recovered_live(index, footer.tombstone_grains, footer.tombstone_count);
  tombstone_bytes_.fetch_add(footer.tombstone_grains * uint64_t{identity_->geometry.grain_bytes} +
                                 footer.tombstone_count * charge(0),
                             std::memory_order_relaxed);
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

void Log::recovered_unreadable(uint32_t index) {
  segments_[index].is_damaged = true;
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
  uint64_t live_grains = 0;
  uint32_t free_count = 0, emptied_count = 0;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    const Segment& segment = segments_[i];
    const auto state = segment.state.load(std::memory_order_relaxed);
    live_grains += segment.live_grains.load(std::memory_order_relaxed);
    free_count += state <= Segment::State::kReady;
    emptied_count += state == Segment::State::kEmptied;
    if (state <= Segment::State::kPreparing) {
      CHECK_EQ(segment.live_grains.load(std::memory_order_relaxed), 0u);
      continue;
    }
    CHECK_EQ(segment.writers.load(std::memory_order_relaxed), 0u);
    const uint64_t generation = segment.generation.load(std::memory_order_relaxed);
    CHECK_LE(generation, generation_);
    if (generation != 0) generations.push_back(generation);  // 0: of one that could not be read
  }
  CHECK_EQ(free_count, free_count_ + preparing_count_ + ready_count_);
  CHECK_EQ(emptied_count, emptied_count_);
  CHECK_LE(live_grains * identity_->geometry.grain_bytes, live_bytes_.load(std::memory_order_relaxed));
  std::ranges::sort(generations);
  CHECK(std::ranges::adjacent_find(generations) == generations.end());
}

LogCounts Log::counts() {
  LogCounts counts;
  sys::LockGuard scope(lock_);
  for (uint32_t i = 0; i < segment_count_; ++i) {
    counts.live_grains += segments_[i].live_grains.load(std::memory_order_relaxed);
    switch (segments_[i].state.load(std::memory_order_relaxed)) {
      case Segment::State::kFree:
      case Segment::State::kPreparing:
      case Segment::State::kReady: ++counts.free_segments; break;
      case Segment::State::kOpen:
      case Segment::State::kFull: ++counts.open_segments; break;
      case Segment::State::kSealed: ++counts.sealed_segments; break;
      case Segment::State::kEmptied: ++counts.emptied_segments; break;
      case Segment::State::kCheckpoint: ++counts.checkpoint_segments; break;
    }
  }
  counts.live_bytes = live_bytes_.load(std::memory_order_relaxed);
  counts.limit_bytes = limit_bytes_;
  counts.tombstone_bytes = tombstone_bytes_.load(std::memory_order_relaxed);
  counts.sequence = sequence_.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace kv
