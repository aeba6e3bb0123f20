// Partition: operations on pages that are in memory, and the checks. The protocols of partition.h are in files of their own.
#include "cache/partition/partition.h"

namespace cache {
namespace {

// How often a waiting thread polls while loads are under way that were begun (load_queue.h).
constexpr uint64_t kPollNs = 20'000;
// After how long a thread that waits to guard a frame looks again: it is not notified of everything that it waits for.
constexpr uint64_t kLookWaitNs = 100'000;

// One evicted page is remembered for each so many frames, but at least kFewestGhosts pages.
constexpr uint32_t kFramesPerGhost = 8;
constexpr uint32_t kFewestGhosts = 128;

}  // namespace

base::Expected<void> Partition::open(Shared& shared, uint32_t frame_count, uint32_t frame_limit) {
  shared_ = &shared;
  CHECK_LE(shared.page_bytes / base::kOsPageBytes, Batch::kMaxPieces);
  if (auto opened = frames_.open(frame_count, shared.page_bytes, shared.budget, shared.watch,
                                 shared.large_pages, frame_limit);
      !opened)
    return opened;
  if (auto opened = map_.open(shared.directory, uint64_t{1} << 28, shared.budget); !opened) return opened;
  const uint32_t ghost_count = frame_count / kFramesPerGhost;
  if (auto opened = ghosts_.open(ghost_count > kFewestGhosts ? ghost_count : kFewestGhosts, shared.budget);
      !opened)
    return opened;
  const Policies::Holder holder = {
      [](void* partition, FrameId frame) { return static_cast<Partition*>(partition)->frames_[frame].page; },
      this};
  PolicyChoice* const choice = shared.policy_choice.is_on() ? &shared.policy_choice : nullptr;
  if (auto opened =
          policies_.open(shared.policy, choice, holder, frame_count, frames_.frame_limit(), shared.budget);
      !opened)
    return opened;
  set_sizes(frame_count);
  random_ = shared.chaos_seed;
  return {};
}

void Partition::close() {
  policies_.close();
  ghosts_.close();
  map_.close();
  frames_.close();
}

uint64_t Partition::next_random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

// Waits until something may have changed since `key` was taken (changed_.prepare). Whoever waits also finishes loads that were begun, since the threads
// that began them may be waiting, too.
void Partition::wait_for_change(uint32_t key, uint64_t timeout_ns) {
  if (shared_->loads.has_begun()) {
    if (shared_->loads.poll() > 0) {
      changed_.cancel();
      return;
    }
    if (timeout_ns == 0 || timeout_ns > kPollNs) timeout_ns = kPollNs;
  }
  changed_.wait(key, timeout_ns);
}

// To be called when the page was touched: if it was loaded ahead, it now counts as used.
void Partition::note_used(Frame& frame) {
  if (frame.ahead == Ahead::kNo) return;
  frame.ahead = Ahead::kNo;
  base::statistics.cache_ahead_used.add();
}

// Is the frame spared as a victim because its page was loaded ahead and not touched yet? It is spared once, so that the page is not evicted before it
// is used, but does not stay for ever either.
bool Partition::spares(Frame& frame) {
  if (frame.ahead == Ahead::kNo) return false;
  if (shared_->table->is_hot(frame.page)) note_used(frame);
  if (frame.ahead != Ahead::kNew) return false;
  frame.ahead = Ahead::kSpared;
  return true;
}

void Partition::reopen(FrameId id) {
  note_used(frames_[id]);
  policies_.stays(id);
  if (frames_[id].verified) frames_[id].verified = false;  // as in Policy::stays, stores only what changes
  shared_->table->reopen(frames_[id].page, frames_.bytes(id));
}

Frame& Partition::frame_of(PageId page) {
  const FrameId id = map_.find(page).frame;
  CHECK_NE(index(id), index(base::kNoFrame));
  return frames_[id];
}

FrameId Partition::pinned_frame(PageId page) {
  const FrameId id = map_.find(page).frame;
  CHECK_NE(index(id), index(base::kNoFrame));
  CHECK_GT(frames_[id].pins(), 0u);
  return id;
}

// Where the preceding page is. Nothing is known at the beginning of a region, since that page may be another partition's.
PageMap::Where Partition::find_before(PageId page) {
  if ((index(page) & ((uint64_t{1} << shared_->region_shift) - 1)) == 0) return {};
  return map_.find(PageId{index(page) - 1});
}

void Partition::unpin(PageId page) {
  sys::LockGuard guard(mutex_);
  unpin_locked(frame_of(page));
}

void Partition::unpin_locked(Frame& frame) {
  frame.unpin();
  if (frame.storing_pins() == 0) changed_.notify_all();
}

void Partition::stay(PageId page) {
  sys::LockGuard guard(mutex_);
  Frame& frame = frame_of(page);
  CHECK_GT(frame.storing_pins(), 0u);
  if (frame.stays)
    unpin_locked(frame);
  else
    frame.stays = true;
}

void Partition::end_stay(PageId page) {
  sys::LockGuard guard(mutex_);
  Frame& frame = frame_of(page);
  CHECK(frame.stays);
  frame.stays = false;
  unpin_locked(frame);
}

void Partition::stop_watching(PageId page) {
  sys::LockGuard guard(mutex_);
  frames_[pinned_frame(page)].watched = false;
}

Partition::Seen Partition::close_again(PageId first, uint64_t count) {
  Seen seen;
  const PageId end = first + count;
  sys::LockGuard guard(mutex_);
  for (PageId page = first; index(page) < index(end);) {
    if (skip_unknown_group(page)) continue;
    const FrameId id = map_.find(page).frame;
    page = page + 1;
    if (id == base::kNoFrame) continue;
    Frame& frame = frames_[id];
    seen.resident = true;
    seen.guarded |= frame.guarded;
    frames_.end_guard(id);
    // In other states the entries are locked or unknown, and whoever opens them asks what is closed.
    if (frame.state() != State::kResident) continue;
    frame.verified = false;  // closed entries do not show touches
    shared_->table->close_again(frame.page, frames_.bytes(id));
  }
  return seen;
}

// Also guards a page that is being evicted, which a thread that holds it will keep in memory.
void Partition::guard(PageId page, uint64_t i, sys::Access access) {
  for (;;) {
    uint32_t key;
    {
      sys::LockGuard guard(mutex_);
      const FrameId id = map_.find(page).frame;
      if (id == base::kNoFrame || frames_[id].state() == State::kLoading) return;
      if (!shared_->closed->has_any(page) || !shared_->closed->has(page, i)) return;
      if (frames_[id].looked_at == 0 && !frames_[id].io()) {
        frames_.guard(id, i, access);
        return;
      }
      key = changed_.prepare();
    }
    wait_for_change(key, kLookWaitNs);
  }
}

std::optional<PageId> Partition::guarded_page(FrameId id) {
  sys::LockGuard guard(mutex_);
  if (!frames_[id].guarded) return std::nullopt;
  return frames_[id].page;
}

void Partition::zero(PageId page, uint64_t offset, uint64_t bytes) {
  sys::LockGuard guard(mutex_);
  const FrameId id = pinned_frame(page);
  frames_[id].watched = false;
  spillway_plain_memset(frames_.unwatched_bytes(id) + offset, 0, bytes);
}

void Partition::copy_in(PageId page, uint64_t offset, const char* from, uint64_t bytes) {
  sys::LockGuard guard(mutex_);
  const FrameId id = pinned_frame(page);
  frames_[id].watched = false;
  spillway_plain_memcpy(frames_.unwatched_bytes(id) + offset, from, bytes);
}

void Partition::copy_out(PageId page, uint64_t offset, char* to, uint64_t bytes) {
  sys::LockGuard guard(mutex_);
  spillway_plain_memcpy(to, frames_.unwatched_bytes(pinned_frame(page)) + offset, bytes);
}

uint32_t Partition::resident_count() {
  sys::LockGuard guard(mutex_);
  uint32_t count = 0;
  for (uint32_t i = 0; i < frames_.frame_count(); ++i)
    count += frames_[FrameId{i}].state() == State::kResident;
  return count;
}

void Partition::verify() {
  sys::LockGuard guard(mutex_);
  uint32_t free_count = 0;
  for (uint32_t i = 0; i < frames_.frame_count(); ++i) {
    const FrameId id{i};
    Frame& frame = frames_[id];
    const State state = frame.state();
    free_count += state == State::kFree;
    CHECK(!frame.stays || frame.pins() > 0);
    CHECK_EQ(policies_.holds(id),
             state == State::kResident || state == State::kEvicting || state == State::kWriting);
    if (state == State::kFree || state == State::kAbsent) {
      CHECK_EQ(frame.pins(), 0u);
      CHECK(!frame.io());
      continue;
    }
    CHECK(map_.find(frame.page).frame == id);
    if (frame.pins() > 0) CHECK(state == State::kResident);
    if (is_in_region(frame.page)) CHECK(!frame.verified);
    CHECK_EQ(frame.io(), state == State::kWriting || (state == State::kResident && frame.io()));
    const auto delta = reinterpret_cast<int64_t>(frames_.bytes(id));
    for (uint64_t piece = 0; piece < frames_.pieces(); ++piece) {
      const int64_t entry = shared_->table->entry(frame.page, piece);
      switch (state) {
        case State::kResident:
          // It may be unknown, since the table may forget, or direct, since an entry may be closed.
          if (entry != Table::kUnknown && entry != Table::kDirect)
            CHECK_EQ((entry < 0 ? -entry : entry) - 1 + shared_->table->address(frame.page), delta);
          break;
        case State::kEvicting:
        case State::kWriting: CHECK(entry == Table::kLocked || entry == Table::kUnknown); break;
        default: CHECK_EQ(entry, Table::kUnknown);
      }
    }
  }
  CHECK_EQ(free_count, frames_.free_count());
}

}  // namespace cache
