#include "cache/pages/page_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cache {
namespace {

class PageMapTest : public testing::Test {
 protected:
  static constexpr uint64_t kPages = 100'000;
  PageMapTest() {
    EXPECT_TRUE(directory.open(kPages));
    EXPECT_TRUE(map.open(directory, kPages / kGroupPages + 1, budget));
  }
  ~PageMapTest() override {
    map.close();
    directory.close();
  }
  Budget budget;
  PageDirectory directory;
  PageMap map;
};

TEST_F(PageMapTest, KnowsNothingAtFirst) {
  for (uint64_t page : {uint64_t{0}, uint64_t{1}, kPages - 1}) {
    EXPECT_EQ(map.find(PageId{page}).frame, base::kNoFrame);
    EXPECT_EQ(map.find(PageId{page}).place, base::kNoPlace);
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST_F(PageMapTest, APageHasAFrameOrAPlace) {
  map.set_frame(PageId{17}, FrameId{0});
  EXPECT_EQ(map.find(PageId{17}).frame, FrameId{0});
  EXPECT_EQ(map.find(PageId{17}).place, base::kNoPlace);
  map.set_place(PageId{17}, PlaceId{0});
  EXPECT_EQ(map.find(PageId{17}).frame, base::kNoFrame);
  EXPECT_EQ(map.find(PageId{17}).place, PlaceId{0});
  EXPECT_EQ(map.find(PageId{16}).place, base::kNoPlace);
  EXPECT_EQ(map.find(PageId{18}).place, base::kNoPlace);
  map.erase(PageId{17});
  EXPECT_EQ(map.find(PageId{17}).place, base::kNoPlace);
}

TEST_F(PageMapTest, TheLargestNumbersFit) {
  const FrameId frame{(uint32_t{1} << 30) - 1};
  const PlaceId place{(uint32_t{1} << 31) - 3};
  map.set_frame(PageId{3}, frame);
  map.set_place(PageId{4}, place);
  EXPECT_EQ(map.find(PageId{3}).frame, frame);
  EXPECT_EQ(map.find(PageId{4}).place, place);
  EXPECT_DEATH(map.set_place(PageId{4}, base::kNoPlace), "kIsFrame");
  EXPECT_DEATH(map.set_frame(PageId{4}, base::kNoFrame), "kIsFrame");
}

TEST_F(PageMapTest, TheLastPageOfAGroupAndTheFirstOfTheNextAreApart) {
  map.set_place(PageId{15}, PlaceId{1});
  map.set_place(PageId{16}, PlaceId{2});
  map.erase(PageId{15});
  EXPECT_EQ(directory.leaf_of(PageId{15}), 0u);
  EXPECT_EQ(map.find(PageId{16}).place, PlaceId{2});
}

TEST_F(PageMapTest, ErasedGroupsAreUsedAgain) {
  for (uint64_t round = 0; round < 5; ++round) {
    for (uint64_t group = 0; group < 100; ++group)
      map.set_place(PageId{(group + round) * 16 + group % 16}, PlaceId{7});
    for (uint64_t group = 0; group < 100; ++group) {
      map.erase(PageId{(group + round) * 16 + group % 16});
      map.erase(PageId{(group + round) * 16});  // not there: nothing happens
    }
  }
  EXPECT_EQ(budget.used_bytes(), 100 * 64u);
}

TEST_F(PageMapTest, AgreesWithAModel) {
  std::map<uint64_t, PageMap::Where> model;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t drawn = random();
    const uint64_t page = (drawn >> 40) % 600 + (drawn % 2 == 0 ? 0 : kPages - 600);
    const auto number = static_cast<uint32_t>(drawn >> 20) & 0xffff;
    switch (drawn >> 8 & 3) {
      case 0:
        map.set_frame(PageId{page}, FrameId{number});
        model[page] = {.frame = FrameId{number}};
        break;
      case 1:
        map.set_place(PageId{page}, PlaceId{number});
        model[page] = {.place = PlaceId{number}};
        break;
      default: map.erase(PageId{page}); model.erase(page);
    }
    const uint64_t other = page ^ 1;
    const auto expected = model.contains(other) ? model[other] : PageMap::Where{};
    ASSERT_EQ(map.find(PageId{other}).frame, expected.frame);
    ASSERT_EQ(map.find(PageId{other}).place, expected.place);
  }
  for (uint64_t page = 0; page < kPages; ++page) {
    const auto expected = model.contains(page) ? model[page] : PageMap::Where{};
    ASSERT_EQ(map.find(PageId{page}).frame, expected.frame);
    ASSERT_EQ(map.find(PageId{page}).place, expected.place);
  }
}

}  // namespace
}  // namespace cache
