#include "batch/cache_buckets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "batch/huge_memory.h"
#include "batch/table.h"

namespace batch {

base::Expected<std::unique_ptr<Staging>> CacheBuckets::make(const Shape& shape, uint64_t bytes,
                                                            uint64_t key_space, uint64_t home_count) {
  const uint64_t each = kBucketBytes + sizeof(Head) + kBucketBytes / shape.record_bytes();
  const uint64_t count = std::min(bytes / each, home_count);
  if (count == 0)
    return base::failure(EINVAL, "cache-buckets take ", each, " bytes each, and there are but ", bytes);
  std::unique_ptr<CacheBuckets> made(new (std::nothrow) CacheBuckets(
      shape, key_space == 0 ? Spread::by_hash(count) : Spread::by_number(key_space, count)));
  if (made == nullptr) return base::failure(ENOMEM, "no memory for cache-buckets");
  const uint64_t heads_at = count * kBucketBytes;
  const uint64_t codes_at = base::round_up(heads_at + count * sizeof(Head), base::kLineBytes);
  if (auto opened = made->memory_.open(codes_at + count * made->capacity(), "the cache-buckets of a table");
      !opened)
    return std::unexpected(opened.error());
  made->records_ = made->memory_.at<std::byte>(0);
  made->heads_ = made->memory_.at<Head>(heads_at);  // of zeros: free, and empty
  made->codes_ = made->memory_.at<uint8_t>(codes_at);
  return made;
}

Staged CacheBuckets::put(Session& session, Job& job) {
  const uint32_t record_bytes = shape_.record_bytes();
  for (; job.done_count < job.count; ++job.done_count) {
    const std::byte* const key = job.keys + job.done_count * job.key_stride;
    const uint64_t region = regions_.home(load_key(key, shape_.key_bytes));
    Head& head = heads_[region];
    sys::LockGuard scope(head.lock);
    uint32_t count = head.count.load(std::memory_order_relaxed);
    if (count == capacity()) {
      if (!empty(session, region)) return Staged::kNoRoom;
      count = 0;
    }
    std::byte* const record = records(region) + count * record_bytes;
    memcpy(record, key, shape_.key_bytes);
    if (job.given != nullptr)
      memcpy(record + shape_.key_bytes, job.given + job.done_count * job.given_stride, shape_.value_bytes);
    codes(region)[count] = job.code.byte();
    head.count.store(count + 1, std::memory_order_relaxed);
    // Who comes next tries again, if there is no room.
    if (count + 1 == capacity()) static_cast<void>(empty(session, region));
  }
  return Staged::kDone;
}

// REQUIRES: its lock.
bool CacheBuckets::empty(Session& session, uint64_t region) {
  const uint32_t count = heads_[region].count.load(std::memory_order_relaxed),
                 record_bytes = shape_.record_bytes();
  std::byte* const first = records(region);
  Job job{.count = count,
          .keys = first,
          .given = first + shape_.key_bytes,
          .key_stride = record_bytes,
          .given_stride = record_bytes,
          .codes = codes(region)};
  session.apply_staged(job);
  const uint64_t left = count - job.done_count;
  memmove(first, first + job.done_count * record_bytes, left * record_bytes);
  memmove(codes(region), codes(region) + job.done_count, left);
  heads_[region].count.store(static_cast<uint32_t>(left), std::memory_order_relaxed);
  return left == 0;
}

// REQUIRES: its lock.
bool CacheBuckets::has(uint64_t region, const Key& key) const {
  const uint32_t count = heads_[region].count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i)
    if (load_key(records(region) + i * shape_.record_bytes(), shape_.key_bytes) == key) return true;
  return false;
}

Staged CacheBuckets::settle(Session& session, const Job& job) {
  for (size_t i = 0; i < job.count; ++i) {
    const Key key = load_key(job.keys + i * job.key_stride, shape_.key_bytes);
    const uint64_t region = regions_.home(key);
    sys::LockGuard scope(heads_[region].lock);
    if (has(region, key) && !empty(session, region)) return Staged::kNoRoom;
  }
  return Staged::kDone;
}

Staged CacheBuckets::flush(Session& session) {
  for (uint64_t region = 0; region < regions_.bucket_count(); ++region) {
    // Relaxed: who staged what is to be flushed has returned, and is known to have.
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
