// What an update costs that has nothing to do with the table's buckets: a lock for each of them without a look into it, and cache-buckets whose changes nobody
// makes. (cache-aware batch update, section 4.7)
#pragma once
#include <atomic>
#include <cerrno>

#include "batch/buckets.h"
#include "batch/staged_cells.h"
#include "sys/lock.h"

namespace load {

// The baseline's: the lock of each key's bucket is taken and given back. Any thread.
class OnlyLocks {
 public:
  base::Expected<void> open(const batch::Shape& shape, const batch::Spread& homes) {
    return buckets_.open(shape, homes);
  }
  void run(const batch::Job& job) const {
    for (size_t i = 0; i < job.count; ++i) {
      const batch::Key key = batch::load_key(job.keys + i * job.key_stride, buckets_.shape().key_bytes);
      const uint64_t home = buckets_.spread().home(key);
      buckets_.unlock(home, buckets_.lock(home));
    }
  }

 private:
  batch::Buckets buckets_;
};

// The cache-buckets': each change is put where batch::CacheBuckets puts it, and one that is full is empty again. Any thread.
class OnlyStages {
 public:
  OnlyStages(const batch::Shape& shape, uint32_t bucket_bytes)
      : key_bytes_(shape.key_bytes), cells_(shape, bucket_bytes) {}

  // As many as `bytes` hold. Errors: ENOMEM, EINVAL: not even one.
  base::Expected<void> open(uint64_t bytes, uint64_t key_space) {
    const uint64_t count = bytes / (cells_.bytes_each() + sizeof(Head));
    if (count == 0) return base::failure(EINVAL, "a cache-bucket takes more than ", bytes, " bytes");
    regions_ = batch::Spread::of(key_space, count);
    auto opened = cells_.open(count, count * sizeof(Head));
    heads_ = cells_.beside<Head>();
    return opened;
  }
  void run(batch::Job& job) const {
    for (; job.done_count < job.count; ++job.done_count) {
      const batch::Key key = batch::load_key(job.keys + job.done_count * job.key_stride, key_bytes_);
      const uint64_t region = regions_.home(key);
      Head& head = heads_[region];
      sys::LockGuard scope(head.lock);
      const uint32_t count = head.count.load(std::memory_order_relaxed);
      cells_.put(region, count, job);
      head.count.store(count + 1 == cells_.capacity() ? 0 : count + 1, std::memory_order_relaxed);
    }
  }

 private:
  struct Head {
    sys::Mutex lock;
    std::atomic<uint32_t> count{0};
  };

  const uint32_t key_bytes_;
  batch::Spread regions_;
  batch::StagedCells cells_;
  Head* heads_ = nullptr;
};

}  // namespace load
