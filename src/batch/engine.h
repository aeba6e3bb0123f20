// Engine: one of the ways in which a table's changes are made.
#pragma once
#include <cstdint>

namespace batch {

enum class Engine : uint8_t {
  kLinear,  // one after the other, with a lock for each bucket and a search of one record after the other: the thesis's baseline (section 2.2.1)
  kDirect,  // the same, searching by vectors, as do those that follow
  kPrefetch,  // the buckets of a call's next keys are on their way meanwhile
  kTagged,    // a byte for each record tells the one line that is needed; for large buckets
  // Changes are staged, and their outcomes not known at once.
  kCacheBuckets,  // in buckets that stay in the CPU's cache: the thesis's (section 3.1; cache_buckets.h)
  kDecoupled,     // the same, made empty by threads of the table's: the thesis's (section 3.3; decoupled.h)
  kPartitioned,   // by each session for itself, in memory beside the table (partitioned.h)
};

inline constexpr Engine kEngines[] = {Engine::kLinear,     Engine::kDirect,       Engine::kPrefetch,
                                      Engine::kTagged,     Engine::kCacheBuckets, Engine::kDecoupled,
                                      Engine::kPartitioned};
inline constexpr uint32_t kMaxFlushers = 64;  // threads of kDecoupled
// Of kCacheBuckets, unless a table has others: the thesis's few and large ones (section 4.6).
inline constexpr uint32_t kCacheBucketBytes = 1024;
constexpr bool is_staging(Engine engine) { return engine >= Engine::kCacheBuckets; }

// "linear", "direct", "prefetch", "tagged", "cache_buckets", "decoupled", "partitioned"
constexpr const char* name_of(Engine engine) {
  switch (engine) {
    case Engine::kLinear: return "linear";
    case Engine::kDirect: return "direct";
    case Engine::kPrefetch: return "prefetch";
    case Engine::kTagged: return "tagged";
    case Engine::kCacheBuckets: return "cache_buckets";
    case Engine::kDecoupled: return "decoupled";
    case Engine::kPartitioned: return "partitioned";
  }
  return "";
}

}  // namespace batch
