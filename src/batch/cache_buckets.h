// CacheBuckets: staging in buckets that are meant to stay in the CPU's cache. Each has a lock, and the thread that fills one empties it.
// (cache-aware batch update, section 3.1)
//
//   cache-bucket   a cell with the staged changes of one region (staged_cells.h)
//   head           a cache-bucket's lock, and how many changes it has
//
//  1 a thread holds the cache-bucket's lock while it stages a change there, and while it makes the changes, one after the other, in the table
//  2 a full cache-bucket is emptied by the thread that has filled it; if the table had no room then, by the next thread that uses the cache-bucket
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
  // Makes as many cache-buckets of `bucket_bytes` as fit into `bytes`, but not more than there are homes. Errors: ENOMEM; EINVAL: not even one fits.
  // REQUIRES: a cache-bucket has room for a record.
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
    std::atomic<uint32_t> count{0};  // is changed under the lock
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
