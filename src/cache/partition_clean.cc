// Partition: Clean, in the steps that partition.h numbers.
//
// Only one thread cleans a partition at a time (the background thread), and it owns Shared::clean_copies.
//
// Why a page that was verified needs no hash when it is evicted: its entries were cooling and no slot held it
// after the barrier, so every later access goes through rearm, which leaves the entry hot. Eviction locks the
// entries and looks at what they were: still cooling means untouched.
#include "cache/partition.h"

namespace cache {
namespace {

// How far ahead of eviction to look, in batches.
constexpr uint32_t kBatchesAhead = 8;

}  // namespace

uint32_t Partition::clean(Lane& lane) {
  choose_for_cleaning(lane);
  if (lane.victim_count == 0) return 0;
  shared_->holders->barrier();
  mark_held(lane);
  find_untouched(lane);
  copy_changed(lane);
  prepare_clean_writes(lane);
  lane.run_ios();
  return settle_cleaned(lane);
}

// Step 1.
void Partition::choose_for_cleaning(Lane& lane) {
  lane.victim_count = 0;
  lane.io_count = 0;
  lane.segment_count = 0;
  uint64_t most = kCleanCopyBytes / shared_->page_bytes;
  if (most == 0) most = 1;
  if (most > batch_size_) most = batch_size_;
  sys::LockGuard guard(mutex_);
  const uint32_t count = frames_.frame_count();
  const uint32_t reach = std::min(kBatchesAhead * batch_size_, count);
  for (uint32_t looked = 0; looked < reach && lane.victim_count < most; ++looked) {
    const FrameId id = policy_->name_to_clean(reach);
    if (id == base::kNoFrame) break;
    Frame& frame = frames_[id];
    if (frame.state() != State::kResident || frame.io() || frame.pins() > 0 || frame.verified ||
        frame.guarded || is_in_region(frame.page))
      continue;
    if (shared_->table->is_hot(frame.page)) continue;
    lane.victims[lane.victim_count++] = {
        .frame = id, .page = frame.page, .version = frame.clean(), .watched = frame.watched};
  }
}

// Step 3, without the lock: io keeps the frame where it is, not its content.
void Partition::copy_changed(Lane& lane) {
  for (uint32_t v = 0; v < lane.victim_count; ++v) {
    Lane::Victim& victim = lane.victims[v];
    if (victim.held || victim.untouched) continue;
    const char* bytes = frames_.bytes(victim.frame);
    const base::Fingerprint* known = frames_.fingerprints(victim.frame);
    uint64_t piece = 0;
    while (piece < pieces_ &&
           ((victim.watched && (lane.untouched[v][piece / 64] >> (piece % 64) & 1) != 0) ||
            known[piece].same_content_as(base::take_fingerprint(bytes + piece * base::kOsPageBytes))))
      ++piece;
    if (piece == pieces_) continue;
    victim.changed_count = static_cast<uint32_t>(pieces_);
    spillway_plain_memcpy(shared_->clean_copies + v * shared_->page_bytes, bytes, shared_->page_bytes);
  }
}

// For each changed page a place if it has none yet, the fingerprints unknown for the time of the write, and its
// part of an Io: the whole page, since a copy of it is at hand.
void Partition::prepare_clean_writes(Lane& lane) {
  sys::LockGuard guard(mutex_);
  uint8_t order[Lane::kMaxBatch];
  const uint32_t count = plan_writes(lane, order);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t v = order[i];
    Lane::Victim& victim = lane.victims[v];
    Frame& frame = frames_[victim.frame];
    take_place(victim);
    if (frame.place == base::kNoPlace || (victim.must_move && victim.new_place == base::kNoPlace)) {
      victim.changed_count = 0;
      victim.held = true;  // storage is full: evict() says so if it comes to that
      continue;
    }
    for (uint64_t piece = 0; piece < pieces_; ++piece)
      frames_.fingerprints(victim.frame)[piece] = base::Fingerprint::unknown();
    const PlaceId place = victim.new_place != base::kNoPlace ? victim.new_place : frame.place;
    add_write(lane, uint64_t{index(place)} * shared_->page_bytes,
              shared_->clean_copies + v * shared_->page_bytes, shared_->page_bytes);
    victim.first_io = victim.last_io = lane.io_count - 1;
  }
}

// Step 5. Returns how many pages were written.
uint32_t Partition::settle_cleaned(Lane& lane) {
  sys::LockGuard guard(mutex_);
  uint32_t written = 0;
  for (uint32_t v = 0; v < lane.victim_count; ++v) {
    Lane::Victim& victim = lane.victims[v];
    Frame& frame = frames_[victim.frame];
    CHECK(frame.is(State::kResident, victim.version));
    if (victim.changed_count > 0) {
      const storage::Io& io = lane.ios[victim.first_io];
      if (settle_place(victim, io.whole() ? nullptr : &io)) {
        const char* copy = shared_->clean_copies + v * shared_->page_bytes;
        for (uint64_t piece = 0; piece < pieces_; ++piece)
          frames_.fingerprints(victim.frame)[piece] =
              base::take_fingerprint(copy + piece * base::kOsPageBytes);
        base::statistics.cache_writebacks.add(pieces_);
        base::statistics.cache_cleans.add();
        ++written;
      } else {
        victim.held = true;
      }
    }
    frame.verified = !victim.held && !shared_->table->is_hot(frame.page);
    frame.done();
  }
  changed_.notify_all();
  return written;
}

}  // namespace cache
