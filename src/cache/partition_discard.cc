// Partition: Discard, in the steps that partition.h numbers.
#include "cache/partition.h"

namespace cache {

void Partition::discard(PageId first, uint64_t count, After after, Lane& lane) {
  const PageId end = first + count;
  PageId page = first;
  while (index(page) < index(end)) {
    lane.victim_count = 0;
    PageId blocked = end;  // first page that must wait for its Io
    uint32_t key = 0;
    {
      sys::LockGuard guard(mutex_);
      uint64_t cut_to = 0;
      while (index(page) < index(end) && lane.victim_count < batch_size_) {
        if (shared_->directory.leaf_of(page) == 0) {
          page = PageId{base::round_down(index(page), kGroupPages) + kGroupPages};
          continue;
        }
        if (is_in_region(page) && map_.find(page).frame != base::kNoFrame) {
          const uint64_t emptied = after == After::kInUse ? empty_in_region(page, end) : 0;
          page = page + emptied;
          if (emptied > 0) continue;
          // In this hold of the lock, so that it is not mapped again until the frame is known to be free.
          const uint64_t at = address_of(page);
          if (at >= cut_to) {
            cut_to = after == After::kInUse
                         ? address_of(page + 1)
                         : std::min(base::round_down(at, kRegionBytes) + kRegionBytes, address_of(end));
            cut_locked(at, cut_to);
          }
        }
        if (!lock_for_discard(page, lane)) {
          blocked = page;
          key = changed_.prepare();
          break;
        }
        page = page + 1;
      }
    }
    if (lane.victim_count > 0) {
      shared_->holders->barrier();
      mark_held(lane);
      sys::LockGuard guard(mutex_);
      for (uint32_t v = 0; v < lane.victim_count; ++v) {
        const Lane::Victim& victim = lane.victims[v];
        Frame& frame = frames_[victim.frame];
        if (!frame.is(State::kEvicting, victim.version) || victim.held) {
          // Rescued by a thread that touched it, or held by one: the frame stays, the content goes. It may
          // have moved on since (evicted, or taken for another page): then there is nothing in it to zero.
          if (map_.find(victim.page).frame == victim.frame && frame.is(State::kEvicting, victim.version)) {
            frame.rescue();
            reopen(victim.frame);
          }
          if (map_.find(victim.page).frame == victim.frame && frame.state() == State::kResident &&
              !frame.io()) {
            zero_in_place(victim.frame);
          } else {
            page = PageId{index(victim.page) < index(page) ? index(victim.page) : index(page)};
          }
          continue;
        }
        drop_locked(victim.frame);
      }
      // Regions take fresh frames, and others must not hold what they may have of the budget.
      if (shared_->regions.is_on()) release_dropped(lane);
      changed_.notify_all();
    }
    if (blocked != end) wait_for_change(key);
  }
}

// The memory of frames that the batch made free goes back to the system.
void Partition::release_dropped(Lane& lane) {
  const auto is_free = [&](uint32_t v) { return frames_[lane.victims[v].frame].state() == State::kFree; };
  for (uint32_t v = 0; v < lane.victim_count;) {
    if (!is_free(v)) {
      ++v;
      continue;
    }
    const FrameId first = lane.victims[v].frame;
    uint32_t count = 0;
    for (; v < lane.victim_count && lane.victims[v].frame == first + count && is_free(v); ++v) ++count;
    frames_.release_run(first, count);
  }
}

// Step 1 for one page, and all there is to do for one that is not resident or pinned. Returns false when
// the page has an Io under way.
bool Partition::lock_for_discard(PageId page, Lane& lane) {
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
  shared_->table->lock(page);
  lane.victims[lane.victim_count++] = {.frame = where.frame, .page = page, .version = frame.lock()};
  return true;
}

// Step 3 for a locked frame that nobody holds: page and content are no more.
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

// Step 3 for others: the frame stays with its page, which reads as zeros and has no place any more.
void Partition::zero_in_place(FrameId id) {
  spillway_plain_memset(frames_.unwatched_bytes(id), 0, shared_->page_bytes);
  note_zeros(id);
}

// Its content is zeros from now on, and nowhere else.
void Partition::note_zeros(FrameId id) {
  Frame& frame = frames_[id];
  frame.watched = false;
  if (frame.place != base::kNoPlace) shared_->places.give_back(frame.place);
  frame.place = base::kNoPlace;
  frame.verified = false;
  for (uint64_t piece = 0; piece < pieces_; ++piece)
    frames_.fingerprints(id)[piece] = base::zero_fingerprint();
  base::statistics.cache_discards.add();
}

}  // namespace cache
