// Set policies: choose which page of one set of a set-associative cache leaves (set-associative page cache, "set-associative
// caching"). A set is 8, 16 or 32 ways; all that a policy knows about it is one object in a few CPU lines, and a hit or a miss touches
// nothing else of the policy.
//
//   name     keeps                                       bytes at 8 / 16 / 32 ways   source
//   lru      a stamp of 16 bits a way                            18 /  34 /  66      the paper: SA-LRU
//   lfu      a count of 8 bits a way                              8 /  16 /  32      the paper: SA-LFU
//   nrlfu    the same, and fingerprints and counts              122 / 234 / 466      the paper: SA-NRLFU
//            of 37 / 72 / 144 pages that left
//   alfu     the same, halved as others come                    124 / 236 / 468      our own
//   gclock   a count of 8 bits a way, and a hand                  9 /  17 /  33      SAFS, the paper's code
//   s3fifo   two queues, counts, a fingerprint a way             36 /  68 / 132      S3-FIFO, SOSP 2023
//
// A policy is a class over ways, without virtual functions:
//
//   on_insert(way, fingerprint)             a page came into a free way
//   on_hit(way)                             the way's page was used
//   on_remove(way, fingerprint, Removal)    the way's page left, as a victim or otherwise; the way is free
//   pick_victim(spared) -> way or kNoWay    which page leaves next. Spared are pinned pages, changed ones that cannot leave yet, and free
//                                           ways. The page may stay after all: then the same call is made again later
//
//   fingerprint   16 bits of the page's hash, other than those that chose the set
//
// Invariants
//  1 zeroed memory is an empty set
//  2 pick_victim never names a spared way, and kNoWay only when all ways are spared
// Thread contract: the set's lock, except for on_hit, which may run concurrently with everything, itself included: it stores single numbers
// (Racy). Cost: on_hit a few instructions without unpredictable branches; the others some ten nanoseconds, which a miss can afford.
//
// To add one: 1) a header set_policy_<name>.h with the class; 2) its line here, and its name in SetPolicy, kSetPolicies, kNames and
// visit_set_policy; 3) a model of it in set_policy_test.cc.
#pragma once
#include <string_view>

#include "base/error.h"
#include "cache/sets/set_policy_gclock.h"
#include "cache/sets/set_policy_lfu.h"
#include "cache/sets/set_policy_lru.h"
#include "cache/sets/set_policy_s3fifo.h"

namespace cache {

enum class SetPolicy : uint8_t { kLru, kLfu, kNrlfu, kAlfu, kGclock, kS3fifo };
inline constexpr SetPolicy kSetPolicies[] = {SetPolicy::kLru,  SetPolicy::kLfu,    SetPolicy::kNrlfu,
                                             SetPolicy::kAlfu, SetPolicy::kGclock, SetPolicy::kS3fifo};

const char* name_of(SetPolicy policy);
// Errors: EINVAL, with all names that there are.
base::Expected<SetPolicy> parse_set_policy(std::string_view name);

// Calls visitor.operator()<Set>() with the policy's class, and returns its result.
template <uint32_t Ways, class Visitor>
auto visit_set_policy(SetPolicy policy, Visitor&& visitor) {
  switch (policy) {
    case SetPolicy::kLru: return visitor.template operator()<LruSet<Ways>>();
    case SetPolicy::kLfu: return visitor.template operator()<LfuSet<Ways>>();
    case SetPolicy::kNrlfu: return visitor.template operator()<NrlfuSet<Ways>>();
    case SetPolicy::kAlfu: return visitor.template operator()<AlfuSet<Ways>>();
    case SetPolicy::kGclock: return visitor.template operator()<GclockSet<Ways>>();
    case SetPolicy::kS3fifo: return visitor.template operator()<S3fifoSet<Ways>>();
  }
  __builtin_unreachable();
}

}  // namespace cache
