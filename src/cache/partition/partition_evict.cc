// Partition: Evict, in the steps that partition.h numbers.
#include <algorithm>

#include "cache/partition/partition.h"

#include "base/log.h"
#include "base/probe.h"
#include "cache/partition/write_plan.h"
#include "storage/piece_io.h"
#include "sys/kernel.h"

namespace cache {
namespace {

// How often one search for victims may name all pages: once to cool them, once to take them, once more for pages touched meanwhile.
constexpr uint32_t kRounds = 3;
// How many pages are cooled for each page to be evicted, if the policy wants to know of touches before it names victims.
constexpr uint32_t kCooledForEach = 4;

}  // namespace

uint32_t Partition::evict(uint32_t wanted, Workspace& workspace) {
  if (wanted > batch_size_) wanted = batch_size_;
  Batch& batch = workspace.batch;
  lock_victims(wanted, batch);
  if (batch.victim_count == 0) return 0;
  shared_->holders->barrier();
  batch.mark_held(*shared_->holders);
  end_guards(batch);
  batch.find_untouched(frames_);
  batch.compare(frames_);
  uint32_t freed = settle_unwritten(workspace);
  if (batch.io_count > 0) {
    workspace.run_ios();
    freed += settle_written(batch);
  }
  tell_of_failed_write(batch);
  return freed;
}

// Step 1.
void Partition::lock_victims(uint32_t wanted, Batch& batch) {
  batch.begin();
  shared_->regions.end(RegionsEnd::kEviction);
  sys::LockGuard guard(mutex_);
  // In chaos mode the policy still chooses some of the batches.
  if (shared_->chaos_seed != 0 && (next_random() & 3) != 0) lock_random_victims(wanted, batch);
  if (batch.victim_count > 0) return;
  cool_pages(wanted);
  const uint64_t most_steps = uint64_t{kRounds} * frames_.frame_count();
  for (uint64_t steps = 0; steps < most_steps && batch.victim_count < wanted; ++steps) {
    const Policy::Named named = policies_.name_victim();
    if (named.frame == base::kNoFrame) break;
    // So that the thread does not wait for memory while it holds the lock.
    if (const FrameId ahead = policies_.ahead(); ahead != base::kNoFrame)
      shared_->table->prefetch(frames_[ahead].page);
    if (try_lock_victim(named.frame, batch, named.even_touched)) lock_neighbours(named, wanted, batch);
  }
  // So that one call asks the kernel about adjacent frames, and one call protects them.
  std::sort(batch.victims, batch.victims + batch.victim_count,
            [](const Batch::Victim& a, const Batch::Victim& b) { return a.frame < b.frame; });
}

// Locks those pages of the victim's group that may be evicted with it.
void Partition::lock_neighbours(Policy::Named victim, uint32_t wanted, Batch& batch) {
  const PageId first{base::round_down(index(frames_[victim.frame].page), kGroupPages)};
  for (uint64_t i = 0; i < kGroupPages && batch.victim_count < wanted; ++i) {
    const FrameId id = map_.find(first + i).frame;
    if (id == base::kNoFrame || !policies_.goes_with(victim.frame, id)) continue;
    // The policy has not named this page: if it cannot be evicted, it is not cooled either.
    if (!victim.even_touched && (frames_[id].ahead == Ahead::kNew || shared_->table->is_hot(first + i)))
      continue;
    try_lock_victim(id, batch, victim.even_touched);
  }
}

// Chaos: any pages, even hot ones; some are cooled instead, so that cleaning and rearming are exercised, too.
void Partition::lock_random_victims(uint32_t wanted, Batch& batch) {
  for (uint32_t tries = 0; tries < 4 * wanted && batch.victim_count < wanted; ++tries) {
    const FrameId id{static_cast<uint32_t>(next_random() % frames_.frame_count())};
    Frame& frame = frames_[id];
    const bool leave_cool = (next_random() & 4) != 0;
    if (leave_cool && frame.state() == State::kResident && !frame.io() && shared_->table->cool(frame.page))
      frame.verified = false;
    else
      try_lock_victim(id, batch, true);
  }
}

// Cools the pages for which the policy wants to know whether they are touched.
void Partition::cool_pages(uint32_t wanted) {
  uint32_t turns = kCooledForEach * wanted;
  for (;;) {
    const FrameId id = policies_.name_to_cool(turns);
    if (id == base::kNoFrame) return;
    // While a page is being cleaned, hot entries show that it was touched after it was copied: they are left alone.
    Frame& frame = frames_[id];
    if (frame.state() != State::kResident || frame.io()) continue;
    const bool was_touched = shared_->table->cool(frame.page);
    if (was_touched) frame.verified = false;
    if (was_touched) note_used(frame);
    policies_.cooled(id, was_touched);
  }
}

// `even_hot`: the page is taken even if it was touched.
bool Partition::try_lock_victim(FrameId id, Batch& batch, bool even_hot) {
  Frame& frame = frames_[id];
  if (frame.state() != State::kResident || frame.io() || frame.pins() > 0) return false;
  if (!even_hot && spares(frame)) return false;
  if (!even_hot && shared_->table->cool(frame.page)) {
    frame.verified = false;
    policies_.touched(id);
    return false;
  }
  const bool hot = shared_->table->lock(frame.page);
  if (hot) frame.verified = false;
  if (hot) note_used(frame);
  if (hot && !even_hot) {
    // Touched between cool() and lock().
    reopen(id);
    policies_.touched(id);
    return false;
  }
  Batch::Victim& victim = batch.victims[batch.victim_count++];
  map_.prefetch(frame.page);
  victim = {.frame = id,
            .page = frame.page,
            .version = frame.lock(),
            .verified = frame.verified,
            .watched = frame.watched,
            .guarded = frame.guarded};
  ++frame.looked_at;
  policies_.taken(id);
  if (is_in_region(frame.page)) unmap_region(address_of(frame.page));
  return true;
}

// Before step 4: ends the guards of victims that no thread holds, since guards only concern holders. Nobody guards a frame while an evictor looks at
// it.
void Partition::end_guards(const Batch& batch) {
  for (uint32_t v = 0; v < batch.victim_count; ++v) {
    if (!batch.victims[v].guarded || batch.victims[v].held) continue;
    sys::LockGuard guard(mutex_);
    frames_.end_guard(batch.victims[v].frame);
  }
}

// Steps 3 (second half) and 5. Returns how many frames became free.
uint32_t Partition::settle_unwritten(Workspace& workspace) {
  Batch& batch = workspace.batch;
  if (shared_->chaos_seed != 0) {
    for (uint32_t v = 0; v < batch.victim_count; ++v) check_unchanged(batch.victims[v], workspace);
  }
  sys::LockGuard guard(mutex_);
  batch.watch_unchanged(frames_);
  uint32_t freed = 0;
  for (uint32_t v = 0; v < batch.victim_count; ++v) {
    Batch::Victim& victim = batch.victims[v];
    Frame& frame = frames_[victim.frame];
    --frame.looked_at;
    const bool ours = frame.is(State::kEvicting, victim.version);
    if (ours && victim.held) {
      frame.rescue();
      reopen(victim.frame);
      base::statistics.cache_rescues.add();
      base::statistics.cache_hazard_rescues.add();
      base::probes::rescue(index(victim.page), 1);
    } else if (ours && victim.changed_count == 0) {
      if (frame.place == base::kNoPlace) {
        map_.erase(victim.page);
      } else {
        map_.set_place(victim.page, frame.place);
      }
      shared_->table->clear(victim.page);
      frame.unchanged();
      free_frame(victim.frame, Removal::kEvicted, victim.untouched || victim.newly_protected);
      ++freed;
      if (victim.untouched) base::statistics.cache_untouched.add();
      base::statistics.cache_unchanged.add();
      ghosts_.left(victim.page);
      base::statistics.cache_evictions.add();
      base::probes::eviction(index(victim.page), 0);
    } else if (ours) {
      continue;
    }
    victim.version = 0;  // settled: settle_written skips it
    victim.changed_count = 0;
  }
  const WritePlan plan(batch, frames_, shared_->places, shared_->chaos_seed != 0);
  for (uint32_t i = 0; i < plan.count(); ++i) prepare_write(batch, plan[i], plan.count() - i - 1);
  if (freed > 0) changed_.notify_all();
  return freed;
}

// Step 5 for a changed victim: gives it a place if it has none yet, adds its Ios, and changes its state.
void Partition::prepare_write(Batch& batch, uint32_t v, uint32_t victims_left) {
  Batch::Victim& victim = batch.victims[v];
  Frame& frame = frames_[victim.frame];
  take_place(victim);
  if (frame.place == base::kNoPlace || (victim.must_move && victim.new_place == base::kNoPlace)) {
    note_failed_write(batch, ENOSPC);
    ++failed_writes_;
    frame.rescue();
    reopen(victim.frame);
    victim.changed_count = 0;
    victim.version = 0;
    return;
  }
  const PlaceId place = victim.new_place != base::kNoPlace ? victim.new_place : frame.place;
  batch.add_writes(v, uint64_t{index(place)} * shared_->page_bytes, victims_left, frames_);
  victim.version = frame.changed();
}

void Partition::note_failed_write(Batch& batch, int error) {
  write_error_ = batch.write_error = error;
  base::statistics.cache_write_failures.add();
  base::probes::write_failed(static_cast<uint64_t>(error));
}

// However long storage stays broken, the message is logged only once a minute. Not under the lock: the reader of the log may be slow, or itself wait
// for a page.
void Partition::tell_of_failed_write(Batch& batch) {
  if (batch.write_error == 0) return;
  const int error = batch.write_error;
  batch.write_error = 0;
  constexpr uint64_t kNsPerMessage = 60'000'000'000;
  const uint64_t now = sys::monotonic_ns();
  uint64_t next = shared_->next_write_message_ns.load(std::memory_order_relaxed);
  if (now < next || !shared_->next_write_message_ns.compare_exchange_strong(next, now + kNsPerMessage,
                                                                            std::memory_order_relaxed))
    return;
  const char* const device = shared_->device->name();
  base::log({.name = "write_failed",
             .level = base::LogLevel::kError,
             .fields = {{"device", device}, {"error", error}}},
            "cannot write to ", device, ": ", base::error_name(error),
            "; pages stay in memory and are tried again");
}

void Partition::note_writes(const Batch& batch) {
  for (uint32_t i = 0; i < batch.io_count; ++i) policies_.note_io(batch.ios[i].length_bytes);
}

// Step 7. Returns how many frames became free.
uint32_t Partition::settle_written(Batch& batch) {
  sys::LockGuard guard(mutex_);
  note_writes(batch);
  uint32_t freed = 0;
  for (uint32_t v = 0; v < batch.victim_count; ++v) {
    Batch::Victim& victim = batch.victims[v];
    if (victim.changed_count == 0) continue;
    Frame& frame = frames_[victim.frame];
    const storage::Io* failed = nullptr;
    for (uint32_t i = victim.first_io; i <= victim.last_io; ++i)
      if (!batch.ios[i].whole()) failed = &batch.ios[i];
    const bool whole = settle_place(batch, victim, failed);
    if (whole) base::statistics.cache_writebacks.add(victim.changed_count);
    // If only a move has failed, the page can still be written at its old place.
    const bool count_as_staying = victim.new_place != base::kNoPlace && !victim.must_move;
    if (!whole && !count_as_staying) ++failed_writes_;
    if (!frame.is(State::kWriting, victim.version)) {
      frame.done();  // rescued meanwhile; its fingerprints stay unknown
    } else if (!whole) {
      frame.write_failed();
      reopen(victim.frame);
    } else {
      map_.set_place(victim.page, frame.place);
      shared_->table->clear(victim.page);
      frame.written();
      free_frame(victim.frame, Removal::kEvicted);
      ++freed;
      ghosts_.left(victim.page);
      base::statistics.cache_evictions.add();
      base::probes::eviction(index(victim.page), victim.changed_count);
    }
  }
  changed_.notify_all();
  return freed;
}

// Chaos: a page that is about to be dropped as unchanged must be what a load would return. Reads under the lock,
// so that nobody gives the place away or touches the page meanwhile.
void Partition::check_unchanged(const Batch::Victim& victim, Workspace& workspace) {
  if (victim.held || victim.changed_count != 0) return;
  sys::LockGuard guard(mutex_);
  if (!frames_[victim.frame].is(State::kEvicting, victim.version)) return;
  const PlaceId place = frames_[victim.frame].place;
  if (place == base::kNoPlace) {
    spillway_plain_memset(workspace.page_copy, 0, shared_->page_bytes);
    const auto origin = origin_of(victim.page);
    const iovec segment = {workspace.page_copy, shared_->page_bytes};
    if (origin != Origins::Kind::kZeros &&
        (origin != Origins::Kind::kConstant || !shared_->origins->read(victim.page, &segment, 1)))
      return;
  } else {
    storage::PieceIo io(storage::Operation::kRead, uint64_t{index(place)} * shared_->page_bytes,
                        workspace.page_copy, shared_->page_bytes);
    workspace.queue().run(io);
    if (!io.whole()) return;
  }
  CHECK(spillway_plain_memcmp(workspace.page_copy, frames_.bytes(victim.frame), shared_->page_bytes) == 0);
}

}  // namespace cache
