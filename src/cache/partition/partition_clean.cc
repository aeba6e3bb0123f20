// Partition: Clean, in the steps that partition.h numbers.
//
// The background thread cleans ahead of evictions, and uses Shared::clean_copies; threads that want pages written bring memory of their own for
// the copies. The io mark keeps them from cleaning the same page.
//
// Why a verified page needs no hash when it is evicted: its entries were cooling and no slot held it
// after the barrier, so every later access goes through rearm, which leaves the entry hot. Eviction locks the
// entries and looks at their old values: still cooling means untouched.
#include "cache/partition/partition.h"
#include "cache/partition/write_plan.h"

namespace cache {
namespace {

// How far ahead of eviction to look, in batches.
constexpr uint32_t kBatchesAhead = 8;

}  // namespace

uint32_t Partition::clean(Workspace& workspace) {
  choose_for_cleaning(workspace.batch);
  return clean_chosen(workspace, shared_->clean_copies).written;
}

Partition::Cleaned Partition::write_back(PageId first, uint64_t count, Workspace& workspace, char* copies) {
  Cleaned all;
  while (count > 0) {
    const uint64_t chosen_from = choose_for_writing(first, count, workspace.batch);
    const Cleaned some = clean_chosen(workspace, copies);
    all.written += some.written;
    all.failed += some.failed;
    first = first + chosen_from;
    count -= chosen_from;
  }
  return all;
}

Partition::Cleaned Partition::clean_chosen(Workspace& workspace, char* copies) {
  Batch& batch = workspace.batch;
  if (batch.victim_count == 0) return {};
  shared_->holders->barrier();
  batch.mark_held(*shared_->holders);
  batch.find_untouched(frames_);
  // Without the lock: io keeps the page in its frame, but its content may still change.
  batch.copy_changed(frames_, copies);
  const uint32_t without_place = prepare_clean_writes(batch, copies);
  workspace.run_ios();
  Cleaned cleaned = settle_cleaned(batch, copies);
  cleaned.failed += without_place;
  tell_of_failed_write(batch);
  return cleaned;
}

uint32_t Partition::most_to_clean() const {
  const auto most = static_cast<uint32_t>(shared_->clean_copy_bytes() / shared_->page_bytes);
  return std::min(most, batch_size());
}

bool Partition::may_clean(const Frame& frame) const {
  return frame.state() == State::kResident && !frame.io() && frame.pins() == 0 && !frame.verified &&
         !frame.guarded && !is_in_region(frame.page);
}

void Partition::take_for_cleaning(FrameId id, Batch& batch) {
  Frame& frame = frames_[id];
  batch.victims[batch.victim_count++] = {
      .frame = id, .page = frame.page, .version = frame.clean(), .watched = frame.watched};
}

// Step 1 of write_back, for pages from `first` on; returns how many it looked at.
uint64_t Partition::choose_for_writing(PageId first, uint64_t count, Batch& batch) {
  batch.begin();
  const uint32_t most = most_to_clean();
  uint64_t looked_at = 0;
  sys::LockGuard guard(mutex_);
  for (; looked_at < count && batch.victim_count < most; ++looked_at) {
    const FrameId id = map_.find(first + looked_at).frame;
    if (id != base::kNoFrame && may_clean(frames_[id])) take_for_cleaning(id, batch);
  }
  return looked_at;
}

// Step 1.
void Partition::choose_for_cleaning(Batch& batch) {
  batch.begin();
  const uint32_t most = most_to_clean();
  sys::LockGuard guard(mutex_);
  const uint32_t count = frames_.frame_count();
  const uint32_t reach = std::min(kBatchesAhead * batch_size_, count);
  for (uint32_t looked = 0; looked < reach && batch.victim_count < most; ++looked) {
    const FrameId id = policies_.name_to_clean(reach);
    if (id == base::kNoFrame) break;
    if (may_clean(frames_[id]) && !shared_->table->is_hot(frames_[id].page)) take_for_cleaning(id, batch);
  }
}

// Step 4 until the Ios run: each changed page gets a place if it has none yet, its fingerprints become unknown during the write, and the whole page
// becomes part of an Io, since there is a copy of it. Returns for how many storage has no place.
uint32_t Partition::prepare_clean_writes(Batch& batch, char* copies) {
  sys::LockGuard guard(mutex_);
  uint32_t without_place = 0;
  const WritePlan plan(batch, frames_, shared_->places, shared_->chaos_seed != 0);
  for (uint32_t i = 0; i < plan.count(); ++i) {
    const uint32_t v = plan[i];
    Batch::Victim& victim = batch.victims[v];
    Frame& frame = frames_[victim.frame];
    take_place(victim);
    if (frame.place == base::kNoPlace || (victim.must_move && victim.new_place == base::kNoPlace)) {
      victim.changed_count = 0;
      victim.held = true;  // storage is full: evict() reports it if the page has to leave
      ++without_place;
      continue;
    }
    frames_.set_fingerprints(victim.frame, base::Fingerprint::unknown());
    const PlaceId place = victim.new_place != base::kNoPlace ? victim.new_place : frame.place;
    batch.add_write(uint64_t{index(place)} * shared_->page_bytes, copies + v * shared_->page_bytes,
                    shared_->page_bytes);
    victim.first_io = victim.last_io = batch.io_count - 1;
  }
  return without_place;
}

// Step 5.
Partition::Cleaned Partition::settle_cleaned(Batch& batch, const char* copies) {
  sys::LockGuard guard(mutex_);
  note_writes(batch);
  Cleaned result;
  for (uint32_t v = 0; v < batch.victim_count; ++v) {
    Batch::Victim& victim = batch.victims[v];
    Frame& frame = frames_[victim.frame];
    CHECK(frame.is(State::kResident, victim.version));
    if (victim.changed_count > 0) {
      const storage::Io& io = batch.ios[victim.first_io];
      if (settle_place(batch, victim, io.whole() ? nullptr : &io)) {
        const char* copy = copies + v * shared_->page_bytes;
        for (uint64_t piece = 0; piece < frames_.pieces(); ++piece)
          frames_.fingerprints(victim.frame)[piece] =
              base::take_fingerprint(copy + piece * base::kOsPageBytes);
        base::statistics.cache_writebacks.add(frames_.pieces());
        base::statistics.cache_cleans.add();
        ++result.written;
      } else {
        victim.held = true;
        ++result.failed;
      }
    }
    frame.verified = !victim.held && !shared_->table->is_hot(frame.page);
    frame.done();
  }
  changed_.notify_all();
  return result;
}

}  // namespace cache
