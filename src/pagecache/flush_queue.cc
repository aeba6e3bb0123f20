#include "pagecache/flush_queue.h"

#include <bit>

#include "base/check.h"

namespace pagecache {

bool FlushQueue::open(Server& server, uint32_t executor_count) {
  CHECK(executor_count >= 1 && executor_count <= kMaxExecutors);
  sys::LockGuard scope(lock_);
  if (server_ != nullptr || working_count_ != 0) return false;
  server_ = &server;
  idle_executors_ = ~uint64_t{0} >> (kMaxExecutors - executor_count);
  is_served_.store(true, std::memory_order_relaxed);
  return true;
}

void FlushQueue::close() {
  {
    sys::LockGuard scope(lock_);
    server_ = nullptr;
    is_served_.store(false, std::memory_order_relaxed);
    while (count_ != 0) take_first();
  }
  for (;;) {
    const uint32_t key = has_ended_.prepare();
    {
      sys::LockGuard scope(lock_);
      if (working_count_ == 0) break;
    }
    has_ended_.wait(key);
  }
  has_ended_.cancel();
}

bool FlushQueue::is_served_by(const Server& server) {
  sys::LockGuard scope(lock_);
  return server_ == &server;
}

void FlushQueue::put(PageSet& set) {
  if (!is_open_for(set)) return;
  sys::LockGuard scope(lock_);
  if (server_ == nullptr || set.is_queued() || count_ == kMaxSets) return;
  set.set_queued(true);
  sets_[(first_ + count_++) % kMaxSets] = &set;
  if (idle_executors_ == 0 || count_ <= working_count_ * kBatchSets) return;
  const auto executor = static_cast<uint32_t>(std::countr_zero(idle_executors_));
  idle_executors_ &= idle_executors_ - 1;
  ++working_count_;
  server_->start_flush(executor);
}

size_t FlushQueue::take(uint32_t executor, std::span<PageSet*, kBatchSets> sets) {
  sys::LockGuard scope(lock_);
  size_t count = 0;
  while (count < sets.size() && count_ != 0) sets[count++] = &take_first();
  if (count != 0) return count;
  idle_executors_ |= uint64_t{1} << executor;
  --working_count_;
  has_ended_.notify_all();
  return 0;
}

PageSet& FlushQueue::take_first() {
  PageSet& set = *sets_[first_];
  first_ = (first_ + 1) % kMaxSets;
  --count_;
  set.set_queued(false);
  return set;
}

}  // namespace pagecache
