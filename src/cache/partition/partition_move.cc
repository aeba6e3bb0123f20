// Partition: Move, the choice of places for a batch of changed pages that are about to be written.
//
// A page that has a place is written there. If that would take an Io for each of many pages, they get new places next to each other instead, in the order
// of their addresses, and one Io writes them all. The page has its old place until the write has succeeded, and gives that back then, or else the new
// one (settle_place). Meanwhile nobody else has either of them, since the frame has io set.
//
// Pages that lie together on storage stay together, so that reading ahead works for whoever reads them in sequence.
#include "base/bits.h"
#include "cache/partition/partition.h"

namespace cache {
namespace {

// Pages that would each be written by an Io of their own move if a batch has at least so many.
constexpr uint32_t kMinMoved = 4;
// Pages on neighbouring places stay there if there are at least so many of them.
constexpr uint32_t kTogether = 4;

}  // namespace

// Puts the victims that will be written into `order`, so that neighbours on storage follow each other: first those that stay where they are, by page; then
// those that move, by new place. Returns how many there are.
uint32_t Partition::plan_writes(Batch& batch, uint8_t* order) {
  uint32_t count = 0;
  for (uint32_t v = 0; v < batch.victim_count; ++v) {
    if (batch.victims[v].changed_count == 0) continue;
    uint32_t at = count++;
    for (; at > 0 && batch.victims[v].page < batch.victims[order[at - 1]].page; --at)
      order[at] = order[at - 1];
    order[at] = static_cast<uint8_t>(v);
  }
  for (uint32_t i = 0; i < count; ++i) write_whole_if_frozen(batch, order[i]);
  uint8_t moving[Batch::kMaxVictims];
  const uint32_t moving_count = take_scattered(batch, order, count, moving);
  const bool chaos = shared_->chaos_seed != 0;
  // More than one Io for two pages is no gain over writing them where they are.
  uint32_t runs_left = chaos ? moving_count : moving_count / 2;
  uint32_t moved = 0;
  if (moving_count >= (chaos ? 1 : kMinMoved)) {
    while (moved < moving_count && runs_left-- > 0) {
      const Places::Run run = shared_->places.take_run(moving_count - moved);
      if (run.count == 0) break;
      for (uint32_t i = 0; i < run.count; ++i)
        batch.victims[moving[moved++]].new_place = PlaceId{index(run.first) + i};
    }
  }
  // Victims for which no new place was found go behind those that stay.
  const uint32_t staying = count - moving_count;
  for (uint32_t i = moved; i < moving_count; ++i) order[staying + i - moved] = moving[i];
  for (uint32_t i = 0; i < moved; ++i) order[count - moved + i] = moving[i];
  return count;
}

// A place that a child of fork may read, or a parent, is not written to: the page moves, as a whole.
void Partition::write_whole_if_frozen(Batch& batch, uint32_t v) {
  Batch::Victim& victim = batch.victims[v];
  const PlaceId place = frames_[victim.frame].place;
  if (place == base::kNoPlace || shared_->places.may_overwrite(place)) return;
  victim.must_move = true;
  victim.changed_count = static_cast<uint32_t>(pieces_);
  for (uint64_t piece = 0; piece < pieces_; ++piece) base::set_bit(batch.changed[v], piece);
}

// Takes a place for a victim that has none where it may be written. If there is none, the frame is left without a place, or a victim that must move
// without a new one.
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

// Moves the victims that shall move from `order`, which has `count`, to `scattered`, and returns how many these are: those that must move, and those that
// are changed as a whole and whose neighbours on storage are not written, too.
uint32_t Partition::take_scattered(const Batch& batch, uint8_t* order, uint32_t count, uint8_t* scattered) {
  const auto place_of = [&](uint32_t i) { return frames_[batch.victims[order[i]].frame].place; };
  uint32_t scattered_count = 0;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count;) {
    uint32_t end = i + 1;
    while (end < count && place_of(i) != base::kNoPlace &&
           index(place_of(end)) == index(place_of(i)) + (end - i))
      ++end;
    const bool together = place_of(i) == base::kNoPlace || end - i >= kTogether;
    for (; i < end; ++i) {
      const Batch::Victim& victim = batch.victims[order[i]];
      const bool moves = victim.must_move || (!together && victim.changed_count == pieces_);
      if (moves)
        scattered[scattered_count++] = order[i];
      else
        order[kept++] = order[i];
    }
  }
  return scattered_count;
}

// The victim's write is over: its page is at the place that was written, or where it was before. Returns false, after noting it, if the write has failed.
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
    // The page may still be written where it is: storage that is full takes no more, but overwrites what it has.
    shared_->places.pause_moves();
  } else if (victim.whole_page) {
    // As long as not all of the page was written, nothing is there.
    shared_->places.give_back(frame.place);
    frame.place = base::kNoPlace;
  }
  return false;
}

}  // namespace cache
