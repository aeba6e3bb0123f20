// Engine: one of the ways in which a table's changes are made.
#pragma once
#include <cstdint>

namespace batch {

enum class Engine : uint8_t {
  kLinear,  // key after key, with a lock for each bucket, which is searched record after record: the thesis's baseline (section 2.2.1)
  kDirect,  // the same, but buckets are searched with vector instructions, as by the engines that follow
  kPrefetch,  // while it works on a key, it fetches the buckets of the call's next keys
  kTagged,    // a byte for each record tells which line of the bucket is needed; for large buckets
  // These stage changes, so that their outcomes are not known at once.
  kCacheBuckets,  // in buckets that stay in the CPU's cache, as in the thesis (section 3.1; cache_buckets.h)
  kDecoupled,    // the same, but threads of the table empty them, as in the thesis (section 3.3; decoupled.h)
  kPartitioned,  // each session for itself, in memory outside the table (partitioned.h)
};

inline constexpr Engine kEngines[] = {Engine::kLinear,     Engine::kDirect,       Engine::kPrefetch,
                                      Engine::kTagged,     Engine::kCacheBuckets, Engine::kDecoupled,
                                      Engine::kPartitioned};
inline constexpr uint32_t kMaxFlushers = 64;  // threads of kDecoupled
// The size of a cache-bucket, unless a table chooses another one: few large ones, as in the thesis (section 4.6).
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
