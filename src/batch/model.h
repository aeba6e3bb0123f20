// Models of what an update costs: the thesis's model of cache misses, and a model of the time with each engine.
// (cache-aware batch update, sections 2.2.3, 3.1.1 and 3.2)
#pragma once
#include "batch/engine.h"
#include "batch/machine.h"
#include "batch/shape.h"

namespace batch {

// Misses of the cache that processors share, as the thesis models them, with its letters: requests are uniformly random, a bucket is in the cache as a
// whole or not at all, and everything that a request looks at counts as one miss.
struct ThesisModel {
  double m = 0;  // buckets of the table
  double a = 0;  // bytes of a bucket that a request looks at
  double n = 0;  // cache-buckets
  double c = 0;  // requests in a cache-bucket
  double r = 0;  // bytes of a request
  double s = 0;  // bytes of the cache

  // Equations 2.1 and 2.2: the probability that a bucket is in the cache, or is not, when it is updated.
  double hits() const;
  double misses() const { return 1 - hits(); }
  // Equation 3.1: to how many buckets the requests in a full cache-bucket go.
  double buckets_of_flush() const;
  // Equation 3.2: misses for each request that goes through cache-buckets.
  double batched_misses() const { return buckets_of_flush() / c; }
  // Equation 3.3, solved for n: as many cache-buckets with room for `requests` each as fill the cache.
  void fill_cache(double requests) {
    c = requests;
    n = s / (c * r);
  }
  // Equation 3.4: misses with cache-buckets, divided by those without. Infinite for a table that fits into the cache: it has no misses.
  double relative_misses() const { return batched_misses() / misses(); }
};

// What a table demands of the machine.
struct Load {
  Shape shape;
  uint64_t buckets = 0;
  uint32_t tag_bytes = 0;    // of a bucket
  uint64_t cache_bytes = 0;  // for cache-buckets
  uint32_t cache_bucket_bytes = kCacheBucketBytes;
  uint64_t staging_bytes = 0;  // for partitions, of each session
  uint64_t sessions = 1;
};

// How many nanoseconds the calling thread needs to update a random record: the measured time for the lines of memory, plus that of the engine's loop in a
// table that fits into the cache. Infinite for engines that are not chosen automatically.
double modelled_ns(Engine engine, const Load& load, const Machine& machine, const BaseCosts& base);

}  // namespace batch
