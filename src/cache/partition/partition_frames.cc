// Partition: how many frames it has, and where a load's frames come from: free ones, those of pages evicted for it, or memory of other partitions.
#include "cache/partition/partition.h"

namespace cache {
namespace {

// For freed frames in chaos mode: a stray write to one is detected when it is claimed.
constexpr unsigned char kPoison = 0xdb;

// One in so many frames is kept free ahead of need, but at most a batch; none if there are fewer than kFewFrames.
constexpr uint32_t kFramesPerFree = 64;
constexpr uint32_t kFewFrames = 1024;

// A load waits at most 10 s in all for frames that others pin or hold, but for others' reads and writes as long as they take.
constexpr uint64_t kFrameWaitNs = 1'000'000;
constexpr uint32_t kFrameWaitLimit = 10'000;

// A load gives up on storage when one write for each frame, and so many more, have failed while no page could leave.
constexpr uint32_t kFailedWriteReserve = 16;

}  // namespace

void Partition::set_sizes(uint32_t frame_count) {
  const uint32_t batch_size = std::clamp(frame_count / 8, 1u, Batch::kMaxVictims);
  const uint32_t low = frame_count < kFewFrames ? 0 : std::min(frame_count / kFramesPerFree, batch_size);
  allowed_count_.store(frame_count, std::memory_order_relaxed);
  batch_size_.store(batch_size, std::memory_order_relaxed);
  low_watermark_.store(low, std::memory_order_relaxed);
  high_watermark_.store(2 * low, std::memory_order_relaxed);
}

bool Partition::resize(uint32_t frame_count) {
  sys::LockGuard guard(mutex_);
  if (frame_count > frames_.frame_count()) {
    if (!frames_.grow(frame_count)) return false;
    policies_.grow(frame_count);
  }
  set_sizes(frame_count);
  return true;
}

bool Partition::give_memory_back() {
  constexpr uint32_t kAtATime = 32;  // some 10 us each, under the lock
  return over_budget_by(0) && release_free(kAtATime) > 0;
}

// Gives back the memory of up to `count` free frames; returns how many had some.
uint32_t Partition::release_free(uint32_t count) {
  sys::LockGuard guard(mutex_);
  uint32_t released = 0;
  for (; released < count && may_shrink(); ++released) {
    const FrameId frame = frames_.find_free_touched();
    if (frame == base::kNoFrame || !frames_.release_memory(frame)) break;
  }
  return released;
}

FrameId Partition::neighbour_frame(PageId page) {
  const FrameId before = find_before(page).frame;
  return before == base::kNoFrame ? before : before + 1;
}

// When tables and metadata grow into the frames' share of the budget, frames go back to the OS, from the partition that has most of them, until each
// partition is down to its least(), without which nothing would run. Returns the partition with most, or null.
Partition* Partition::largest_that_may_shrink() {
  Partition* largest = nullptr;
  for (uint32_t i = 0; i < shared_->partition_count; ++i) {
    Partition& partition = shared_->partitions[i];
    if (!partition.may_shrink()) continue;
    if (largest == nullptr || partition.frames_.touched_count() > largest->frames_.touched_count())
      largest = &partition;
  }
  return largest;
}

// `desperate`: eviction has failed.
bool Partition::may_take_fresh(bool desperate) {
  if (!shared_->budget.exceeded_by(shared_->page_bytes)) return true;
  return frames_.touched_count() < least() && (desperate || largest_that_may_shrink() == nullptr);
}

// Claims a frame for a page that has none, and maps the page to it. `fresh`: the frame's memory is zeros. The budget is charged from here on, before
// anything is stored there.
FrameId Partition::take_frame(PageId page, PlaceId place, bool desperate, bool& fresh) {
  if (shared_->budget.exceeded_by(0)) {
    if (may_shrink()) {
      FrameId spare = frames_.find_free_touched();
      if (spare != base::kNoFrame) frames_.release_memory(spare);
    } else if (!desperate && largest_that_may_shrink() != nullptr) {
      return base::kNoFrame;  // evict_for_load takes memory from that partition
    }
  }
  const FrameId taken = frames_.take(page, neighbour_frame(page), may_take_fresh(desperate));
  if (taken == base::kNoFrame) return taken;
  Frame& frame = frames_[taken];
  fresh = frame.fresh;
  frames_.touch(taken);
  frame.claim();
  if (frame.poisoned) {
    constexpr uint64_t kWord = 0x0101010101010101 * uint64_t{kPoison};
    const auto* words = reinterpret_cast<const uint64_t*>(frames_.bytes(taken));
    uint64_t unlike_poison = 0;
    for (size_t i = 0; i < shared_->page_bytes / sizeof *words; ++i) unlike_poison |= words[i] ^ kWord;
    CHECK_EQ(unlike_poison, 0u);
    frame.poisoned = false;
  }
  frame.page = page;
  frame.verified = false;
  frame.ahead = Ahead::kNo;
  frame.place = place;
  map_.set_frame(page, taken);
  return taken;
}

// The frame has no page any more and goes back to the pool, poisoned in chaos mode. `is_protected`: its memory is protected, and has not been stored to
// since.
void Partition::free_frame(FrameId id, Removal removal, bool is_protected) {
  policies_.left(id, frames_[id].page, removal);
  if (shared_->chaos_seed != 0) {
    spillway_plain_memset(frames_.unwatched_bytes(id), kPoison, shared_->page_bytes);
    frames_[id].poisoned = true;
  }
  if (frames_[id].ahead != Ahead::kNo) base::statistics.cache_ahead_unused.add();
  frames_[id].watched = is_protected && !frames_[id].guarded;
  frames_.end_guard(id);
  frames_.give_back(id);
  if (over_budget_by(0)) frames_.release_memory(id);
  failed_writes_ = 0;
}

// Evicts a batch, and gives its memory back to the OS, for a load in another partition. Returns whether the budget has room for a page now.
bool Partition::leave_memory(Workspace& workspace) {
  evict(batch_size_, workspace);
  release_free(batch_size_);
  return !shared_->budget.exceeded_by(shared_->page_bytes);
}

// Evicts from this partition; or, if frames are free here but the budget is used up, from the partition that uses most of it. If no page of this one
// can leave, as when all are pinned, from any other.
bool Partition::evict_for_load(Workspace& workspace) {
  const bool needs_memory = frames_.free_count() > 0;
  if (needs_memory) {
    // Taking memory from another partition costs punching a hole there and faulting in an OS page here, 10 us and more. So only a partition that is
    // clearly smaller, or below its least(), does it.
    Partition* largest = largest_that_may_shrink();
    const uint32_t own = frames_.touched_count();
    const uint32_t margin = may_shrink() ? own / 8 + 2 * batch_size_ : 0;
    if (largest != nullptr && largest != this && largest->frames_.touched_count() > own + margin &&
        largest->leave_memory(workspace))
      return true;
  }
  if (evict(batch_size_, workspace) > 0) return true;
  for (uint32_t i = 0; needs_memory && i < shared_->partition_count; ++i) {
    Partition& other = shared_->partitions[i];
    if (&other != this && other.may_shrink() && other.leave_memory(workspace)) return true;
  }
  return false;
}

// REQUIRES: the lock. Cost: a look at every frame.
bool Partition::has_io_under_way() {
  for (uint32_t i = 0; i < frames_.frame_count(); ++i) {
    const Frame& frame = frames_[FrameId{i}];
    if (frame.state() == State::kLoading || frame.io()) return true;
  }
  return false;
}

// To be called when nothing could be evicted: waits for other threads, or says why that is hopeless.
base::Expected<void> Partition::make_room(Workspace& workspace, InVain& in_vain) {
  uint64_t& attempts = in_vain.attempts;
  // How many failed batches it takes until each frame has been in one. Only then does it make sense to sleep.
  const uint64_t batches = 2 * (frames_.frame_count() / batch_size_ + 1);
  const bool tried_some = workspace.batch.victim_count > 0;
  uint32_t key;
  {
    sys::LockGuard guard(mutex_);
    // Writes may have been failing for long while other pages left. Only those that fail from now on count.
    if (attempts == 0 || failed_writes_ < in_vain.failed_writes) in_vain.failed_writes = failed_writes_;
    if (failed_writes_ - in_vain.failed_writes >= frames_.frame_count() + kFailedWriteReserve) {
      if (write_error_ == ENOSPC) {
        return base::failure(ENOSPC, "storage is full: ", shared_->device->name(),
                             "; no page can leave memory, give more room with --storage");
      }
      return base::failure(write_error_, "cannot write to ", shared_->device->name(), ": ",
                           base::error_name(write_error_), "; no page can leave memory");
    }
    ++attempts;
    if (attempts / batches >= kFrameWaitLimit) {
      // A thread may pin or hold a page for ever, but reads and writes end at some time.
      if (!has_io_under_way())
        return base::failure(
            ENOMEM, "all ", frame_count(),
            " frames are pinned or held; give more memory with --memory or use smaller pages");
      attempts = batches;
    }
    if (tried_some && attempts % batches != 0) return {};
    if (frames_.free_count() > 0 && may_take_fresh(true)) return {};
    attempts = base::round_up(attempts, batches);
    key = changed_.prepare();
  }
  // Finishing loads that were begun makes their frames available.
  if (shared_->loads.poll() > 0)
    changed_.cancel();
  else
    changed_.wait(key, kFrameWaitNs);
  return {};
}

}  // namespace cache
