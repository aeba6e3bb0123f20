// CacheBuckets: staging in buckets that stay in the CPU's cache, each with a lock, made empty by the thread that fills it.
// (cache-aware batch update, section 3.1)
//
//   cache-bucket   a cell of changes (staged_cells.h)
//   head           the lock, and how many there are
//
//  1 who stages a change has the bucket's lock; so has who makes those that are in it, one after the other
//  2 a bucket that is full is emptied by who filled it, or, if the table had no room, by who comes next
#pragma once
#include <atomic>
#include <memory>

#include "base/error.h"
#include "batch/spread.h"
#include "batch/staged_cells.h"
#include "batch/staging.h"
#include "sys/lock.h"

namespace batch {

class CacheBuckets final : public Staging {
 public:
  // As many of `bucket_bytes` as `bytes` hold, but not more than homes. Errors: ENOMEM, EINVAL: not even one. REQUIRES: one has room for a record.
  static base::Expected<std::unique_ptr<Staging>> make(const Shape& shape, uint32_t bucket_bytes,
                                                       uint64_t bytes, uint64_t key_space,
                                                       uint64_t home_count);
  Staged put(Session& session, Job& job) override;
  Staged settle(Session& session, const Job& job) override;
  Staged flush(Session& session) override;
  uint64_t staged_count() const override;
  uint64_t memory_bytes() const override { return cells_.memory_bytes(); }

 private:
  struct Head {
    sys::Mutex lock;
    std::atomic<uint32_t> count{0};  // changes under the lock
  };

  CacheBuckets(const Shape& shape, uint32_t bucket_bytes, const Spread& regions)
      : shape_(shape), regions_(regions), cells_(shape, bucket_bytes) {}
  bool empty(Session& session, uint64_t region);

  const Shape shape_;
  const Spread regions_;
  StagedCells cells_;  // one for each region
  Head* heads_ = nullptr;
};

}  // namespace batch
