// Partition: Move, the places of pages that are being written (write_plan.h says which of them move).
//
// A page that moves keeps its old place until the write has succeeded; then that is given back, else the new one (settle_place). Meanwhile nobody else
// gets either of them, since the frame has io set.
#include "cache/partition/partition.h"

namespace cache {

PlaceId Partition::neighbour_place(PageId page) {
  const PageMap::Where before = find_before(page);
  const PlaceId place = before.frame != base::kNoFrame ? frames_[before.frame].place : before.place;
  return place == base::kNoPlace ? place : PlaceId{index(place) + 1};
}

// Takes a place for a victim that has none yet, or must move and has no new one. If storage is full, it still has none afterwards.
void Partition::take_place(Batch::Victim& victim) {
  Frame& frame = frames_[victim.frame];
  victim.whole_page = frame.place == base::kNoPlace;
  if (!victim.whole_page && (!victim.must_move || victim.new_place != base::kNoPlace)) return;
  PlaceId place = shared_->places.take(victim.page, neighbour_place(victim.page));
  // Places that were kept for children may be free by now.
  if (place == base::kNoPlace && shared_->places.collect_children() > 0)
    place = shared_->places.take(victim.page, base::kNoPlace);
  (victim.whole_page ? frame.place : victim.new_place) = place;
}

// The victim's write has ended: its page is at the place that was written, or where it was before. If the write has failed, notes that and returns
// false.
bool Partition::settle_place(Batch& batch, const Batch::Victim& victim, const storage::Io* failed) {
  Frame& frame = frames_[victim.frame];
  const bool moved = victim.new_place != base::kNoPlace;
  if (failed == nullptr) {
    failed_writes_ = 0;
    if (moved) {
      shared_->places.give_back(frame.place);
      frame.place = victim.new_place;
      base::statistics.cache_moves.add();
    }
    return true;
  }
  note_failed_write(batch, failed->error != 0 ? failed->error : ENOSPC);
  if (moved) {
    shared_->places.give_back(victim.new_place);
    if (victim.must_move) return false;
    // The page can still be written at its old place: full storage takes nothing new, but can be overwritten.
    shared_->places.pause_moves();
  } else if (victim.whole_page) {
    // A place counts only once the whole page has been written there.
    shared_->places.give_back(frame.place);
    frame.place = base::kNoPlace;
  }
  return false;
}

}  // namespace cache
