// Models of what an update costs: the thesis's, of the cache's misses, and one of time, for each engine.
// (cache-aware batch update, sections 2.2.3, 3.1.1 and 3.2)
#pragma once
#include "batch/engine.h"
#include "batch/machine.h"
#include "batch/shape.h"

namespace batch {

// Misses of the cache that processors share, by the thesis: requests are uniformly random, a bucket is in the cache or it is not, and all that a
// request asks of is counted as one miss. Its letters.
struct ThesisModel {
  double m = 0;  // buckets of the table
  double a = 0;  // bytes of one that a request looks at
  double n = 0;  // cache-buckets
  double c = 0;  // requests in one
  double r = 0;  // bytes of a request
  double s = 0;  // bytes of the cache

  // Equations 2.1 and 2.2: that a bucket is in the cache, or not, when it is updated. At most 1, at least 0.
  double hits() const;
  double misses() const { return 1 - hits(); }
  // Equation 3.1: of how many buckets the requests in a full cache-bucket are.
  double buckets_of_flush() const;
  // Equation 3.2: misses of a request that went through cache-buckets.
  double batched_misses() const { return buckets_of_flush() / c; }
  // Equation 3.3, the other way around: as many cache-buckets of `requests` as fill the cache.
  void fill_cache(double requests) {
    c = requests;
    n = s / (c * r);
  }
  // Equation 3.4: misses with cache-buckets over those without. Of a table that the cache holds there are none to save: infinite.
  double relative_misses() const { return batched_misses() / misses(); }
};

// What a table asks of the machine.
struct Load {
  Shape shape;
  uint64_t buckets = 0;
  uint32_t tag_bytes = 0;    // of a bucket
  uint64_t cache_bytes = 0;  // for cache-buckets
  uint32_t cache_bucket_bytes = kCacheBucketBytes;
  uint64_t staging_bytes = 0;  // for partitions, of each session
  uint64_t sessions = 1;
};

// Nanoseconds of an update of a random record, of the thread that asks for it: what the machine was measured to take for lines of memory, and the engine's
// loop for a table that the cache holds. Of engines that the automatic choice has.
double modelled_ns(Engine engine, const Load& load, const Machine& machine, const BaseCosts& base);

}  // namespace batch
