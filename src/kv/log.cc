#include "kv/log.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kv/entry.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint32_t kPreparedAtOnce = 16;

uint64_t entries_bytes(const Geometry& geometry) {
  return uint64_t{geometry.segment_grains()} * sizeof(SummaryEntry);
}

}  // namespace

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
  return {};
}

void Log::close() {
  if (segments_ == nullptr) return;
  for (uint32_t i = 0; i < segment_count_; ++i)
    if (segments_[i].entries != nullptr) sys::unmap(segments_[i].entries, entries_bytes(identity_->geometry));
  sys::unmap(segments_, segment_count_ * sizeof(Segment));
}

bool Log::fits(const Segment& segment, uint32_t grains) const {
  return uint64_t{segment.used_grains} + grains +
             summary_grains(identity_->geometry, segment.entry_count + 1) <=
         identity_->geometry.segment_grains();
}

// REQUIRES: lock_.
uint32_t Log::take_ready() {
  if (ready_count_ == 0) return kNone;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    Segment& segment = segments_[i];
    if (segment.state.load(std::memory_order_relaxed) != Segment::State::kReady) continue;
    --ready_count_;
    segment.state.store(Segment::State::kOpen, std::memory_order_relaxed);
    segment.used_grains = 1;
    segment.entry_count = 0;
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

Log::Room Log::allocate(uint32_t stream_index, uint32_t grains, SummaryEntry entry, Extent& extent) {
  Stream& stream = streams_[stream_index];
  sys::LockGuard scope(stream.lock);
  if (has_failed()) return Room::kFull;
  if (stream.segment != kNone && !fits(segments_[stream.segment], grains)) fill(stream);
  if (stream.segment == kNone) {
    sys::LockGuard all(lock_);
    stream.segment = take_ready();
    keeper_wanted.notify_all();
    if (stream.segment == kNone) return free_count_ == 0 ? Room::kFull : Room::kWait;
  }
  Segment& segment = segments_[stream.segment];
  CHECK(fits(segment, grains));  // records are much smaller than segments
  segment.writers.fetch_add(1, std::memory_order_relaxed);
  entry.grain = segment.used_grains;
  entry.grains = grains;
  segment.entries[segment.entry_count] = entry;
  extent = {.address = identity_->geometry.address(stream.segment, segment.used_grains),
            .generation = segment.generation.load(std::memory_order_relaxed),
            .segment = stream.segment,
            .entry = segment.entry_count++};
  segment.used_grains += grains;
  hold(extent.address, size_code::of(grains));
  return Room::kDone;
}

void Log::finish(const Extent& extent, bool written) {
  Segment& segment = segments_[extent.segment];
  if (!written) {
    // The entry is this writer's alone until the segment is sealed.
    SummaryEntry& entry = segment.entries[extent.entry];
    entry.sequence_and_kind = with_kind(entry.sequence(), RecordKind::kVoid);
    release(extent.address, size_code::of(entry.grains));
  }
  // Pairs with the acquire in seal().
  if (segment.writers.fetch_sub(1, std::memory_order_release) == 1 &&
      segment.state.load(std::memory_order_acquire) == Segment::State::kFull)
    keeper_wanted.notify_all();
}

void Log::hold(uint64_t address, uint32_t size_code) {
  segments_[identity_->geometry.segment_of(address)].live_grains.fetch_add(size_code::grains(size_code),
                                                                           std::memory_order_relaxed);
}

void Log::release(uint64_t address, uint32_t size_code) {
  segments_[identity_->geometry.segment_of(address)].live_grains.fetch_sub(size_code::grains(size_code),
                                                                           std::memory_order_relaxed);
}

bool Log::wait_for_room() {
  struct Call final : Waiter {
  } waiter;
  {
    sys::LockGuard scope(lock_);
    if (has_failed() || (ready_count_ == 0 && free_count_ == 0)) return false;
    if (ready_count_ > 0) return true;
    waiting_.append(waiter);
  }
  keeper_wanted.notify_all();
  waiter.wait();
  return !has_failed();
}

void Log::fail() {
  failed_.store(true, std::memory_order_release);
  Waiters waiting;
  {
    sys::LockGuard scope(lock_);
    waiting = waiting_.take_all();
  }
  waiting.wake_all();
}

void Log::fill_all() {
  for (uint32_t i = 0; i < stream_count_; ++i) {
    sys::LockGuard scope(streams_[i].lock);
    if (streams_[i].segment != kNone) fill(streams_[i]);
  }
}

int Log::seal_all(Channel& channel) {
  fill_all();
  bool did = false;
  if (const int error = seal(channel, did); error != 0) return error;
  return channel.flush();
}

int Log::keep(Channel& channel, bool& did) {
  did = false;
  if (const int error = prepare(channel, did); error != 0) return error;
  return seal(channel, did);
}

int Log::prepare(Channel& channel, bool& did) {
  const Geometry& geometry = identity_->geometry;
  uint32_t chosen[kPreparedAtOnce];
  uint64_t generations[kPreparedAtOnce];
  uint32_t count = 0;
  {
    sys::LockGuard scope(lock_);
    const uint32_t wanted = std::min(kPreparedAtOnce, std::max(2u, stream_count_));
    for (uint32_t looked = 0; ready_count_ + count < wanted && free_count_ > count && looked < segment_count_;
         ++looked) {
      const uint32_t index = next_free_;
      next_free_ = (next_free_ + 1) % segment_count_;
      if (segments_[index].state.load(std::memory_order_relaxed) != Segment::State::kFree) continue;
      if (std::find(chosen, chosen + count, index) != chosen + count) continue;
      generations[count] = ++generation_;
      chosen[count++] = index;
    }
  }
  if (count == 0) return 0;
  did = true;
  alignas(4096) std::byte block[4096];
  for (uint32_t i = 0; i < count; ++i) {
    Segment& segment = segments_[chosen[i]];
    if (segment.entries == nullptr) {
      auto memory = sys::map_anonymous(entries_bytes(geometry), "the summary of a segment");
      if (!memory) return ENOMEM;
      segment.entries = reinterpret_cast<SummaryEntry*>(*memory);
    }
    const std::span header(block, geometry.grain_bytes);
    write_segment_header(*identity_,
                         {.generation = generations[i],
                          .state = SegmentState::kUsed,
                          .opened_sequence = sequence_.load(std::memory_order_relaxed)},
                         header);
    if (const int error = channel.write(geometry.segment_offset(chosen[i]), header); error != 0) return error;
  }
  if (const int error = channel.flush(); error != 0) return error;
  Waiters waiting;
  {
    sys::LockGuard scope(lock_);
    for (uint32_t i = 0; i < count; ++i) {
      segments_[chosen[i]].generation.store(generations[i], std::memory_order_relaxed);
      segments_[chosen[i]].state.store(Segment::State::kReady, std::memory_order_relaxed);
    }
    free_count_ -= count;
    ready_count_ += count;
    waiting = waiting_.take_all();
  }
  waiting.wake_all();
  return 0;
}

int Log::seal(Channel& channel, bool& did) {
  for (uint32_t i = 0; i < segment_count_; ++i) {
    Segment& segment = segments_[i];
    if (segment.state.load(std::memory_order_acquire) != Segment::State::kFull ||
        segment.writers.load(std::memory_order_acquire) != 0)
      continue;
    did = true;
    if (const int error = channel.flush(); error != 0) return error;
    if (const int error =
            write_summary_of(channel, i, {segment.entries, segment.entry_count}, segment.used_grains);
        error != 0)
      return error;
    sys::unmap(segment.entries, entries_bytes(identity_->geometry));
    segment.entries = nullptr;
    sys::LockGuard scope(lock_);
    segment.state.store(Segment::State::kSealed, std::memory_order_release);
  }
  return 0;
}

int Log::write_summary_of(Channel& channel, uint32_t index, std::span<const SummaryEntry> entries,
                          uint32_t used_grains) {
  const Geometry& geometry = identity_->geometry;
  const uint32_t grains = summary_grains(geometry, entries.size());
  const uint64_t bytes = uint64_t{grains} * geometry.grain_bytes;
  auto memory = sys::map_anonymous(bytes, "the summary of a segment");
  if (!memory) return ENOMEM;
  const std::span to(reinterpret_cast<std::byte*>(*memory), bytes);
  uint64_t last_sequence = 0;
  for (const SummaryEntry& entry : entries) last_sequence = std::max(last_sequence, entry.sequence());
  memcpy(to.data(), entries.data(), entries.size_bytes());
  uint64_t sealed_generation = 0;
  {
    sys::LockGuard scope(lock_);
    sealed_generation = generation_;
  }
  write_summary(*identity_,
                {.generation = segments_[index].generation.load(std::memory_order_relaxed),
                 .sealed_generation = sealed_generation,
                 .entry_count = static_cast<uint32_t>(entries.size()),
                 .used_grains = used_grains,
                 .last_sequence = last_sequence},
                to);
  const int error = channel.write(
      geometry.segment_offset(index) + (geometry.segment_grains() - grains) * uint64_t{geometry.grain_bytes},
      to);
  sys::unmap(*memory, bytes);
  return error;
}

void Log::recovered(uint32_t index, Segment::State state, uint64_t generation) {
  Segment& segment = segments_[index];
  segment.generation.store(generation, std::memory_order_relaxed);
  segment.state.store(state, std::memory_order_relaxed);
  if (state != Segment::State::kFree) --free_count_;
  generation_ = std::max(generation_, generation);
}

void Log::recovered_sequence(uint64_t sequence) {
  if (sequence > sequence_.load(std::memory_order_relaxed))
    sequence_.store(sequence, std::memory_order_relaxed);
}

void Log::verify() {
  sys::LockGuard scope(lock_);
  std::vector<uint64_t> generations;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    const Segment& segment = segments_[i];
    if (segment.state.load(std::memory_order_relaxed) == Segment::State::kFree) continue;
    CHECK_EQ(segment.writers.load(std::memory_order_relaxed), 0u);
    generations.push_back(segment.generation.load(std::memory_order_relaxed));
    CHECK_LE(generations.back(), generation_);
  }
  std::ranges::sort(generations);
  CHECK(std::ranges::adjacent_find(generations) == generations.end());
}

LogCounts Log::counts() {
  LogCounts counts;
  sys::LockGuard scope(lock_);
  counts.free_segments = free_count_ + ready_count_;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    counts.live_grains += segments_[i].live_grains.load(std::memory_order_relaxed);
    if (segments_[i].state.load(std::memory_order_relaxed) == Segment::State::kSealed)
      ++counts.sealed_segments;
  }
  return counts;
}

}  // namespace kv
