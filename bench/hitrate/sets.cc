#include "hitrate/sets.h"

namespace hitrate {
namespace {

constexpr uint8_t kAbsent = 0xff;

// A set with what a cache knows beside its policy.
template <class Policy>
struct Set {
  Policy policy;
  uint32_t pages[Policy::kWays] = {};
  uint32_t used_ways = 0;  // the first so many
};

template <class Policy>
uint64_t count_hits(const Trace& trace, uint64_t size) {
  CHECK_GE(size, Policy::kWays);
  std::vector<Set<Policy>> sets(size / Policy::kWays);
  std::vector<uint8_t> way_of(trace.page_count, kAbsent);
  const auto fingerprint_of = [](uint64_t hash) { return static_cast<uint16_t>(hash); };
  uint64_t hits = 0;
  for (const uint32_t page : trace.accesses) {
    const uint64_t hash = base::mix(page);
    Set<Policy>& set = sets[(hash >> 32) * sets.size() >> 32];
    uint8_t& way = way_of[page];
    if (way != kAbsent) {
      ++hits;
      set.policy.on_hit(way);
      continue;
    }
    if (set.used_ways < Policy::kWays) {
      way = static_cast<uint8_t>(set.used_ways++);
    } else {
      way = static_cast<uint8_t>(set.policy.pick_victim(0));
      const uint32_t victim = set.pages[way];
      set.policy.on_remove(way, fingerprint_of(base::mix(victim)), cache::Removal::kEvicted);
      way_of[victim] = kAbsent;
    }
    set.pages[way] = page;
    set.policy.on_insert(way, fingerprint_of(hash));
  }
  return hits;
}

template <uint32_t Ways>
uint64_t with_ways(const Trace& trace, uint64_t size, cache::SetPolicy policy) {
  return cache::visit_set_policy<Ways>(policy,
                                       [&]<class Policy>() { return count_hits<Policy>(trace, size); });
}

}  // namespace

uint64_t count_set_hits(const Trace& trace, uint64_t size, cache::SetPolicy policy, uint32_t ways) {
  switch (ways) {
    case 8: return with_ways<8>(trace, size, policy);
    case 16: return with_ways<16>(trace, size, policy);
    case 32: return with_ways<32>(trace, size, policy);
    default: CHECK(false);
  }
}

}  // namespace hitrate
