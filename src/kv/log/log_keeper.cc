// The keeper's part of the log: segments are prepared for writers, sealed behind them, and given back.
#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "kv/log/log.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint32_t kPreparedAtOnce = 16;
constexpr uint32_t kSealedAtOnce = 16;
constexpr uint64_t kReadyBytes = 32 << 20;
constexpr uint32_t kReadyParts = 32;

uint64_t entries_bytes(const Geometry& geometry) {
  return uint64_t{geometry.segment_grains()} * sizeof(SummaryEntry);
}

}  // namespace

void Log::fill_all() {
  for (uint32_t i = 0; i <= relocation_stream(); ++i) {
    sys::LockGuard scope(streams_[i].lock);
    if (streams_[i].segment.load(std::memory_order_relaxed) != kNone) fill(streams_[i]);
  }
}

int Log::seal_all(Channel& channel) {
  fill_all();
  // What has no summary is read as a whole by the next start.
  for (bool did = true; did;) {
    did = false;
    if (seal(channel, did) != 0 && flush_error() != 0) return flush_error();
  }
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
  uint32_t chosen[kPreparedAtOnce];
  uint64_t generations[kPreparedAtOnce];
  bool did = false;
  for (uint32_t i = 0; i < segment_count_;) {
    uint32_t count = 0;
    for (; i < segment_count_ && count < kPreparedAtOnce; ++i) {
      if (!is_one(i)) continue;
      sys::LockGuard scope(lock_);
      generations[count] = ++generation_;
      chosen[count++] = i;
    }
    did = did || count != 0;
    if (const int error = write_headers(channel, {chosen, count}, {generations, count}, SegmentState::kFree);
        error != 0)
      return error;
  }
  if (!did) return 0;
  if (const int error = flush(channel); error != 0) return error;
  for (uint32_t i = 0; i < segment_count_; ++i) {
    if (!is_one(i)) continue;
    bool stays_free = false;
    {
      sys::LockGuard scope(lock_);
      stays_free = from == Segment::State::kEmptied && available() >= free_high_;
    }
    // That the medium has room again is worth trying, and no more; and not of what is written to soon: in a file such writes would have
    // to find room first, one after the other.
    if (stays_free)
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

// One for each stream, and as many as are filled while these are prepared and others sealed, on a device that is busy: without them all
// writers wait. A start after a crash reads them, so they are no large part of the store, nor large.
uint32_t Log::ready_wanted() const {
  const uint64_t ahead =
      std::min<uint64_t>(kReadyBytes / identity_->geometry.segment_bytes, segment_count_ / kReadyParts);
  return std::min<uint32_t>(kPreparedAtOnce, std::max(2u, stream_count_) + static_cast<uint32_t>(ahead));
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
    const uint32_t wanted = ready_wanted();
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
  for (const uint32_t index : segments) {
    Segment& segment = segments_[index];
    if (segment.entries != nullptr) continue;
    auto memory = sys::map_anonymous(entries_bytes(identity_->geometry), "the summary of a segment");
    if (!memory) return ENOMEM;
    segment.entries = reinterpret_cast<SummaryEntry*>(*memory);
  }
  if (const int error = write_headers(channel, segments, generations, SegmentState::kUsed); error != 0)
    return error;
  return flush(channel);
}

// Both of each, all under way together. 0, or an errno value.
int Log::write_headers(Channel& channel, std::span<const uint32_t> segments,
                       std::span<const uint64_t> generations, SegmentState state) {
  const Geometry& geometry = identity_->geometry;
  const size_t bytes = segments.size() * geometry.grain_bytes;
  if (bytes == 0) return 0;
  auto memory = sys::map_anonymous(bytes, "headers of segments");
  if (!memory) return ENOMEM;
  storage::Io ios[2 * kPreparedAtOnce];
  storage::Io* batch[2 * kPreparedAtOnce];
  iovec pieces[kPreparedAtOnce];
  size_t count = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const std::span header(reinterpret_cast<std::byte*>(*memory) + i * geometry.grain_bytes,
                           geometry.grain_bytes);
    write_segment_header(*identity_,
                         {.generation = generations[i],
                          .state = state,
                          .opened_sequence = sequence_.load(std::memory_order_relaxed)},
                         header);
    pieces[i] = {header.data(), header.size()};
    for (uint64_t offset : geometry.header_offsets(segments[i])) {
      storage::Io& io = ios[count];
      io.operation = storage::Operation::kWrite;
      io.offset_bytes = offset;
      io.segments = &pieces[i];
      io.segment_count = 1;
      io.length_bytes = header.size();
      batch[count++] = &io;
    }
  }
  channel.run({batch, count});
  sys::unmap(*memory, bytes);
  for (const storage::Io* io : std::span(batch, count))
    if (!io->whole()) return io->error != 0 ? io->error : EIO;
  return 0;
}

int Log::seal(Channel& channel, bool& did) {
  uint32_t chosen[kSealedAtOnce];
  uint32_t count = 0;
  for (uint32_t i = 0; i < segment_count_ && count < kSealedAtOnce; ++i)
    // Pairs with the release in leave(): what its writers did is there.
    if (segments_[i].state.load(std::memory_order_acquire) == Segment::State::kFull &&
        segments_[i].writers.load(std::memory_order_seq_cst) == 0 && segments_[i].failed_seals < kSealTries)
      chosen[count++] = i;
  if (count == 0) return 0;
  did = true;
  if (const int error = flush(channel); error != 0) return error;
  int first_error = 0;
  for (const uint32_t index : std::span(chosen).first(count))
    if (const int error = seal(channel, segments_[index], index); first_error == 0) first_error = error;
  collector_wanted.notify_all();
  return first_error;
}

int Log::seal(Channel& channel, Segment& segment, uint32_t index) {
  const int error = write_summary_of(channel, index, {segment.entries, segment.entry_count});
  if (error == 0) {
    sys::unmap(segment.entries, entries_bytes(identity_->geometry));
    segment.entries = nullptr;
    segment.has_old_copies.store(false, std::memory_order_relaxed);
  }
  sys::LockGuard scope(lock_);
  if (error == 0) {
    count_ends(segment, true);
    segment.state.store(Segment::State::kSealed, std::memory_order_release);
  } else if (++segment.failed_seals == kSealTries) {
    base::log("store: the summary of segment ", index, " cannot be written: ", base::error_name(error),
              "; what is there can be read, and is not collected until the store is opened again");
  }
  return error;
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
