// Cache: forks (frame_pool.h numbers the steps).
#include "cache/cache.h"
#include "sys/kernel.h"
#include "sys/nap.h"

namespace cache {
namespace {

// How long a fork waits for pins.
constexpr uint64_t kPinWaitNs = 100'000;
constexpr uint32_t kPinWaits = 10'000;

}  // namespace

bool Cache::before_fork(const PinsOverFork& pins) {
  // Not every process has a background thread that does this.
  shared_.places.collect_children();
  for (uint32_t waits = 0;; ++waits) {
    for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].freeze();
    FramePool::Lent lent = FramePool::Lent::kYes;
    for (uint32_t i = 0; i < partition_count_ && lent == FramePool::Lent::kYes; ++i)
      lent = partitions_[i].frames().lend(pins, waits < kPinWaits);
    lend_failed_ = lent == FramePool::Lent::kFailed;
    if (lent != FramePool::Lent::kLater) break;
    // The kernel may be storing to one of the frames, or a load that began before the last fork is still under way there.
    set_inherited(false);
    for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].thaw();
    // This thread may have begun that load itself, and would not finish it otherwise.
    shared_.loads.poll();
    sys::nap(kPinWaitNs);
  }
  const bool watched = shared_.places.before_fork();
  base::statistics.cache_snapshots.add();
  set_inherited(true);
  return watched;
}

void Cache::after_fork_in_parent() {
  set_inherited(false);
  shared_.places.after_fork_in_parent();
  for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].thaw();
}

bool Cache::after_fork_in_child() {
  if (lend_failed_) return false;
  shared_.loads.forget();
  // Its memory stays: inherited workspaces give their clients back when they are destroyed.
  if (Delegation* delegation = delegation_.exchange(nullptr, std::memory_order_relaxed);
      delegation != nullptr)
    delegation->forget();
  // The watch that was inherited is on the parent's memory.
  if (shared_.watch.is_open()) {
    shared_.watch.close();
    static_cast<void>(shared_.watch.open().has_value());
  }
  for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].become_child();
  set_inherited(false);
  shared_.places.after_fork_in_child();
  parent_.store(process_, std::memory_order_relaxed);
  process_ = sys::syscall(SYS_getpid);
  for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].thaw();
  return true;
}

long Cache::own_kept(PageId page, void* address) {
  Partition& partition = of(page);
  partition.freeze();
  const FrameId frame = partition.pin_resident(page);
  long result = 0;
  // A page that two ranges keep has its own frame already.
  if (partition.frames()[frame].backing != Backing::kOwn)
    result = partition.frames().own_kept(frame, address);
  partition.thaw();
  return result;
}

void Cache::pin_again(PageId page) {
  Partition& partition = of(page);
  partition.freeze();
  partition.pin_resident(page);
  partition.thaw();
}

bool Cache::share_step(Workspace& workspace) {
  constexpr uint32_t kStepsPerLook = 16;
  if (++steps_ % kStepsPerLook == 0) shared_.places.collect_children();
  if (const Places::Run run = shared_.places.take_ended_extent(); run.count > 0) {
    if (shared_.device->discards()) discard(run, workspace);
    shared_.places.give_back_extent(run);
  }
  // While a child lives, copying would only take more memory: as it is, only what is stored to gets copied.
  if (shared_.places.child_count() != 0) return false;
  const long parent = parent_.load(std::memory_order_relaxed);
  if (parent != 0 && sys::syscall(SYS_getppid) == parent) return false;
  parent_.store(0, std::memory_order_relaxed);
  bool more = false;
  for (uint32_t i = 0; i < partition_count_; ++i) more |= partitions_[i].share_some();
  return more;
}

}  // namespace cache
