// One set of tests for all policies: they are used as a partition uses them, and compared with simulations that know every hit.
#include "cache/policies/policies.h"

#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <map>
#include <random>
#include <set>

#include "cache/testing/test_frames.h"
#include "cache/testing/test_world.h"

namespace cache {
namespace {

class PolicyTest : public testing::TestWithParam<Asked> {};
INSTANTIATE_TEST_SUITE_P(All, PolicyTest, testing::ValuesIn(all_that_may_be_asked()), title);

TEST_P(PolicyTest, NamesEveryPageThoughNoneLeaves) {
  for (const uint32_t count : {1u, 2u, 8u, 100u}) {
    for (const bool touched : {false, true}) {
      Frames frames(GetParam(), count);
      // Some pages come back, so that all queues have pages.
      for (uint64_t i = 0; i < 20 * count; ++i) frames.access(i % (count + count / 3 + 1));
      const auto named = [&](bool is_used) {
        std::set<uint32_t> all;
        for (uint32_t i = 0; i < 100 * count; ++i) {
          if (is_used && touched) frames.touch_all();
          if (is_used) frames.cool(2);
          frames.name();
          all.insert(frames.last_named);
        }
        return all.size();
      };
      EXPECT_EQ(named(true), count) << touched;
      named(false);
      EXPECT_EQ(named(false), count) << touched;
    }
  }
}

TEST_P(PolicyTest, PinnedPagesDoNotHoldOthersUp) {
  for (const uint32_t count : {2u, 8u, 64u}) {
    Frames frames(GetParam(), count);
    std::mt19937_64 random(count);
    for (int i = 0; i < 400; ++i) frames.access(random() % (2 * count));
    // All but one page are pinned; each is that one in its turn.
    const auto resident = frames.resident();
    for (const auto& [page, frame] : resident) frames.pin(page, true);
    for (const auto& [page, frame] : resident) {
      frames.pin(page, false);
      frames.evict();
      ASSERT_FALSE(frames.has(page));
      frames.load(page, true);
      frames.pin(page, true);
    }
  }
}

class ReadAheadPolicyTest : public PolicyTest {};
INSTANTIATE_TEST_SUITE_P(All, ReadAheadPolicyTest,
                         testing::Values(PolicyKind::kLru, PolicyKind::kS3fifo, PolicyKind::kNrlfu), title);

TEST_P(ReadAheadPolicyTest, PagesThatWereReadAheadGoBeforeOthers) {
  Frames frames(GetParam(), 64);
  // Few enough that the counts of pages that were not used again have not been halved away.
  for (uint64_t page = 0; page < 150; ++page) frames.access(page);
  for (uint64_t page = 1000; page < 1008; ++page) frames.load(page, false);
  // More than half of the frames, not all.
  for (uint64_t page = 2000; page < 2044; ++page) frames.access(page);
  for (uint64_t page = 1000; page < 1008; ++page) EXPECT_FALSE(frames.has(page)) << page;
}

// Whatever pages come, leave, are touched, held and forgotten: only resident pages are named, and all memory is given back.
TEST_P(PolicyTest, RandomHistories) {
  const uint64_t seeds = environment("SPILLWAY_TEST_SEEDS", 20);
  const uint64_t first = environment("SPILLWAY_TEST_SEED", 1);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    std::mt19937_64 random(seed);
    const uint32_t count = std::array{8u, 9u, 63u, 64u, 65u, 200u}[seed % 6];
    Frames frames(GetParam(), count);
    uint32_t pins = 0;
    const auto any = [&] {
      return std::next(frames.resident().begin(), static_cast<long>(random() % frames.resident().size()));
    };
    for (int step = 0; step < 4000; ++step) {
      const uint64_t page = random() % (3 * count);
      switch (random() % 12) {
        case 0:
          if (!frames.has(page)) frames.load(page, false);
          break;
        case 1:
          if (!frames.resident().empty() && pins == 0) frames.leave(any()->second, Removal::kForgotten);
          break;
        case 2:
          if (!frames.has(page)) frames.policy->forget(PageId{page});
          break;
        case 3:
          if (!frames.resident().empty()) frames.name();  // and is rescued
          break;
        case 4:
          if (frames.resident().size() == count && pins == 0) {
            frames.pin(any()->first, true);
            ++pins;
          }
          break;
        case 5:
          if (pins > 0) {
            for (const auto& [other, frame] : frames.resident()) frames.pin(other, false);
            pins = 0;
          }
          break;
        case 6: {
          // Often not to the end, so that it continues after other pages have left.
          const auto reach = static_cast<uint32_t>(random() % count + 1);
          for (uint64_t left = random() % (2 * count); left > 0; --left) {
            const FrameId frame = frames.policy->name_to_clean(reach);
            if (frame == base::kNoFrame) break;
            ASSERT_TRUE(frames.policy->holds(frame));
          }
          break;
        }
        case 7: frames.cool(3); break;
        default: frames.access(page);
      }
      ASSERT_EQ(frames.policy->held_count(), frames.resident().size()) << "seed " << seed;
      for (const auto& [other, frame] : frames.resident()) ASSERT_TRUE(frames.policy->holds(FrameId{frame}));
    }
  }
}

// Not random, whose next victims are unknown; nor several policies side by side, only one of which is asked.
std::vector<Asked> all_that_know_what_is_next() {
  std::vector<Asked> all = all_that_may_be_asked();
  std::erase_if(all, [](const Asked& asked) { return !asked || *asked == PolicyKind::kRandom; });
  return all;
}
class CleaningPolicyTest : public PolicyTest {};
INSTANTIATE_TEST_SUITE_P(All, CleaningPolicyTest, testing::ValuesIn(all_that_know_what_is_next()), title);

// The cleaner works ahead of the evictor: the pages that are named to it leave soon.
TEST_P(CleaningPolicyTest, WhatIsToBeCleanedLeavesSoon) {
  Frames frames(GetParam(), 80);
  for (uint64_t page = 0; page < 400; ++page) frames.access(page);
  frames.cool(400);
  for (uint32_t i = 0; i < 40; ++i) frames.evict();
  for (uint64_t page = 1000; page < 1020; ++page) frames.access(page);
  std::set<uint32_t> clean;
  for (uint32_t i = 0; i < 10; ++i) {
    const FrameId frame = frames.policy->name_to_clean(10);
    ASSERT_NE(frame, base::kNoFrame);
    clean.insert(index(frame));
  }
  EXPECT_EQ(clean.size(), 10u);
  std::set<uint32_t> left;
  for (uint32_t i = 0; i < 40; ++i) {
    frames.evict();
    left.insert(frames.last_named);
  }
  for (const uint32_t frame : clean) EXPECT_TRUE(left.contains(frame));
}

// A few pages are used rarely but repeatedly, while all others are used once.
double hot_hit_rate(PolicyKind kind) {
  constexpr uint32_t kFrames = 200, kHot = 80;
  Frames frames(kind, kFrames);
  uint64_t once = 1000, hits = 0, uses = 0;
  for (uint32_t round = 0; round < 60; ++round) {
    const bool scan = round >= 30;
    for (uint64_t page = 0; page < kHot; ++page) {
      const bool hit = frames.access(page);
      hits += scan && hit;
      uses += scan;
    }
    for (uint32_t i = 0; i < (scan ? 300 : 40); ++i) frames.access(once++);
  }
  return static_cast<double>(hits) / static_cast<double>(uses);
}
TEST(PolicyScan, HotPagesSurviveIt) {
  for (const PolicyKind kind : {PolicyKind::kTwoQueues, PolicyKind::kS3fifo, PolicyKind::kNrlfu})
    EXPECT_GT(hot_hit_rate(kind), 0.95) << name_of(kind);
  EXPECT_LT(hot_hit_rate(PolicyKind::kLru), 0.05);
}

// S3-FIFO: a page in the main queue is not examined while all others come only once.
TEST(PolicyScan, APageTouchedInTheSmallQueueStays) {
  Frames frames(PolicyKind::kS3fifo, 100);
  for (uint64_t page = 0; page < 100; ++page) frames.access(page);
  frames.cool(100);
  for (uint64_t page = 0; page < 5; ++page) frames.access(page);
  for (uint64_t page = 1000; page < 1600; ++page) frames.access(page);
  for (uint64_t page = 0; page < 100; ++page) EXPECT_EQ(frames.has(page), page < 5) << page;
}

// NRLFU: pages that were touched often, but not any more, leave after others have come for a while.
TEST(PolicyScan, WhatWasPopularOnceGoes) {
  constexpr uint32_t kFrames = 64, kPopular = 16;
  Frames frames(PolicyKind::kNrlfu, kFrames);
  uint64_t once = 1000;
  for (uint32_t round = 0; round < 8; ++round) {
    for (uint64_t page = 0; page < kPopular; ++page) frames.access(page);
    for (uint32_t i = 0; i < kFrames / 4; ++i) frames.access(once++);
  }
  uint32_t popular = 0;
  for (uint64_t page = 0; page < kPopular; ++page) popular += frames.has(page);
  EXPECT_EQ(popular, kPopular);
  for (uint32_t i = 0; i < 12 * kFrames; ++i) frames.access(once++);
  for (uint64_t page = 0; page < kPopular; ++page) EXPECT_FALSE(frames.has(page)) << page;
}

// Which pages may leave with a victim: with NRLFU those whose count is higher by at most one.
TEST(PolicyNeighbours, AreAsBadAsTheVictimOrNearly) {
  for (const PolicyKind kind : base::kPolicyKinds) {
    Budget budget;
    auto created = Policy::create(kind, 8, 8, budget);
    ASSERT_TRUE(created.has_value());
    Policy& policy = **created;
    const FrameId ahead{0}, once{1}, twice{2};
    policy.loaded(ahead, PageId{0}, false);
    policy.loaded(once, PageId{1}, true);
    policy.loaded(twice, PageId{2}, true);
    policy.touched(twice);
    const bool counts = kind == PolicyKind::kNrlfu, takes_any = kind == PolicyKind::kRandom;
    EXPECT_EQ(policy.goes_with(ahead, once), counts || takes_any);
    EXPECT_EQ(policy.goes_with(once, ahead), counts || takes_any);
    EXPECT_EQ(policy.goes_with(once, twice), counts || takes_any);
    EXPECT_EQ(policy.goes_with(ahead, twice), takes_any);
    policy.destroy();
  }
}

TEST(PolicyMemory, WhatIsForgottenComesBackAsNew) {
  for (const bool forgotten : {false, true}) {
    Frames frames(PolicyKind::kTwoQueues, 8);
    for (uint64_t page = 0; page < 9; ++page) frames.access(page);
    ASSERT_FALSE(frames.has(0));
    if (forgotten) frames.policy->forget(PageId{0});
    frames.access(0);
    // As a new page it is the newest in the queue; as one that came back it stays.
    for (uint64_t page = 100; page < 120; ++page) frames.access(page);
    EXPECT_EQ(frames.has(0), !forgotten);
  }
}

TEST(PolicyMemory, OfASmallerShareLessIsRemembered) {
  for (const uint32_t one_in : {16u, 64u}) {
    Budget budget;
    auto created = Policy::create(PolicyKind::kTwoQueues, 1024, 1024, budget, 16);
    ASSERT_TRUE(created.has_value());
    Policy& policy = **created;
    policy.set_share(one_in);
    const FrameId first{0}, second{1};
    for (uint64_t page = 0; page < 32; ++page) {
      policy.loaded(first, PageId{page}, true);
      policy.left(first, PageId{page}, Removal::kEvicted);
    }
    // A policy with a sixteenth of the frames remembers 32 pages, one with a sixty-fourth 8. A new page is the oldest in the queue.
    policy.loaded(first, PageId{12}, true);
    policy.loaded(second, PageId{100}, true);
    EXPECT_EQ(policy.name_victim().frame, one_in == 16 ? second : first);
    policy.destroy();
  }
}

// Simulations that know every hit, after the sources named in policy.h. Each returns the number of misses.

uint64_t simulate_clock(const Trace& trace, size_t frame_count) {
  std::vector<uint64_t> pages(frame_count, ~uint64_t{0});
  std::vector<bool> warm(frame_count);
  std::map<uint64_t, size_t> where;
  uint64_t misses = 0;
  size_t hand = 0;
  for (const uint64_t page : trace) {
    if (const auto found = where.find(page); found != where.end()) {
      warm[found->second] = true;
      continue;
    }
    ++misses;
    size_t frame = where.size();
    if (frame == frame_count) {
      for (; warm[hand]; hand = (hand + 1) % frame_count) warm[hand] = false;
      frame = hand;
      hand = (hand + 1) % frame_count;
      where.erase(pages[frame]);
    }
    pages[frame] = page;
    warm[frame] = true;
    where[page] = frame;
  }
  return misses;
}

// A list of pages that can be looked up.
class Queue {
 public:
  size_t size() const { return order_.size(); }
  bool has(uint64_t page) const { return where_.contains(page); }
  void append(uint64_t page) { where_[page] = order_.insert(order_.end(), page); }
  void remove(uint64_t page) {
    order_.erase(where_.at(page));
    where_.erase(page);
  }
  uint64_t oldest() const { return order_.front(); }
  uint64_t take_oldest() {
    const uint64_t page = oldest();
    remove(page);
    return page;
  }
  void append_bounded(uint64_t page, size_t most) {
    if (has(page)) remove(page);
    append(page);
    while (size() > most) take_oldest();
  }

 private:
  std::list<uint64_t> order_;
  std::map<uint64_t, std::list<uint64_t>::iterator> where_;
};

uint64_t simulate_lru(const Trace& trace, size_t frame_count) {
  Queue pages;
  uint64_t misses = 0;
  for (const uint64_t page : trace) {
    if (pages.has(page)) {
      pages.remove(page);
    } else {
      ++misses;
      if (pages.size() == frame_count) pages.take_oldest();
    }
    pages.append(page);
  }
  return misses;
}

uint64_t simulate_2q(const Trace& trace, size_t frame_count) {
  Queue in, out, main;
  uint64_t misses = 0;
  for (const uint64_t page : trace) {
    if (in.has(page)) continue;
    if (main.has(page)) {
      main.remove(page);
      main.append(page);
      continue;
    }
    ++misses;
    if (in.size() + main.size() == frame_count) {
      if (in.size() * 4 >= frame_count || main.size() == 0)
        out.append_bounded(in.take_oldest(), frame_count / 2);
      else
        main.take_oldest();
    }
    if (out.has(page)) {
      out.remove(page);
      main.append(page);
    } else {
      in.append(page);
    }
  }
  return misses;
}

uint64_t simulate_s3fifo(const Trace& trace, size_t frame_count) {
  Queue small, main, ghosts;
  std::map<uint64_t, int> uses;
  uint64_t misses = 0;
  for (const uint64_t page : trace) {
    if (small.has(page) || main.has(page)) {
      uses[page] = std::min(uses[page] + 1, 3);
      continue;
    }
    ++misses;
    while (small.size() + main.size() == frame_count) {
      if (small.size() * 10 >= frame_count || main.size() == 0) {
        const uint64_t oldest = small.take_oldest();
        if (uses[oldest] > 1)
          main.append(oldest);
        else
          ghosts.append_bounded(oldest, frame_count);
        uses[oldest] = 0;
      } else {
        const uint64_t oldest = main.take_oldest();
        if (uses[oldest]-- > 0) main.append(oldest);
      }
    }
    uses[page] = 0;
    if (ghosts.has(page)) {
      ghosts.remove(page);
      main.append(page);
    } else {
      small.append(page);
    }
  }
  return misses;
}

uint64_t simulate_random(const Trace& trace, size_t frame_count) {
  std::vector<uint64_t> pages;
  std::set<uint64_t> resident;
  std::mt19937_64 random(5);
  uint64_t misses = 0;
  for (const uint64_t page : trace) {
    if (resident.contains(page)) continue;
    ++misses;
    if (pages.size() == frame_count) {
      uint64_t& victim = pages[random() % frame_count];
      resident.erase(victim);
      victim = page;
    } else {
      pages.push_back(page);
    }
    resident.insert(page);
  }
  return misses;
}

// Counts are bounded only by halving.
uint64_t simulate_nrlfu(const Trace& trace, size_t frame_count) {
  std::map<uint64_t, std::pair<uint32_t, uint64_t>> resident;  // count, and when the page reached it
  std::map<uint64_t, uint32_t> before;
  Queue ghosts;
  uint64_t misses = 0, now = 0, came = 0;
  for (const uint64_t page : trace) {
    ++now;
    if (const auto found = resident.find(page); found != resident.end()) {
      found->second = {found->second.first + 1, now};
      continue;
    }
    ++misses;
    if (++came > 3 * frame_count) {
      came = 0;
      for (auto& [other, used] : resident) used.first /= 2;
      for (auto& [other, count] : before) count /= 2;
    }
    if (resident.size() == frame_count) {
      auto victim = resident.begin();
      for (auto at = resident.begin(); at != resident.end(); ++at)
        if (at->second < victim->second) victim = at;
      before[victim->first] = victim->second.first;
      ghosts.append_bounded(victim->first, frame_count);
      resident.erase(victim);
    }
    uint32_t count = 0;
    if (ghosts.has(page)) {
      ghosts.remove(page);
      count = before[page];
    }
    resident[page] = {count + 1, now};
  }
  return misses;
}

uint64_t misses_of(PolicyKind kind, const Trace& trace, uint32_t frame_count) {
  Frames frames(kind, frame_count);
  return run(frames, trace);
}

TEST(PolicySimulation, MissesAreThoseOfSimulationsThatKnowEveryHit) {
  constexpr uint32_t kFrames = 400;
  const std::pair<const char*, Trace> traces[] = {
      {"skewed", skewed(4000, 60000)}, {"loop", looped(480, 60000)}, {"scan", scanned(300, 60000)}};
  struct Simulated {
    PolicyKind kind;
    uint64_t (*simulate)(const Trace&, size_t);
    double tolerance;  // of the simulation's misses
  };
  const Simulated all[] = {
      {PolicyKind::kClock, simulate_clock, 0},      {PolicyKind::kLru, simulate_lru, 0.03},
      {PolicyKind::kTwoQueues, simulate_2q, 0.03},  {PolicyKind::kRandom, simulate_random, 0.03},
      {PolicyKind::kS3fifo, simulate_s3fifo, 0.07}, {PolicyKind::kNrlfu, simulate_nrlfu, 0.15}};
  for (const auto& [name, trace] : traces) {
    for (const Simulated& one : all) {
      const auto misses = static_cast<double>(misses_of(one.kind, trace, kFrames));
      const auto expected = static_cast<double>(one.simulate(trace, kFrames));
      printf("%-7s %-7s %6.0f, simulated %6.0f\n", name, name_of(one.kind), misses, expected);
      // If two queues share the frames, which part of a loop stays, and how much, depends on the order of single pages.
      const bool shares = one.kind == PolicyKind::kTwoQueues || one.kind == PolicyKind::kS3fifo;
      if (shares && std::string_view(name) == "loop")
        EXPECT_LT(misses, 0.75 * static_cast<double>(trace.size())) << name_of(one.kind);
      else
        EXPECT_NEAR(misses, expected, one.tolerance * expected) << name << " " << name_of(one.kind);
    }
  }
}

// With a cache around it.
class PolicyWorldTest : public WorldTest, public testing::WithParamInterface<Asked> {
 protected:
  void open_with_policy(TestParameters with) {
    with.policy = GetParam().value_or(PolicyKind::kClock);
    with.chooses_policy = !GetParam();
    with.policy_choice = kSmall;
    open(with);
  }
};
INSTANTIATE_TEST_SUITE_P(All, PolicyWorldTest, testing::ValuesIn(all_that_may_be_asked()), title);

TEST_P(PolicyWorldTest, PagesComeAndGo) {
  for (const uint32_t partitions : {1u, 4u}) {
    open_with_policy({.frame_count = 64, .range_pages = 2048, .partition_count = partitions});
    for (uint64_t page = 0; page < 2048; ++page) write(page, static_cast<char>(page % 100 + 1));
    for (uint64_t page = 0; page < 2048; page += 3) ASSERT_EQ(value(page), page % 100 + 1);
    world->cache->discard(PageId{0}, 1024, *a->workspace);
    world->cache->verify();
    for (uint64_t page = 0; page < 2048; page += 5) ASSERT_EQ(value(page), page < 1024 ? 0 : page % 100 + 1);
    evict();
    EXPECT_EQ(world->cache->resident_count(), 0u);
  }
}

// Pages that came from scattered places leave by groups of neighbours, where the policy allows it; written together, they come back by few reads.
TEST_P(PolicyWorldTest, NeighboursLeaveTogether) {
  constexpr uint64_t kPages = 512, kGroup = 16;
  open_with_policy({.frame_count = kPages, .range_pages = 4 * kPages});
  for (uint64_t i = 0; i < kPages; ++i) write(i * 37 % kPages, static_cast<char>(i * 37 % kPages % 100 + 1));
  a->release_all();
  // Evicts until all pages have been cooled and half of them have left.
  for (uint32_t i = 0; world->cache->resident_count() > kPages / 2; ++i) {
    ASSERT_LT(i, 1000u);
    world->cache->evict(*a->workspace);
  }
  uint64_t broken = 0;  // groups of which some pages left, and some not
  for (uint64_t first = 0; first < kPages; first += kGroup) {
    uint64_t resident = 0;
    for (uint64_t page = first; page < first + kGroup; ++page) resident += world->resident(page);
    broken += resident > 0 && resident < kGroup;
  }
  if (GetParam() == PolicyKind::kNrlfu || GetParam() == PolicyKind::kRandom) EXPECT_LE(broken, 2u);
  for (uint64_t page = 0; page < kPages; ++page) ASSERT_EQ(value(page), page % 100 + 1);
}

// A victim's neighbour that was used meanwhile stays, and is not cooled in passing.
TEST_F(WorldTest, NeighboursThatWereUsedStayAsTheyAre) {
  constexpr uint64_t kPages = 4096, kGroup = 16;
  open({.frame_count = kPages, .range_pages = kPages, .policy = PolicyKind::kNrlfu});
  uint64_t last[kPages / kGroup];  // page of each group that came last, so that it is not a victim itself
  for (uint64_t i = 0; i < kPages; ++i) {
    const uint64_t page = i * 37 % kPages;
    write(page, 'x');
    last[page / kGroup] = page;
  }
  a->release_all();
  const auto evict_batch = [&] { ASSERT_GT(world->cache->evict(*a->workspace), 0u); };
  // Until each page has been looked at once.
  for (uint32_t i = 0; i < 16; ++i) evict_batch();
  uint64_t stayed = 0, cooled = 0;
  // Meanwhile no page of these groups has its turn to be cooled again.
  for (uint32_t i = 0; i < 2; ++i) {
    std::vector<bool> before(kPages);
    for (const uint64_t page : last)
      if (world->resident(page)) ASSERT_NE(a->translate(world->address(page)), nullptr);
    a->release_all();
    for (uint64_t page = 0; page < kPages; ++page) before[page] = world->resident(page);
    evict_batch();
    for (uint64_t page = 0; page < kPages; ++page) {
      const uint64_t used = last[page / kGroup];
      if (!before[page] || world->resident(page) || !before[used]) continue;
      ++(world->entries[used].load() > 1 ? stayed : cooled);
    }
  }
  EXPECT_GT(stayed, 60u);
  EXPECT_EQ(cooled, 0u);
}

// Through table, cooling and eviction: pages that are used repeatedly stay while others come once.
TEST_P(PolicyWorldTest, HotPagesSurviveAScan) {
  constexpr uint64_t kHot = 24;
  open_with_policy({.frame_count = 128, .range_pages = 16384});
  uint64_t once = 100, hits = 0, uses = 0;
  for (uint32_t round = 0; round < 60; ++round) {
    for (uint64_t page = 0; page < kHot; ++page) {
      if (round >= 30) {
        ++uses;
        hits += world->resident(page);
      }
      ASSERT_NE(a->translate(world->address(page)), nullptr);
      a->release_all();
    }
    for (uint32_t i = 0; i < (round >= 30 ? 160 : 24); ++i) {
      ASSERT_NE(a->translate(world->address(once++)), nullptr);
      a->release_all();
    }
  }
  const bool promised = GetParam() == PolicyKind::kTwoQueues || GetParam() == PolicyKind::kS3fifo ||
                        GetParam() == PolicyKind::kNrlfu;
  if (promised) EXPECT_GE(hits, uses * 9 / 10);
  if (GetParam() == PolicyKind::kLru) EXPECT_LE(hits, uses / 10);
}

TEST_P(PolicyWorldTest, ItsMemoryIsInTheBudget) {
  open_with_policy({.frame_count = 4096, .range_pages = 64});
  const uint64_t used = world->cache->budget().used_bytes();
  open({.frame_count = 4096, .range_pages = 64, .policy = PolicyKind::kClock});
  const uint64_t clock = world->cache->budget().used_bytes();
  const bool keeps_lists = GetParam() != PolicyKind::kClock && GetParam() != PolicyKind::kRandom;
  EXPECT_GE(used, clock + (keeps_lists ? 4096 * 12 : 0));
  EXPECT_LE(used, clock + 4096 * (GetParam() ? 40 : 84));
}

}  // namespace
}  // namespace cache
