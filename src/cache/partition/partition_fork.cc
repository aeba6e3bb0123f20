// Partition: forks (frame_pool.h numbers the steps, cache.h says who calls what when).
#include "cache/partition/partition.h"
#include "sys/kernel.h"

namespace cache {
namespace {

// How much is shared at a time, under the lock.
constexpr uint64_t kShareBytes = 256 * 1024;
// Both the number of waits and the time must be exceeded: changes of other pages end a wait early, and while the process is stopped, time passes
// without it waiting.
constexpr uint64_t kPinWaitNs = 1'000'000;
constexpr uint32_t kPinWaitLimit = 10'000;
constexpr uint64_t kPinWaitsNs = kPinWaitLimit * kPinWaitNs;

}  // namespace

void Partition::become_child() {
  for (uint32_t i = 0; i < frames_.frame_count(); ++i) {
    const FrameId id{i};
    Frame& frame = frames_[id];
    frame.looked_at = 0;
    switch (frame.state()) {
      case State::kAbsent:
      case State::kFree: break;
      case State::kLoading: end_load_without_page(id); break;
      case State::kEvicting:
      case State::kWriting: {
        if (frame.gone) break;
        // A page that was being written is still in its frame, and its fingerprints are unknown.
        const bool writing = frame.state() == State::kWriting;
        frame.rescue();
        if (writing) frame.done();
        reopen(id);
        break;
      }
      case State::kResident:
        frame.forget_pins();
        if (frame.io()) frame.done();
        break;
    }
  }
  failed_writes_ = 0;
  frames_.become_child();
}

FrameId Partition::pin_resident(PageId page) {
  const FrameId frame = map_.find(page).frame;
  CHECK_NE(index(frame), index(base::kNoFrame));
  frames_[frame].pin();
  return frame;
}

base::Expected<char*> Partition::load_shared(PageId page, Workspace& workspace) {
  uint64_t until_ns = 0;
  for (uint32_t waits = 0;; ++waits) {
    auto bytes = load(page, workspace, workspace.stream, true);
    if (!bytes) return bytes;
    uint32_t key;
    bool refused = false;
    {
      sys::LockGuard guard(mutex_);
      const FrameId id = map_.find(page).frame;
      Frame& frame = frames_[id];
      if (frame.backing == Backing::kOwn) return bytes;
      frame.unpin();
      if (frame.storing_pins() == 0) {
        const bool shared = frames_.share(id, 1);
        if (shared) frame.pin();
        changed_.notify_all();
        if (shared) return bytes;
        refused = true;
      }
      key = changed_.prepare();
    }
    if (waits == 0) until_ns = sys::monotonic_ns() + kPinWaitsNs;
    wait_for_change(key, kPinWaitNs);
    if (waits < kPinWaitLimit || sys::monotonic_ns() < until_ns) continue;
    if (refused)
      return base::failure(EAGAIN,
                           "no memory file for code not compiled by spillcc after a fork: raise ulimit -n, "
                           "or give more memory");
    return base::failure(EAGAIN, "page ", index(page),
                         " is pinned by others and cannot be mapped after a fork");
  }
}

bool Partition::is_shared(PageId page) {
  sys::LockGuard guard(mutex_);
  return frames_[map_.find(page).frame].backing == Backing::kOwn;
}

bool Partition::share_some() {
  sys::LockGuard guard(mutex_);
  if (shared_->places.child_count() == 0) frames_.take_back();
  if (frames_.unshared_count() == 0) return false;
  const uint64_t most = kShareBytes > shared_->page_bytes ? kShareBytes / shared_->page_bytes : 1;
  const auto sharable = [&](uint32_t i) {
    if (i >= frames_.frame_count()) return false;
    Frame& frame = frames_[FrameId{i}];
    return frame.backing != Backing::kOwn && frame.state() != State::kLoading && frame.storing_pins() == 0;
  };
  const uint32_t first = index(frames_.next_unshared());
  uint32_t count = 0;
  while (count < most && sharable(first + count)) ++count;
  return count > 0 && frames_.share(FrameId{first}, count);
}

}  // namespace cache
