#include "cache/policies/ghosts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <unordered_map>

namespace cache {
namespace {

using base::MissCurve;

// A cache of `frames` pages with LRU replacement, which tells ghosts what leaves.
class Lru {
 public:
  explicit Lru(uint64_t frames, Ghosts* ghosts = nullptr) : frames_(frames), ghosts_(ghosts) {}

  void touch(uint64_t page) {
    if (const auto known = where_.find(page); known != where_.end()) {
      order_.splice(order_.begin(), order_, known->second);
      return;
    }
    ++misses;
    if (order_.size() == frames_) {
      if (ghosts_ != nullptr) ghosts_->left(PageId{order_.back()});
      where_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(page);
    if (ghosts_ != nullptr) ghosts_->came(PageId{page}, order_.size(), &curve);
    where_[page] = order_.begin();
  }

  uint64_t misses = 0;
  MissCurve curve;

 private:
  uint64_t frames_;
  Ghosts* ghosts_;
  std::list<uint64_t> order_;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> where_;
};

struct World {
  explicit World(uint32_t capacity) { EXPECT_TRUE(ghosts.open(capacity, budget)); }
  ~World() { ghosts.close(); }
  Budget budget;
  Ghosts ghosts;
};

// Skewed: the lower a page's number, the more often it is used.
std::vector<uint64_t> trace(uint64_t pages, size_t touches, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit;
  std::vector<uint64_t> result(touches);
  for (uint64_t& page : result) {
    const double u = unit(random);
    page = static_cast<uint64_t>(u * u * static_cast<double>(pages)) * 64;
  }
  return result;
}

// Compares the true number of misses at each step of the curve with the curve's.
void compare(uint64_t frames, uint32_t capacity, const std::vector<uint64_t>& pages, double tolerance) {
  World world(capacity);
  Lru lru(frames, &world.ghosts);
  for (uint64_t page : pages) lru.touch(page);
  for (size_t i = 0; i < MissCurve::kStepCount; ++i) {
    Lru larger((frames * MissCurve::kSteps[i]) / 16);
    for (uint64_t page : pages) larger.touch(page);
    const auto point = lru.curve.point(i, frames, frames, lru.misses);
    EXPECT_EQ(point.memory_bytes, frames + frames / 16 * (MissCurve::kSteps[i] - 16));
    EXPECT_LE(std::abs(static_cast<double>(point.misses) - static_cast<double>(larger.misses)),
              tolerance * static_cast<double>(lru.misses))
        << "step " << i << ": " << point.misses << ", in truth " << larger.misses;
  }
}

TEST(Ghosts, AreExactWhenAllAreKept) {
  for (uint64_t seed = 1; seed <= 3; ++seed) compare(63 + seed, 512, trace(400, 20'000, seed), 0);
}

TEST(Ghosts, OfASampleAreNearTheTruth) { compare(2000, 256, trace(20'000, 200'000, 4), 0.06); }

TEST(Ghosts, ALoopNeedsAllOfIt) {
  std::vector<uint64_t> pages;
  for (uint64_t i = 0; i < 10 * 5000; ++i) pages.push_back(i % 5000);
  World world(128);
  Lru lru(1000, &world.ghosts);
  for (uint64_t page : pages) lru.touch(page);
  EXPECT_EQ(lru.misses, pages.size());
  const auto misses_with = [&](uint32_t step) {
    const auto* at = std::find(std::begin(MissCurve::kSteps), std::end(MissCurve::kSteps), step);
    return lru.curve.point(static_cast<size_t>(at - MissCurve::kSteps), 0, 0, lru.misses).misses;
  };
  EXPECT_GT(misses_with(48), 47'500u);  // 3,000 frames
  EXPECT_LT(misses_with(128), 7'500u);  // 8,000: only the first touches are left
}

TEST(Ghosts, StayWithinTheCapacity) {
  for (uint32_t capacity : {1u, 2u, 100u, 1024u, 5000u}) {
    World world(capacity);
    for (uint64_t page = 0; page < 50'000; ++page) {
      world.ghosts.left(PageId{page});
      ASSERT_LE(world.ghosts.count(), std::min(capacity, Ghosts::kMaxCapacity));
    }
    EXPECT_GT(world.ghosts.shift(), 0u);
    EXPECT_LE(world.budget.used_bytes(), 36u << 10);
  }
}

TEST(Ghosts, WhatIsForgottenOrReadAheadIsNotThere) {
  World world(64);
  MissCurve curve;
  for (uint64_t page = 0; page < 10; ++page) world.ghosts.left(PageId{page});
  world.ghosts.left(PageId{3});  // twice: it counts once
  EXPECT_EQ(world.ghosts.count(), 10u);
  world.ghosts.forget(PageId{9});
  world.ghosts.forget(PageId{77});
  world.ghosts.came(PageId{8}, 100, nullptr);
  EXPECT_EQ(world.ghosts.count(), 8u);
  EXPECT_TRUE(curve.is_empty());
  for (int i = 0; i < 100; ++i) world.ghosts.came(PageId{9}, 100, &curve);
  EXPECT_FALSE(curve.is_empty());
  EXPECT_EQ(curve.point(MissCurve::kStepCount - 1, 0, 0, 100).misses, 100u);
}

}  // namespace
}  // namespace cache
