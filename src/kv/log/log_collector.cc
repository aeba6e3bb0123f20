// The collector's part of the log: which segment it collects or drops next, what tombstones wait for, and what a checkpoint begins with.
#include <algorithm>

#include "kv/log/log.h"

namespace kv {
namespace {

// A segment that would gain less than this part of its grains is not collected.
constexpr uint32_t kGainParts = 64;
// What collecting a segment costs besides moving what is live in it, as a part of its grains: its summary, its headers, its share of two
// flushes.
constexpr uint32_t kVictimCostParts = 32;
// When tombstones take more than this part of all segments, the oldest segment is collected: they last as long as it does.
constexpr uint32_t kTombstoneParts = 32;

}  // namespace

uint32_t Log::choose_victim(uint64_t expired_ms, uint64_t floor) {
  const uint32_t grains = identity_->geometry.segment_grains();
  const bool has_room = has_more_than(kReserve);
  // Without a free segment only a victim that needs none is sure to become empty.
  if (!has_free_segment())
    for (uint32_t i = 0; i < segment_count_; ++i)
      if (can_be_collected(segments_[i], has_room) &&
          segments_[i].live_grains.load(std::memory_order_relaxed) == 0)
        return i;
  if (expired_ms == 0 && has_many_tombstones() && !identity_->is_cache)
    if (const uint32_t first = oldest(kNone).segment;
        first != kNone && can_be_collected(segments_[first], has_room))
      return first;
  uint32_t chosen = kNone;
  unsigned __int128 chosen_benefit = 0;
  uint64_t chosen_cost = 1;
  const uint64_t newest = taken_generation();
  for (uint32_t i = 0; i < segment_count_; ++i) {
    const Segment& segment = segments_[i];
    if (!can_be_collected(segment, has_room)) continue;
    const bool is_below = segment.last_sequence.load(std::memory_order_relaxed) < floor;
    const uint64_t live = is_below ? 0 : segment.live_grains.load(std::memory_order_relaxed);
    const uint64_t first_expiry = segment.first_expiry.load(std::memory_order_relaxed);
    uint64_t benefit = 1, cost = 1;
    if (expired_ms != 0) {
      if (!is_below && (identity_->is_cache || (first_expiry == 0 || first_expiry > expired_ms))) continue;
    } else {
      if (identity_->is_cache && live != 0) continue;
      // Room that was lost at its end is not gained: a segment with the same records would lose it, too.
      const uint64_t used = usable_grains(segment.entry_count) - ends_of(segment).lost_grains;
      const uint64_t gain = used > live ? used - live : 0;
      if (gain < std::max<uint64_t>(1, grains / kGainParts)) continue;
      benefit = gain;
      cost = live + grains / kVictimCostParts;
    }
    // How many segments were opened or given back since this one was opened.
    const uint64_t age = newest - std::min(newest, segment.generation.load(std::memory_order_relaxed)) + 1;
    using Product = unsigned __int128;  // fractions are compared without a division
    if (Product{benefit} * age * chosen_cost <= Product{chosen_benefit} * cost) continue;
    chosen = i;
    chosen_benefit = Product{benefit} * age;
    chosen_cost = cost;
  }
  return chosen;
}

// Dropping it also drops all records of other segments that are older than its last one. They are few, since segments are filled in about this order.
uint32_t Log::choose_to_drop() {
  uint32_t chosen = kNone;
  uint64_t oldest = ~uint64_t{0};
  for (uint32_t i = 0; i < segment_count_; ++i) {
    if (!can_be_collected(segments_[i], true)) continue;
    const uint64_t last = segments_[i].last_sequence.load(std::memory_order_relaxed);
    if (last >= oldest) continue;
    chosen = i;
    oldest = last;
  }
  return chosen;
}

bool Log::can_be_collected(const Segment& segment, bool has_room) {
  // Pairs with the release in sealed() and seal(): the segment's other members are set.
  const auto state = segment.state.load(std::memory_order_acquire);
  if (state != Segment::State::kSealed && state != Segment::State::kUnsealed) return false;
  // A hint: snapshots may keep records of it later. Collector::is_kept() looks again before it is emptied.
  if (segment.keeps.load(std::memory_order_relaxed) != 0) return false;
  const uint64_t live = segment.live_grains.load(std::memory_order_relaxed);
  if (!has_room && live != 0 && live == segment.left_grains) return false;
  return !segment.is_damaged || live == 0;
}

bool Log::has_many_tombstones() const {
  return tombstone_bytes_.load(std::memory_order_relaxed) >
         segment_count_ * identity_->geometry.segment_bytes / kTombstoneParts;
}

// The segment that tombstones wait for, apart from `but`. One that may hold older copies than its generation suggests counts as the oldest of all.
Log::Oldest Log::oldest(uint32_t but) const {
  Oldest oldest;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    const Segment& segment = segments_[i];
    const auto state = segment.state.load(std::memory_order_acquire);
    if (i == but || state <= Segment::State::kReady || state == Segment::State::kCheckpoint ||
        segment.is_void.load(std::memory_order_relaxed))
      continue;
    const bool is_oldest = segment.has_old_copies.load(std::memory_order_relaxed);
    const uint64_t generation = is_oldest ? 0 : segment.generation.load(std::memory_order_relaxed);
    if (generation < oldest.generation) oldest = {.segment = i, .generation = generation};
  }
  return oldest;
}

void Log::fill_oldest() {
  if (!has_many_tombstones()) return;
  const uint32_t first = oldest(kNone).segment;
  if (first == kNone || segments_[first].state.load(std::memory_order_relaxed) != Segment::State::kOpen)
    return;
  const uint32_t end = has_free_segment() ? stream_count_ + 1 : stream_count_;
  for (uint32_t i = 0; i < end; ++i) {
    sys::LockGuard scope(streams_[i].lock);
    if (streams_[i].segment.load(std::memory_order_relaxed) == first) fill(streams_[i]);
  }
  keeper_wanted.notify_all();
}

void Log::retry_seals() {
  if (put_off_count() == 0) return;
  bool any = false;
  {
    sys::LockGuard scope(lock_);
    for (uint32_t i = 0; i < segment_count_; ++i) {
      if (segments_[i].state.load(std::memory_order_relaxed) != Segment::State::kUnsealed ||
          !is_due(segments_[i]))
        continue;
      segments_[i].state.store(Segment::State::kFull, std::memory_order_release);
      any = true;
    }
  }
  if (any) keeper_wanted.notify_all();
}

void Log::emptied(uint32_t index) {
  {
    sys::LockGuard scope(lock_);
    Segment& segment = segments_[index];
    if (segment.state.load(std::memory_order_relaxed) == Segment::State::kSealed) count_ends(segment, false);
    end_put_off(segment);
    segment.is_void.store(false, std::memory_order_relaxed);
    segment.state.store(Segment::State::kEmptied, std::memory_order_release);
    ++emptied_count_;
  }
  changed_room();  // what was live in it may have been all that exceeded the limit
}

// The relocation stream's segment is filled first. Records that are relocated later have old sequences: if they shared a segment with records from
// before the checkpoint, a start could not tell which of them the checkpoint knows.
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
      if (now < Segment::State::kPreparing || now > Segment::State::kUnsealed) continue;
      if ((now <= Segment::State::kReady) != is_ready) continue;
      if (state.unsealed_count == CheckpointState::kMaxUnsealed) return false;
      state.unsealed[state.unsealed_count++] = i;
      state.ready_count += is_ready;
    }
  }
  return true;
}

// A different one each time: if the medium does not accept what is written there, the next checkpoint lies elsewhere.
uint32_t Log::take_for_checkpoint() {
  sys::LockGuard scope(lock_);
  if (free_count_ == 0 || available() <= free_high_) return kNone;
  for (uint32_t looked = 0; looked < segment_count_; ++looked) {
    const uint32_t index = next_free_;
    next_free_ = (next_free_ + 1) % segment_count_;
    Segment& segment = segments_[index];
    if (segment.state.load(std::memory_order_relaxed) != Segment::State::kFree) continue;
    --free_count_;
    segment.generation.store(++generation_, std::memory_order_relaxed);
    segment.state.store(Segment::State::kCheckpoint, std::memory_order_relaxed);
    return index;
  }
  return kNone;
}

uint64_t Log::sealed_records() {
  uint64_t records = 0;
  for (uint32_t i = 0; i < segment_count_; ++i)
    // Pairs with the release in sealed().
    if (segments_[i].state.load(std::memory_order_acquire) == Segment::State::kSealed)
      records += segments_[i].entry_count;
  return records;
}

}  // namespace kv
