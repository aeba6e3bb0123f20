#include "batch/cache_buckets.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "batch/table.h"

namespace batch {

base::Expected<std::unique_ptr<Staging>> CacheBuckets::make(const Shape& shape, uint32_t bucket_bytes,
                                                            uint64_t bytes, uint64_t key_space,
                                                            uint64_t home_count) {
  const uint64_t each = StagedCells(shape, bucket_bytes).bytes_each() + sizeof(Head);
  const uint64_t count = std::min(bytes / each, home_count);
  if (count == 0)
    return base::failure(EINVAL, "cache-buckets take ", each, " bytes each, and there are only ", bytes);
  std::unique_ptr<CacheBuckets> made(new (std::nothrow)
                                         CacheBuckets(shape, bucket_bytes, Spread::of(key_space, count)));
  if (made == nullptr) return base::failure(ENOMEM, "no memory for cache-buckets");
  if (auto opened = made->cells_.open(count, count * sizeof(Head)); !opened)
    return std::unexpected(opened.error());
  made->heads_ = made->cells_.beside<Head>();  // zeros, that is unlocked and empty
  return made;
}

Staged CacheBuckets::put(Session& session, Job& job) {
  for (; job.done_count < job.count; ++job.done_count) {
    const std::byte* const key = job.keys + job.done_count * job.key_stride;
    const uint64_t region = regions_.home(load_key(key, shape_.key_bytes));
    Head& head = heads_[region];
    sys::LockGuard scope(head.lock);
    uint32_t count = head.count.load(std::memory_order_relaxed);
    if (count == cells_.capacity()) {
      if (!empty(session, region)) return Staged::kNoRoom;
      count = 0;
    }
    cells_.put(region, count, job);
    head.count.store(count + 1, std::memory_order_relaxed);
    // If there is no room, the next caller that uses the cache-bucket tries again.
    if (count + 1 == cells_.capacity()) static_cast<void>(empty(session, region));
  }
  return Staged::kDone;
}

// Makes the cache-bucket's changes. False: the table has no room for one. REQUIRES: the cache-bucket's lock.
bool CacheBuckets::empty(Session& session, uint64_t region) {
  const uint32_t count = heads_[region].count.load(std::memory_order_relaxed);
  Job job = cells_.job_of(region, count);
  session.apply_staged(job);
  cells_.drop_first(region, job.done_count, count);
  const uint64_t left = count - job.done_count;
  heads_[region].count.store(static_cast<uint32_t>(left), std::memory_order_relaxed);
  return left == 0;
}

Staged CacheBuckets::settle(Session& session, const Job& job) {
  for (size_t i = 0; i < job.count; ++i) {
    const Key key = load_key(job.keys + i * job.key_stride, shape_.key_bytes);
    const uint64_t region = regions_.home(key);
    sys::LockGuard scope(heads_[region].lock);
    if (cells_.has(region, heads_[region].count.load(std::memory_order_relaxed), key) &&
        !empty(session, region))
      return Staged::kNoRoom;
  }
  return Staged::kDone;
}

Staged CacheBuckets::flush(Session& session) {
  for (uint64_t region = 0; region < regions_.bucket_count(); ++region) {
    // Relaxed: the calls that staged what has to be flushed returned before this call began, in an order that the caller has established.
    if (heads_[region].count.load(std::memory_order_relaxed) == 0) continue;
    sys::LockGuard scope(heads_[region].lock);
    if (!empty(session, region)) return Staged::kNoRoom;
  }
  return Staged::kDone;
}

uint64_t CacheBuckets::staged_count() const {
  uint64_t count = 0;
  for (uint64_t region = 0; region < regions_.bucket_count(); ++region)
    count += heads_[region].count.load(std::memory_order_relaxed);
  return count;
}

}  // namespace batch
