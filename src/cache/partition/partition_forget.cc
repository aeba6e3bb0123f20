// Partition: Forget, in the steps that partition.h numbers.
//
// A page that is held when it is forgotten keeps its frame, EVICTING and `gone`, with locked entries: nobody can reach it
// any more, but threads that translated before continue undisturbed. The next call for the page looks again.
#include "cache/partition/partition.h"

namespace cache {

Partition::Left Partition::forget(PageId first, uint64_t count, Workspace& workspace) {
  Left left;
  Batch& batch = workspace.batch;
  const PageId end = first + count;
  for (PageId page = first; index(page) < index(end);) {
    batch.victim_count = 0;
    {
      sys::LockGuard guard(mutex_);
      while (index(page) < index(end) && batch.victim_count < batch_size_) {
        if (skip_unknown_group(page)) continue;
        if (!lock_for_forget(page, batch)) ++left.busy;
        page = page + 1;
      }
    }
    if (batch.victim_count == 0) continue;
    shared_->holders->barrier();
    batch.mark_held(*shared_->holders);
    sys::LockGuard guard(mutex_);
    for (uint32_t v = 0; v < batch.victim_count; ++v) {
      const Batch::Victim& victim = batch.victims[v];
      CHECK(frames_[victim.frame].is(State::kEvicting, victim.version));
      if (victim.held) {
        ++left.held;
        continue;
      }
      drop_locked(victim.frame);
    }
    changed_.notify_all();
  }
  return left;
}

// Step 1 for one page; for a page that is not in memory, all of forget. Returns false if the page is pinned, an Io is under way for it, or it is being
// evicted.
bool Partition::lock_for_forget(PageId page, Batch& batch) {
  const PageMap::Where where = map_.find(page);
  if (where.place != base::kNoPlace) {
    shared_->places.give_back(where.place);
    map_.erase(page);
    return true;
  }
  if (where.frame == base::kNoFrame) return true;
  Frame& frame = frames_[where.frame];
  uint32_t version = frame.version();
  if (!(frame.state() == State::kEvicting && frame.gone)) {
    if (frame.state() != State::kResident || frame.io() || frame.pins() > 0) return false;
    if (shared_->table->lock(page)) note_used(frame);
    frame.gone = true;
    version = frame.lock();
  }
  batch.victims[batch.victim_count++] = {.frame = where.frame, .page = page, .version = version};
  return true;
}

}  // namespace cache
