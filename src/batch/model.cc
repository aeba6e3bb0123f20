#include "batch/model.h"

#include <algorithm>
#include <cmath>

namespace batch {
namespace {

// Which share of so many bytes that are used at random is not in the cache: equation 2.2.
double miss_share(double bytes, double cache_bytes) {
  return bytes <= cache_bytes ? 0 : 1 - cache_bytes / bytes;
}

// kSeen: updates do not depend on each other, so that a part of each miss that is not fetched ahead overlaps with the next ones. kTogether: when all lines
// of a bucket are fetched together, some arrive with their neighbours. Both as measured for buckets of 128 and 512 bytes.
constexpr double kSeen = 0.55, kTogether = 0.75;

double divide(uint64_t a, uint64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

}  // namespace

double ThesisModel::hits() const { return std::min(1.0, s / (m * a)); }

double ThesisModel::buckets_of_flush() const { return m / n * (1 - std::pow((m - n) / m, c)); }

double modelled_ns(Engine engine, const Load& load, const Machine& machine, const BaseCosts& base) {
  const auto buckets = static_cast<double>(load.buckets);
  const double lines = load.shape.lines(), record_bytes = load.shape.record_bytes();
  const double records_bytes = buckets * load.shape.bucket_bytes, heads_bytes = buckets * sizeof(uint16_t);
  const double head_misses = miss_share(heads_bytes, machine.cache_bytes);
  // A search from line to line finds its record half way on average; the lines follow each other, so that the CPU fetches them ahead.
  const double searched = (lines + 1) / 2;
  const double misses = miss_share(records_bytes + heads_bytes, machine.cache_bytes);
  const double one_by_one =
      kSeen * (machine.latency_ns + (searched - 1) * std::min(machine.line_ns, machine.latency_ns / 4));
  switch (engine) {
    case Engine::kDirect:
      return base.direct_ns + misses * one_by_one + head_misses * kSeen * machine.latency_ns;
    case Engine::kPrefetch:
      return base.prefetch_ns + misses * kTogether * lines * machine.line_ns + head_misses * machine.line_ns;
    case Engine::kTagged: {
      const double tags_bytes = buckets * load.tag_bytes;
      return base.tagged_ns + misses * machine.line_ns +
             miss_share(records_bytes + tags_bytes + heads_bytes, machine.cache_bytes) * machine.line_ns +
             head_misses * machine.line_ns;
    }
    case Engine::kCacheBuckets: {
      // Cache-buckets leave less of the cache for the table.
      const auto bytes = static_cast<double>(load.cache_bytes);
      const double bucket_bytes = load.cache_bucket_bytes;
      ThesisModel thesis{.m = buckets,
                         .a = static_cast<double>(load.shape.bucket_bytes),
                         .r = record_bytes,
                         .s = machine.cache_bytes};
      thesis.c = std::floor(bucket_bytes / record_bytes);
      thesis.n = std::min(bytes / bucket_bytes, buckets);
      const double staged_misses = miss_share(bytes, machine.cache_bytes);
      return 2 * base.direct_ns + staged_misses * kSeen * machine.latency_ns +
             std::min(misses, thesis.batched_misses()) * one_by_one;
    }
    case Engine::kPartitioned: {
      const double changes =
          divide(load.staging_bytes, load.shape.record_bytes()) * static_cast<double>(load.sessions);
      const double streamed_lines = 2 * record_bytes / base::kLineBytes;
      // A region with about as many changes as lines has all of its buckets fetched from front to back; otherwise only those that are needed.
      const double fetched = std::min(buckets * lines / changes, 2.0) * std::min(1.0, misses * 2);
      return base.stage_ns + base.tagged_ns + (streamed_lines + fetched) * machine.stream_ns;
    }
    case Engine::kLinear:
    case Engine::kDecoupled: break;
  }
  return HUGE_VAL;
}

}  // namespace batch
