#include "kv/collection/checkpoint.h"

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "sys/memory.h"

namespace kv {

void Checkpointer::open(const Identity& identity, Index& index, Log& log, Readers& changes,
                        LargeValues& large_values, uint64_t number, std::vector<uint32_t> segments) {
  identity_ = &identity;
  index_ = &index;
  log_ = &log;
  changes_ = &changes;
  large_values_ = &large_values;
  number_ = number;
  segments_ = std::move(segments);
}

void Checkpointer::empty(std::vector<uint32_t>& segments) {
  for (const uint32_t segment : segments) log_->emptied(segment);
  segments.clear();
}

Checkpointer::Taken Checkpointer::take(Channel& channel) {
  CheckpointState state;
  if (!log_->begin_checkpoint(state)) return Taken::kNotNow;
  changes_->wait();
  count_headless(state);

  const uint64_t memory_bytes = base::round_up(kMaxPieceBytes, base::kOsPageBytes) + base::kOsPageBytes;
  const uint64_t image_bytes = base::round_up(sizeof(TableImage), base::kOsPageBytes);
  auto memory = sys::map_anonymous(memory_bytes + image_bytes, "a checkpoint of a store");
  if (!memory) {
    error_ = ENOMEM;
    return Taken::kFailed;
  }
  memory_ = {reinterpret_cast<std::byte*>(*memory), memory_bytes};
  image_ = new (*memory + memory_bytes) TableImage;
  number_ = std::max(number_ + 1, state.generation);
  piece_ = 0;
  bytes_ = 0;
  at_ = 0;
  written_.clear();
  const Taken taken = write_tables(channel, state);
  sys::unmap(*memory, memory_bytes + image_bytes);
  if (taken == Taken::kDone) std::swap(segments_, written_);
  empty(written_);
  return taken;
}

// Values that were removed meanwhile are still there to be counted: only this thread releases their pieces.
void Checkpointer::count_headless(CheckpointState& state) {
  const uint64_t count = state.headless_count + large_values_->headless_count();
  state.headless_count = static_cast<uint32_t>(std::min<uint64_t>(count, ~0u));
}

// Steps 3 and 4.
Checkpointer::Taken Checkpointer::write_tables(Channel& channel, CheckpointState& state) {
  Taken taken = Taken::kDone;
  index_->begin_images();
  for (uint32_t table = 0; table < index_->table_count() && taken == Taken::kDone; ++table) {
    if (!index_->image(table, *image_)) continue;
    state.entry_count += kSlots - static_cast<uint64_t>(std::ranges::count(image_->slots, uint64_t{0}));
    taken = write_piece_bytes(channel, write_piece(*identity_, number_, piece_, table, *image_, memory_));
  }
  index_->end_images();
  if (taken != Taken::kDone) return taken;
  // A head that was replaced while images were taken may be in none of them, while its pieces are.
  changes_->wait();
  count_headless(state);
  error_ = log_->flush(channel);
  if (error_ != 0) return Taken::kFailed;
  taken = write_piece_bytes(channel, write_piece(*identity_, number_, piece_, state, memory_));
  if (taken != Taken::kDone) return taken;
  error_ = log_->flush(channel);
  return error_ == 0 ? Taken::kDone : Taken::kFailed;
}

// Writes the piece that is in memory_.
Checkpointer::Taken Checkpointer::write_piece_bytes(Channel& channel, size_t bytes) {
  CHECK_GT(bytes, 0u);
  const Geometry& geometry = identity_->geometry;
  if (written_.empty() || at_ + bytes > geometry.segment_bytes - geometry.grain_bytes)
    if (!next_segment(channel)) return error_ != 0 ? Taken::kFailed : Taken::kNoRoom;
  error_ = channel.write(geometry.segment_offset(written_.back()) + at_, memory_.first(bytes));
  if (error_ != 0) return Taken::kFailed;
  at_ += bytes;
  bytes_ += bytes;
  ++piece_;
  return Taken::kDone;
}

// Begins the next segment; false: there is none, or error_ says why not. The first header is durable before anything follows it, so that no later
// checkpoint gets the same number. The others need not be: a checkpoint counts as a whole or not at all.
bool Checkpointer::next_segment(Channel& channel) {
  const Geometry& geometry = identity_->geometry;
  error_ = 0;
  const uint32_t segment = log_->take_for_checkpoint();
  if (segment == Log::kNone) return false;
  written_.push_back(segment);
  alignas(4096) std::byte block[4096];
  const std::span header(block, geometry.grain_bytes);
  write_segment_header(*identity_,
                       {.generation = log_->segment(segment).generation.load(std::memory_order_relaxed),
                        .state = SegmentState::kCheckpoint,
                        .part = static_cast<uint32_t>(written_.size() - 1),
                        .opened_sequence = log_->last_sequence(),
                        .checkpoint = number_,
                        .floor = log_->floor()},
                       header);
  for (const uint64_t offset : geometry.header_offsets(segment))
    if (error_ == 0) error_ = channel.write(offset, header);
  if (error_ == 0 && written_.size() == 1) error_ = log_->flush(channel);
  at_ = geometry.grain_bytes;
  return error_ == 0;
}

}  // namespace kv
