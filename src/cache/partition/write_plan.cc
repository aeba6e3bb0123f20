#include "cache/partition/write_plan.h"

#include "base/bits.h"

namespace cache {
namespace {

// Pages that would each take an Io of their own move if a batch has at least so many of them.
constexpr uint32_t kMinMoved = 4;
// Pages on neighbouring places stay there if there are at least so many of them.
constexpr uint32_t kTogether = 4;

}  // namespace

WritePlan::WritePlan(Batch& batch, FramePool& frames, Places& places, bool chaos)
    : batch_(batch), frames_(frames), places_(places), pieces_(frames.page_bytes() / base::kOsPageBytes) {
  order_by_page();
  for (uint32_t i = 0; i < count_; ++i) write_whole_if_frozen(order_[i]);
  uint8_t moving[Batch::kMaxVictims];
  const uint32_t moving_count = take_scattered(moving);
  const uint32_t moved = take_new_places(moving, moving_count, chaos);
  // Victims for which no new place was found go behind those that stay.
  const uint32_t staying = count_ - moving_count;
  for (uint32_t i = moved; i < moving_count; ++i) order_[staying + i - moved] = moving[i];
  for (uint32_t i = 0; i < moved; ++i) order_[count_ - moved + i] = moving[i];
}

void WritePlan::order_by_page() {
  for (uint32_t v = 0; v < batch_.victim_count; ++v) {
    if (batch_.victims[v].changed_count == 0) continue;
    uint32_t at = count_++;
    for (; at > 0 && batch_.victims[v].page < batch_.victims[order_[at - 1]].page; --at)
      order_[at] = order_[at - 1];
    order_[at] = static_cast<uint8_t>(v);
  }
}

void WritePlan::write_whole_if_frozen(uint32_t v) {
  Batch::Victim& victim = batch_.victims[v];
  const PlaceId place = frames_[victim.frame].place;
  if (place == base::kNoPlace || places_.may_overwrite(place)) return;
  victim.must_move = true;
  victim.changed_count = static_cast<uint32_t>(pieces_);
  for (uint64_t piece = 0; piece < pieces_; ++piece) base::set_bit(batch_.changed[v], piece);
}

// Takes the victims that are to move from `order_` into `scattered`, and returns how many these are: those that must move, and those that are changed
// as a whole and have too few neighbours on storage in this batch.
uint32_t WritePlan::take_scattered(uint8_t* scattered) {
  const auto place_of = [&](uint32_t i) { return frames_[batch_.victims[order_[i]].frame].place; };
  uint32_t scattered_count = 0;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count_;) {
    uint32_t end = i + 1;
    while (end < count_ && place_of(i) != base::kNoPlace &&
           index(place_of(end)) == index(place_of(i)) + (end - i))
      ++end;
    const bool together = place_of(i) == base::kNoPlace || end - i >= kTogether;
    for (; i < end; ++i) {
      const Batch::Victim& victim = batch_.victims[order_[i]];
      const bool moves = victim.must_move || (!together && victim.changed_count == pieces_);
      if (moves)
        scattered[scattered_count++] = order_[i];
      else
        order_[kept++] = order_[i];
    }
  }
  return scattered_count;
}

// Takes new places for the victims in `moving`, from the first on, if these are enough to be worth it. Returns how many victims got one.
uint32_t WritePlan::take_new_places(const uint8_t* moving, uint32_t moving_count, bool chaos) {
  // With fewer than two pages to an Io, moving gains nothing over writing them where they are.
  uint32_t runs_left = chaos ? moving_count : moving_count / 2;
  uint32_t moved = 0;
  if (moving_count >= (chaos ? 1 : kMinMoved)) {
    while (moved < moving_count && runs_left-- > 0) {
      const Places::Run run = places_.take_run(moving_count - moved);
      if (run.count == 0) break;
      for (uint32_t i = 0; i < run.count; ++i)
        batch_.victims[moving[moved++]].new_place = PlaceId{index(run.first) + i};
    }
  }
  return moved;
}

}  // namespace cache
