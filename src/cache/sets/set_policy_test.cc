// Each set policy is compared with a naive model of what its header says: lists and sweeps, one step at a time. Both see the same random
// accesses, removals and spared ways, and must pick the same victims.
#include "cache/sets/set_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mix.h"

namespace cache {
namespace {

bool is_spared(WayMask spared, uint32_t way) { return (spared >> way & 1) != 0; }

template <uint32_t Ways>
struct LruModel {
  std::list<uint32_t> ways;  // most recently used first

  void on_insert(uint32_t way, uint16_t) { ways.push_front(way); }
  void on_hit(uint32_t way) {
    ways.remove(way);
    ways.push_front(way);
  }
  void on_remove(uint32_t way, uint16_t, Removal) { ways.remove(way); }
  uint32_t pick_victim(WayMask spared) {
    for (auto way = ways.rbegin(); way != ways.rend(); ++way)
      if (!is_spared(spared, *way)) return *way;
    return kNoWay;
  }
};

struct Remembered {
  uint16_t fingerprint;
  unsigned hits;
};

std::optional<Remembered> take_newest(std::deque<Remembered>& history, uint16_t fingerprint) {
  for (size_t i = history.size(); i-- > 0;)
    if (history[i].fingerprint == fingerprint) {
      const Remembered found = history[i];
      history.erase(history.begin() + static_cast<ptrdiff_t>(i));
      return found;
    }
  return {};
}

template <uint32_t Ways, size_t Entries, unsigned AgeMisses = 0>
struct LfuModel {
  unsigned hits[Ways] = {};
  unsigned misses = 0;
  std::deque<Remembered> history;

  void on_insert(uint32_t way, uint16_t fingerprint) {
    if (AgeMisses != 0 && ++misses % AgeMisses == 0) halve();
    const auto known = take_newest(history, fingerprint);
    hits[way] = known ? known->hits : 0;
    on_hit(way);
  }
  void on_hit(uint32_t way) {
    if (hits[way] == 255) halve();
    ++hits[way];
  }
  void halve() {
    for (unsigned& count : hits) count /= 2;
    for (Remembered& entry : history) entry.hits /= 2;
  }
  void on_remove(uint32_t way, uint16_t fingerprint, Removal removal) {
    if (Entries == 0 || removal != Removal::kEvicted || hits[way] == 0) return;
    history.push_back({fingerprint, hits[way]});
    if (history.size() > Entries) history.pop_front();
  }
  uint32_t pick_victim(WayMask spared) {
    uint32_t victim = kNoWay;
    for (uint32_t way = 0; way < Ways; ++way)
      if (!is_spared(spared, way) && (victim == kNoWay || hits[way] < hits[victim])) victim = way;
    return victim;
  }
};

template <uint32_t Ways>
struct GclockModel {
  unsigned hits[Ways] = {};
  uint32_t hand = 0;

  void on_insert(uint32_t way, uint16_t) { hits[way] = 1; }
  void on_hit(uint32_t way) { hits[way] = std::min(hits[way] + 1, 255u); }
  void on_remove(uint32_t, uint16_t, Removal) {}
  uint32_t pick_victim(WayMask spared) {
    if (spared == all_ways(Ways)) return kNoWay;
    for (;;) {
      const uint32_t way = hand;
      hand = (hand + 1) % Ways;
      if (is_spared(spared, way)) continue;
      if (hits[way] == 0) return way;
      --hits[way];
    }
  }
};

template <uint32_t Ways>
struct S3fifoModel {
  std::list<uint32_t> small, main;  // oldest first
  unsigned hits[Ways] = {};
  std::deque<Remembered> ghosts;

  void on_insert(uint32_t way, uint16_t fingerprint) {
    hits[way] = 0;
    (take_newest(ghosts, fingerprint) ? main : small).push_back(way);
  }
  void on_hit(uint32_t way) { hits[way] = std::min(hits[way] + 1, 3u); }
  void on_remove(uint32_t way, uint16_t fingerprint, Removal removal) {
    const bool was_small = std::find(small.begin(), small.end(), way) != small.end();
    small.remove(way);
    main.remove(way);
    if (!was_small || removal != Removal::kEvicted) return;
    ghosts.push_back({fingerprint, 0});
    if (ghosts.size() > Ways) ghosts.pop_front();
  }
  uint32_t pick_victim(WayMask spared) {
    const auto is_candidate = [spared](uint32_t way) { return !is_spared(spared, way); };
    for (;;) {
      const auto in_small = std::find_if(small.begin(), small.end(), is_candidate);
      const auto in_main = std::find_if(main.begin(), main.end(), is_candidate);
      if (in_small == small.end() && in_main == main.end()) return kNoWay;
      if (in_main == main.end() || (in_small != small.end() && small.size() >= (Ways == 8    ? 1
                                                                                : Ways == 16 ? 2
                                                                                             : 3))) {
        const uint32_t way = *in_small;
        if (hits[way] <= 1) return way;
        hits[way] = 0;
        small.erase(in_small);
        main.push_back(way);
      } else {
        const uint32_t way = *in_main;
        if (hits[way] == 0) return way;
        --hits[way];
        main.erase(in_main);
        main.push_back(way);
      }
    }
  }
};

// A set of pages under the policy and the model at the same time.
template <class Policy, class Model>
class Twins {
 public:
  static constexpr uint32_t kWays = Policy::kWays;

  Twins(uint64_t seed, uint64_t page_count, uint16_t fingerprint_mask)
      : random_(seed), page_count_(page_count), fingerprint_mask_(fingerprint_mask) {}

  void run(unsigned steps) {
    for (unsigned step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      const uint64_t what = next() % 64;
      if (what == 0) {
        remove(static_cast<uint32_t>(next() % kWays), Removal::kForgotten);
      } else {
        access();
      }
    }
  }

 private:
  uint64_t next() { return base::mix(random_ += base::kMixStep); }
  uint16_t fingerprint_of(uint64_t page) const { return static_cast<uint16_t>(page) & fingerprint_mask_; }
  // Some pages are used much more often than others; which these are changes.
  uint64_t page() {
    const uint64_t popular = next() % 4 == 0 ? page_count_ : 1 + page_count_ / 8;
    return (next() % popular + accesses_++ / 4096) % page_count_;
  }
  void access() {
    const uint64_t page = this->page();
    for (uint32_t way = 0; way < kWays; ++way)
      if (pages_[way] == page) {
        policy_.on_hit(way);
        model_.on_hit(way);
        return;
      }
    uint32_t way = 0;
    while (way < kWays && pages_[way]) ++way;
    if (way == kWays) {
      way = make_room();
      if (way == kNoWay) return;
    }
    pages_[way] = page;
    policy_.on_insert(way, fingerprint_of(page));
    model_.on_insert(way, fingerprint_of(page));
  }
  // The victim may be pinned between the choice and the eviction, so sometimes it stays.
  uint32_t make_room() {
    const WayMask spared = next() % 4 != 0 ? 0 : static_cast<WayMask>(next() | next()) & all_ways(kWays);
    const uint32_t victim = policy_.pick_victim(spared);
    EXPECT_EQ(victim, model_.pick_victim(spared)) << "after " << accesses_ << " accesses, spared " << spared;
    if (victim == kNoWay) {
      EXPECT_EQ(spared, all_ways(kWays));
      return kNoWay;
    }
    EXPECT_FALSE(is_spared(spared, victim));
    if (victim >= kWays || next() % 16 == 0) return kNoWay;
    remove(victim, Removal::kEvicted);
    return victim;
  }
  void remove(uint32_t way, Removal removal) {
    if (!pages_[way]) return;
    policy_.on_remove(way, fingerprint_of(*pages_[way]), removal);
    model_.on_remove(way, fingerprint_of(*pages_[way]), removal);
    pages_[way].reset();
  }

  uint64_t random_, page_count_, accesses_ = 0;
  uint16_t fingerprint_mask_;
  std::optional<uint64_t> pages_[kWays];
  Policy policy_;
  Model model_;
};

// With few pages counts overflow, with many the histories; with fingerprints of three bits, pages are mistaken for others.
template <class Policy, class Model>
void expect_twins() {
  for (const uint64_t pages : {Policy::kWays + 2, 3 * Policy::kWays, 20 * Policy::kWays})
    for (const uint16_t mask : {uint16_t{0xffff}, uint16_t{7}})
      for (uint64_t seed = 0; seed < 3; ++seed) {
        SCOPED_TRACE("pages " + std::to_string(pages) + " mask " + std::to_string(mask) + " seed " +
                     std::to_string(seed));
        Twins<Policy, Model>(seed, pages, mask).run(100'000);
        if (testing::Test::HasFailure()) return;
      }
}

TEST(SetPolicyTest, LruIsItsModel) {
  expect_twins<LruSet<8>, LruModel<8>>();
  expect_twins<LruSet<16>, LruModel<16>>();
  expect_twins<LruSet<32>, LruModel<32>>();
}
TEST(SetPolicyTest, LfuIsItsModel) {
  expect_twins<LfuSet<8>, LfuModel<8, 0>>();
  expect_twins<LfuSet<16>, LfuModel<16, 0>>();
  expect_twins<LfuSet<32>, LfuModel<32, 0>>();
}
TEST(SetPolicyTest, NrlfuIsItsModel) {
  expect_twins<NrlfuSet<8>, LfuModel<8, 37>>();
  expect_twins<NrlfuSet<16>, LfuModel<16, 72>>();
  expect_twins<NrlfuSet<32>, LfuModel<32, 144>>();
}
TEST(SetPolicyTest, AlfuIsItsModel) {
  expect_twins<AlfuSet<8>, LfuModel<8, 37, 64>>();
  expect_twins<AlfuSet<16>, LfuModel<16, 72, 128>>();
  expect_twins<AlfuSet<32>, LfuModel<32, 144, 256>>();
}
TEST(SetPolicyTest, GclockIsItsModel) {
  expect_twins<GclockSet<8>, GclockModel<8>>();
  expect_twins<GclockSet<16>, GclockModel<16>>();
  expect_twins<GclockSet<32>, GclockModel<32>>();
}
TEST(SetPolicyTest, S3fifoIsItsModel) {
  expect_twins<S3fifoSet<8>, S3fifoModel<8>>();
  expect_twins<S3fifoSet<16>, S3fifoModel<16>>();
  expect_twins<S3fifoSet<32>, S3fifoModel<32>>();
}

TEST(SetPolicyTest, LruSurvivesTheEndOfItsClock) {
  for (const unsigned hits : {65'530, 100'000}) {
    LruSet<8> set;
    for (uint32_t way = 0; way < 8; ++way) set.on_insert(way, 0);
    for (unsigned i = 0; i < hits; ++i) set.on_hit(i % 7);
    EXPECT_EQ(set.pick_victim(0), 7u);
    set.on_remove(7, 0, Removal::kEvicted);
    set.on_insert(7, 0);
    for (const uint32_t way : {0, 1, 2, 4, 5, 6}) set.on_hit(way);
    EXPECT_EQ(set.pick_victim(0), 3u);
    EXPECT_EQ(set.pick_victim(way_bit(3)), 7u);
  }
}

// Hits may run concurrently with everything: whatever a set's counts are, a victim is a way that is not spared.
TEST(SetPolicyTest, HitsMayComeBesideEverything) {
  for (const SetPolicy policy : kSetPolicies)
    visit_set_policy<16>(policy, []<class Set>() {
      Set set;
      std::atomic<bool> over{false};
      for (uint32_t way = 0; way < 16; ++way) set.on_insert(way, static_cast<uint16_t>(way));
      std::thread hitter([&] {
        for (uint32_t i = 0; !over.load(std::memory_order_relaxed); ++i) set.on_hit(i * i % 16);
      });
      for (uint32_t i = 0; i < 20'000; ++i) {
        const auto spared = static_cast<WayMask>(base::mix(i) & 0x7fff);
        const uint32_t victim = set.pick_victim(spared);
        ASSERT_LT(victim, 16u);
        ASSERT_FALSE(is_spared(spared, victim));
        set.on_remove(victim, static_cast<uint16_t>(i), Removal::kEvicted);
        set.on_insert(victim, static_cast<uint16_t>(i * 7));
      }
      over.store(true, std::memory_order_relaxed);
      hitter.join();
      EXPECT_EQ(set.pick_victim(all_ways(16)), kNoWay);
    });
}

TEST(SetPolicyTest, ZeroedMemoryIsAnEmptySet) {
  for (const SetPolicy policy : kSetPolicies)
    visit_set_policy<16>(policy, []<class Set>() {
      const Set set;
      const char zeros[sizeof(Set)] = {};
      EXPECT_EQ(std::memcmp(static_cast<const void*>(&set), zeros, sizeof set), 0);
    });
}

TEST(SetPolicyTest, NamesAreThoseOfThePolicies) {
  for (const SetPolicy policy : kSetPolicies) {
    const auto parsed = parse_set_policy(name_of(policy));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(*parsed, policy);
  }
  for (const char* wrong : {"", "LRU", "lru ", "clock"}) {
    const auto parsed = parse_set_policy(wrong);
    ASSERT_FALSE(parsed.has_value()) << wrong;
    const std::string message = parsed.error().message;
    EXPECT_NE(message.find("'" + std::string(wrong) + "'"), std::string::npos) << message;
    for (const SetPolicy policy : kSetPolicies)
      EXPECT_NE(message.find(name_of(policy)), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace cache
