#include "cache/pages/places.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

namespace cache {
namespace {

TEST(Places, HandsOutEveryPlaceOnceAndThenNone) {
  for (uint32_t limit : {0u, 1u, 7u, 16u, 40u, 64u, 65u, 5000u}) {
    Places places;
    ASSERT_TRUE(places.open(limit));
    std::set<uint32_t> seen;
    for (uint32_t i = 0; i < limit; ++i) {
      const PlaceId place = places.take(PageId{i * 13}, base::kNoPlace);
      ASSERT_NE(place, base::kNoPlace) << i << " of " << limit;
      ASSERT_LT(index(place), limit);
      ASSERT_TRUE(seen.insert(index(place)).second);
    }
    EXPECT_EQ(places.used_count(), limit);
    EXPECT_EQ(places.take(PageId{0}, base::kNoPlace), base::kNoPlace);
    EXPECT_EQ(places.take(PageId{0}, PlaceId{0}), base::kNoPlace);
    if (limit > 0) {
      places.give_back(PlaceId{limit / 2});
      EXPECT_EQ(places.take(PageId{0}, base::kNoPlace), PlaceId{limit / 2});
    }
    places.close();
  }
}

TEST(Places, NeighboursGetNeighbouringPlaces) {
  Places places;
  ASSERT_TRUE(places.open(4096));
  PlaceId before = places.take(PageId{32}, base::kNoPlace);
  EXPECT_EQ(index(before) % Places::kRunPlaces, 0u);
  for (uint32_t page = 33; page < 48; ++page) {
    const PlaceId place = places.take(PageId{page}, PlaceId{index(before) + 1});
    EXPECT_EQ(index(place), index(before) + 1);
    before = place;
  }
  // A lone page leaves room for the pages around it.
  EXPECT_EQ(index(places.take(PageId{100}, base::kNoPlace)) % Places::kRunPlaces, 100 % Places::kRunPlaces);
  places.close();
}

TEST(Places, SparsePagesCostAtMostTwiceTheirSizeAndABit) {
  Places places;
  ASSERT_TRUE(places.open(1 << 20));
  uint32_t highest = 0;
  for (uint32_t i = 0; i < 100'000; ++i)
    highest = std::max(highest, index(places.take(PageId{uint64_t{i} * 16}, base::kNoPlace)));
  EXPECT_LT(highest, 2 * 100'000u + 3 * 64 * Places::kRunPlaces);
  places.close();
}

TEST(PlacesDeathTest, GivingBackWhatIsNotTakenDies) {
  Places places;
  ASSERT_TRUE(places.open(100));
  const PlaceId place = places.take(PageId{0}, base::kNoPlace);
  places.give_back(place);
  EXPECT_DEATH(places.give_back(place), "is_used");
  EXPECT_DEATH(places.give_back(PlaceId{99}), "end_");
  places.close();
}

TEST(Places, AgreesWithAModel) {
  constexpr uint32_t kLimit = 300;
  Places places;
  ASSERT_TRUE(places.open(kLimit));
  std::set<uint32_t> taken;
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t drawn = random();
    if ((drawn >> 20) % 1000 < (i / 20'000 % 2 == 0 ? 600 : 400)) {
      const PlaceId wish =
          drawn % 2 == 0 ? base::kNoPlace : PlaceId{static_cast<uint32_t>(drawn >> 40) % 400};
      const PlaceId place = places.take(PageId{drawn >> 32}, wish);
      ASSERT_EQ(place == base::kNoPlace, taken.size() == kLimit);
      if (place == base::kNoPlace) continue;
      ASSERT_LT(index(place), kLimit);
      ASSERT_TRUE(taken.insert(index(place)).second);
    } else if (!taken.empty()) {
      auto it = taken.lower_bound(static_cast<uint32_t>(drawn >> 40) % kLimit);
      if (it == taken.end()) it = taken.begin();
      places.give_back(PlaceId{*it});
      taken.erase(it);
    }
    ASSERT_EQ(places.used_count(), taken.size());
  }
  places.close();
}

TEST(Places, GarbageIsWhatWasGivenBackInWholeRuns) {
  Places places;
  ASSERT_TRUE(places.open(200));
  for (uint32_t i = 0; i < 96; ++i) places.take(PageId{i}, PlaceId{i});
  EXPECT_EQ(places.used_count(), 96u);
  EXPECT_EQ(places.take_garbage(64).count, 0u);
  for (uint32_t i = 0; i < 96; ++i)
    if (i != 40) places.give_back(PlaceId{i});
  EXPECT_EQ(places.garbage_count(), 95u);
  uint32_t found = 0;
  std::set<uint32_t> discarded;
  for (;;) {
    const Places::Run run = places.take_garbage(32);
    if (run.count == 0) break;
    EXPECT_LE(run.count, 32u);
    EXPECT_EQ(run.count % Places::kRunPlaces, 0u);
    for (uint32_t i = 0; i < run.count; ++i) {
      EXPECT_TRUE(discarded.insert(index(run.first) + i).second) << "twice";
      EXPECT_NE(places.take(PageId{0}, PlaceId{index(run.first) + i}), PlaceId{index(run.first) + i})
          << "under way";
    }
    places.give_back_discarded(run);
    ASSERT_LT(++found, 10u) << "discarded for ever";
  }
  EXPECT_FALSE(discarded.contains(40));
  EXPECT_GE(discarded.size(), 48u);
  places.close();
}

TEST(Places, RunsAreNeighboursThatNobodyHas) {
  Places places;
  ASSERT_TRUE(places.open(100'000));
  std::set<uint32_t> taken;
  for (uint32_t n : {64u, 1u, 17u, 64u}) {
    const Places::Run run = places.take_run(n);
    ASSERT_EQ(run.count, n);
    for (uint32_t i = 0; i < n; ++i) ASSERT_TRUE(taken.insert(index(run.first) + i).second);
  }
  EXPECT_EQ(places.used_count(), taken.size());
  EXPECT_EQ(places.move_count(), 4u);
  places.close();
}

// Randomly chosen pages keep moving: what that costs in storage, and what it saves in Ios.
TEST(Places, MovingPagesNeedTwiceTheirSizeAndFindRuns) {
  constexpr uint32_t kPages = 20'000;
  constexpr uint32_t kBatch = 64;
  Places places;
  ASSERT_TRUE(places.open(1 << 20));
  std::vector<PlaceId> place(kPages);
  for (uint32_t i = 0; i < kPages; ++i) place[i] = places.take(PageId{i}, PlaceId{i});
  uint32_t highest = 0;
  uint32_t runs = 0;
  uint32_t moved = 0;
  std::mt19937_64 random(1);
  for (uint32_t turn = 0; turn < 10 * kPages / kBatch; ++turn) {
    std::vector<std::pair<uint32_t, PlaceId>> next;
    while (next.size() < kBatch) {
      const Places::Run run = places.take_run(kBatch - static_cast<uint32_t>(next.size()));
      if (run.count == 0) break;
      ++runs;
      for (uint32_t i = 0; i < run.count; ++i) {
        next.push_back({static_cast<uint32_t>(random() % kPages), PlaceId{index(run.first) + i}});
        highest = std::max(highest, index(run.first) + i);
      }
    }
    moved += static_cast<uint32_t>(next.size());
    for (auto [page, to] : next) {
      places.give_back(place[page]);
      place[page] = to;
    }
  }
  EXPECT_LT(highest, 2 * kPages + 2 * Places::kSlackPlaces);
  EXPECT_GT(moved, 9 * kPages);
  EXPECT_LT(runs * 4, moved);
  EXPECT_EQ(places.used_count(), kPages);
  places.close();
}

TEST(Places, RoomForFirstWritesIsNotTakenByMoves) {
  constexpr uint32_t kLimit = 3000;
  Places places;
  ASSERT_TRUE(places.open(kLimit));
  for (uint32_t i = 0; i < kLimit; ++i) places.take(PageId{i}, PlaceId{i});
  for (uint32_t i = 0; i < kLimit / 4; ++i) places.give_back(PlaceId{i});
  EXPECT_EQ(places.take_run(8).count, 0u);
  for (uint32_t i = kLimit / 4; i < kLimit / 2; ++i) places.give_back(PlaceId{i});
  EXPECT_EQ(places.take_run(8).count, 8u);
  places.close();
}

TEST(Places, APauseEnds) {
  Places places;
  ASSERT_TRUE(places.open(100'000));
  places.pause_moves();
  EXPECT_EQ(places.take_run(8).count, 0u);
  int turns = 0;
  while (places.take_run(8).count == 0) ASSERT_LT(++turns, 1000);
  EXPECT_GE(turns, 8);
  places.close();
}

TEST(Places, MovesAloneLeaveGarbageToMoveTo) {
  Places places;
  ASSERT_TRUE(places.open(100'000));
  std::vector<PlaceId> place(10'000);
  for (uint32_t i = 0; i < place.size(); ++i) place[i] = places.take(PageId{i}, PlaceId{i});
  for (uint64_t i = 0; i < 5 * place.size();) {
    const Places::Run run = places.take_run(64);
    ASSERT_GT(run.count, 0u);
    for (uint32_t n = 0; n < run.count; ++n, ++i) {
      PlaceId& of_page = place[i * 7919 % place.size()];
      places.give_back(of_page);
      of_page = PlaceId{index(run.first) + n};
    }
    ASSERT_FALSE(places.too_much_garbage()) << i;
  }
  EXPECT_GT(places.garbage_count(), 8'000u);
  for (uint32_t i = 0; i < 8'000; ++i) places.give_back(place[i]);
  EXPECT_TRUE(places.too_much_garbage());
  places.close();
}

}  // namespace
}  // namespace cache
