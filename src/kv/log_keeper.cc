// The keeper's part of the log: segments are prepared for writers, sealed behind them, and given back.
#include <algorithm>

#include "base/check.h"
#include "kv/log.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint32_t kPreparedAtOnce = 16;

uint64_t entries_bytes(const Geometry& geometry) {
  return uint64_t{geometry.segment_grains()} * sizeof(SummaryEntry);
}

}  // namespace

void Log::fill_all() {
  for (uint32_t i = 0; i <= relocation_stream(); ++i) {
    sys::LockGuard scope(streams_[i].lock);
    if (streams_[i].segment != kNone) fill(streams_[i]);
  }
}

int Log::seal_all(Channel& channel) {
  fill_all();
  bool did = false;
  if (const int error = seal(channel, did); error != 0) return error;
  // A start would read all of a segment that is in use and has no summary.
  if (const int error = free_all(channel, Segment::State::kReady); error != 0) return error;
  if (const int error = give_back(channel); error != 0) return error;
  return flush(channel);
}

int Log::give_back(Channel& channel) { return free_all(channel, Segment::State::kEmptied); }

// Once a free segment's header is on the medium nothing of what it held counts, whatever happens.
int Log::free_all(Channel& channel, Segment::State from) {
  const Geometry& geometry = identity_->geometry;
  const auto is_one = [&](uint32_t i) { return segments_[i].state.load(std::memory_order_relaxed) == from; };
  alignas(4096) std::byte block[4096];
  const std::span header(block, geometry.grain_bytes);
  uint32_t count = 0;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    if (!is_one(i)) continue;
    uint64_t generation = 0;
    {
      sys::LockGuard scope(lock_);
      generation = ++generation_;
    }
    write_segment_header(*identity_,
                         {.generation = generation,
                          .state = SegmentState::kFree,
                          .opened_sequence = sequence_.load(std::memory_order_relaxed)},
                         header);
    for (uint64_t offset : geometry.header_offsets(i))
      if (const int error = channel.write(offset, header); error != 0) return error;
    ++count;
  }
  if (count == 0) return 0;
  if (const int error = flush(channel); error != 0) return error;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    if (!is_one(i)) continue;
    // That the medium has room again is worth trying, and no more.
    static_cast<void>(channel.discard(geometry.segment_offset(i) + geometry.grain_bytes,
                                      geometry.segment_bytes - 2 * geometry.grain_bytes));
    sys::LockGuard scope(lock_);
    (from == Segment::State::kReady ? ready_count_ : emptied_count_) -= 1;
    ++free_count_;
    segments_[i].state.store(Segment::State::kFree, std::memory_order_release);
  }
  keeper_wanted.notify_all();
  changed_room();
  return 0;
}

int Log::keep(Channel& channel, bool& did) {
  did = false;
  if (const int error = prepare(channel, did); error != 0) return error;
  return seal(channel, did);
}

int Log::prepare(Channel& channel, bool& did) {
  uint32_t chosen[kPreparedAtOnce];
  uint64_t generations[kPreparedAtOnce];
  uint32_t count = 0;
  {
    sys::LockGuard scope(lock_);
    const uint32_t wanted = std::min(kPreparedAtOnce, std::max(2u, stream_count_));
    for (uint32_t looked = 0; ready_count_ + count < wanted && free_count_ > 0 && looked < segment_count_;
         ++looked) {
      const uint32_t index = next_free_;
      next_free_ = (next_free_ + 1) % segment_count_;
      if (segments_[index].state.load(std::memory_order_relaxed) != Segment::State::kFree) continue;
      segments_[index].state.store(Segment::State::kPreparing, std::memory_order_relaxed);
      --free_count_;
      ++preparing_count_;
      generations[count] = ++generation_;
      chosen[count++] = index;
    }
  }
  if (count == 0) return 0;
  did = true;
  const int error = write_prepared(channel, {chosen, count}, {generations, count});
  {
    sys::LockGuard scope(lock_);
    for (uint32_t i = 0; i < count; ++i) {
      Segment& segment = segments_[chosen[i]];
      segment.generation.store(generations[i], std::memory_order_relaxed);
      // With an error they are as free as they were, whichever header is there: no record has the new generation.
      segment.state.store(error == 0 ? Segment::State::kReady : Segment::State::kFree,
                          std::memory_order_relaxed);
    }
    preparing_count_ -= count;
    (error == 0 ? ready_count_ : free_count_) += count;
  }
  if (error == 0) changed_room();
  return error;
}

int Log::write_prepared(Channel& channel, std::span<const uint32_t> segments,
                        std::span<const uint64_t> generations) {
  const Geometry& geometry = identity_->geometry;
  alignas(4096) std::byte block[4096];
  const std::span header(block, geometry.grain_bytes);
  for (size_t i = 0; i < segments.size(); ++i) {
    Segment& segment = segments_[segments[i]];
    if (segment.entries == nullptr) {
      auto memory = sys::map_anonymous(entries_bytes(geometry), "the summary of a segment");
      if (!memory) return ENOMEM;
      segment.entries = reinterpret_cast<SummaryEntry*>(*memory);
    }
    write_segment_header(*identity_,
                         {.generation = generations[i],
                          .state = SegmentState::kUsed,
                          .opened_sequence = sequence_.load(std::memory_order_relaxed)},
                         header);
    for (uint64_t offset : geometry.header_offsets(segments[i]))
      if (const int error = channel.write(offset, header); error != 0) return error;
  }
  return flush(channel);
}

int Log::seal(Channel& channel, bool& did) {
  for (uint32_t i = 0; i < segment_count_; ++i) {
    Segment& segment = segments_[i];
    if (segment.state.load(std::memory_order_acquire) != Segment::State::kFull ||
        segment.writers.load(std::memory_order_acquire) != 0)
      continue;
    did = true;
    if (const int error = flush(channel); error != 0) return error;
    if (const int error = write_summary_of(channel, i, {segment.entries, segment.entry_count}); error != 0)
      return error;
    sys::unmap(segment.entries, entries_bytes(identity_->geometry));
    segment.entries = nullptr;
    segment.has_old_copies.store(false, std::memory_order_relaxed);
    {
      sys::LockGuard scope(lock_);
      segment.state.store(Segment::State::kSealed, std::memory_order_release);
    }
    collector_wanted.notify_all();
  }
  return 0;
}

int Log::write_summary_of(Channel& channel, uint32_t index, std::span<const SummaryEntry> entries) {
  const Geometry& geometry = identity_->geometry;
  const Segment& segment = segments_[index];
  const uint32_t grains = summary_grains(geometry, entries.size());
  const uint64_t bytes = uint64_t{grains} * geometry.grain_bytes;
  auto memory = sys::map_anonymous(bytes, "the summary of a segment");
  if (!memory) return ENOMEM;
  const std::span to(reinterpret_cast<std::byte*>(*memory), bytes);
  memcpy(to.data(), entries.data(), entries.size_bytes());
  SegmentFooter footer = {.generation = segment.generation.load(std::memory_order_relaxed),
                          .sealed_generation = taken_generation(),
                          .used_grains = segment.used_grains,
                          .first_expiry = segment.first_expiry.load(std::memory_order_relaxed)};
  describe(entries, footer);
  write_summary(*identity_, footer, to);
  const int error = channel.write(geometry.segment_offset(index + 1) - bytes, to);
  sys::unmap(*memory, bytes);
  return error;
}

}  // namespace kv
