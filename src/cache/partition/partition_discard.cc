// Partition: Discard, in the steps that partition.h numbers.
#include "cache/partition/partition.h"

namespace cache {

void Partition::discard(PageId first, uint64_t count, After after, Workspace& workspace) {
  const PageId end = first + count;
  Batch& batch = workspace.batch;
  for (PageId page = first; index(page) < index(end);) {
    const std::optional<uint32_t> key = lock_batch_for_discard(page, end, after, batch);
    if (batch.victim_count > 0) {
      shared_->holders->barrier();
      batch.mark_held(*shared_->holders);
      page = finish_discard(page, batch);
    }
    if (key) wait_for_change(*key);
  }
}

// Step 1 for pages from `page` up to `end`, at most a batch; `page` becomes the next one to do. If an Io is under way for that page, returns the key to
// wait with (changed_.prepare).
std::optional<uint32_t> Partition::lock_batch_for_discard(PageId& page, PageId end, After after,
                                                          Batch& batch) {
  batch.victim_count = 0;
  sys::LockGuard guard(mutex_);
  uint64_t cut_to = 0;
  while (index(page) < index(end) && batch.victim_count < batch_size_) {
    if (skip_unknown_group(page)) continue;
    if (is_in_region(page) && map_.find(page).frame != base::kNoFrame) {
      const uint64_t emptied = after == After::kInUse ? empty_in_region(page, end) : 0;
      page = page + emptied;
      if (emptied > 0) continue;
      // Without releasing the lock in between, so that the page is not mapped again before its frame is free.
      const uint64_t at = address_of(page);
      if (at >= cut_to) {
        cut_to = after == After::kInUse
                     ? address_of(page + 1)
                     : std::min(base::round_down(at, kRegionBytes) + kRegionBytes, address_of(end));
        cut_locked(at, cut_to);
      }
    }
    if (!lock_for_discard(page, batch)) return changed_.prepare();
    page = page + 1;
  }
  return std::nullopt;
}

// Steps 3 and 4. Returns where to continue: at `page`, or at the first page before it that has to be looked at again.
PageId Partition::finish_discard(PageId page, const Batch& batch) {
  sys::LockGuard guard(mutex_);
  for (uint32_t v = 0; v < batch.victim_count; ++v) {
    const Batch::Victim& victim = batch.victims[v];
    if (frames_[victim.frame].is(State::kEvicting, victim.version) && !victim.held) {
      drop_locked(victim.frame);
    } else if (!zero_rescued(victim)) {
      page = PageId{std::min(index(victim.page), index(page))};
    }
  }
  // Regions take fresh frames, so free frames must not keep memory that the budget has for these.
  if (shared_->regions.is_on()) batch.release_freed(frames_);
  changed_.notify_all();
  return page;
}

// Step 3 for a page that a thread holds, or has touched and thereby rescued: it stays in its frame, but its content is dropped. False: it has been
// evicted since, or is being written, and has to be looked at again.
bool Partition::zero_rescued(const Batch::Victim& victim) {
  if (map_.find(victim.page).frame != victim.frame) return false;
  Frame& frame = frames_[victim.frame];
  if (frame.is(State::kEvicting, victim.version)) {
    frame.rescue();
    reopen(victim.frame);
  }
  if (frame.state() != State::kResident || frame.io()) return false;
  zero_in_place(victim.frame);
  return true;
}

// Step 1 for one page; for a page that is pinned or not in memory, all of discard. Returns false if an Io is under way for the page.
bool Partition::lock_for_discard(PageId page, Batch& batch) {
  const PageMap::Where where = map_.find(page);
  if (where.frame == base::kNoFrame) {
    ghosts_.forget(page);
    policies_.forget(page);
  }
  if (where.place != base::kNoPlace) {
    shared_->places.give_back(where.place);
    map_.erase(page);
    base::statistics.cache_discards.add();
    return true;
  }
  if (where.frame == base::kNoFrame) return true;
  Frame& frame = frames_[where.frame];
  if (frame.state() == State::kEvicting) {
    frame.rescue();
    reopen(where.frame);
  }
  if (frame.state() != State::kResident || frame.io()) return false;
  if (frame.pins() > 0) {
    zero_in_place(where.frame);
    return true;
  }
  if (shared_->table->lock(page)) note_used(frame);
  batch.victims[batch.victim_count++] = {.frame = where.frame, .page = page, .version = frame.lock()};
  return true;
}

// Step 4: the page leaves its frame, its content is dropped, and its place given back.
void Partition::drop_locked(FrameId id) {
  Frame& frame = frames_[id];
  if (frame.place != base::kNoPlace) shared_->places.give_back(frame.place);
  map_.erase(frame.page);
  shared_->table->clear(frame.page);
  frame.gone = false;
  frame.discarded();
  free_frame(id, Removal::kForgotten);
  base::statistics.cache_discards.add();
}

// The page stays in its frame, but reads as zeros and has no place any more.
void Partition::zero_in_place(FrameId id) {
  spillway_plain_memset(frames_.unwatched_bytes(id), 0, shared_->page_bytes);
  note_zeros(id);
}

// Notes that the frame holds zeros now; its page loses its place.
void Partition::note_zeros(FrameId id) {
  Frame& frame = frames_[id];
  frame.watched = false;
  if (frame.place != base::kNoPlace) shared_->places.give_back(frame.place);
  frame.place = base::kNoPlace;
  frame.verified = false;
  frames_.set_fingerprints(id, base::zero_fingerprint());
  base::statistics.cache_discards.add();
}

}  // namespace cache
