// Images that no index can have had: refused, or an index that is whole.
#include <algorithm>
#include <random>

#include "kv/testing/test_effort.h"
#include "kv/testing/test_index_image.h"

namespace kv {
namespace {

class HostileImageTest : public IndexImageTest {
 protected:
  HostileImageTest() {
    insert_keys(0, 60'000);
    images = all_images();
  }
  int error_of() {
    Restored made(*Index::open(kAddressBits));
    for (const auto& image : images)
      if (const auto done = restore_image(*made, *image); !done) return done.error().number;
    const auto done = finish_restore(*made, [](uint64_t, uint32_t) { return true; });
    if (!done) return done.error().number;
    made->verify();
    return 0;
  }
  // The first slot of the first image that is free, or that is not.
  uint64_t& slot(bool is_free) {
    return *std::ranges::find_if(images[0]->slots, [&](uint64_t entry) { return (entry == 0) == is_free; });
  }

  Images images;
};

TEST_F(HostileImageTest, WhatNoTableCanHoldIsRefused) {
  ASSERT_EQ(error_of(), 0);
  const TableImage good = *images[0];
  slot(false) &= ~uint64_t{0} >> EntryFormat(kAddressBits).tag_bits();
  EXPECT_EQ(error_of(), EBADMSG) << "no tag";
  *images[0] = good;
  images[0]->shape.depths[0] = kAbsent;
  EXPECT_EQ(error_of(), EBADMSG) << "of a region that is not there";
  for (uint32_t i = 0; i < kRegionSlots; ++i) images[0]->slots[i] = 0;
  for (uint32_t i = 0; i < kNeighbourhood; ++i) images[0]->slots[kRegionSlots + i] = 0;
  EXPECT_EQ(error_of(), 0);
  *images[0] = good;
  for (uint8_t& depth : images[0]->shape.depths) depth = kAbsent;
  EXPECT_EQ(error_of(), EBADMSG) << "nothing";
  *images[0] = good;
  images[0]->shape.depths[3] = kMaxDepth;
  EXPECT_EQ(error_of(), EBADMSG) << "deeper than any";
  *images[0] = good;
  images[0]->shape.prefix = 4;
  EXPECT_EQ(error_of(), EBADMSG) << "a prefix of three bits, chosen by two";
  *images[0] = good;
  images.push_back(std::make_unique<TableImage>(good));
  EXPECT_EQ(error_of(), EBADMSG) << "twice";
}

// The first table's split has not ended, but its child has been split.
TEST_F(HostileImageTest, SplitsThatCannotBeAtOneTimeAreEnded) {
  images.clear();
  for (uint64_t prefix : {0, 1, 3}) {
    images.push_back(std::make_unique<TableImage>());
    images.back()->shape.prefix = prefix;
  }
  const auto depths = [&](int number, uint8_t first, uint8_t second, uint8_t others) {
    for (uint8_t& depth : images[number]->shape.depths) depth = others;
    images[number]->shape.depths[0] = first;
    images[number]->shape.depths[1] = second;
  };
  depths(0, 0, 1, 1);
  depths(1, kAbsent, 2, 1);
  depths(2, kAbsent, 2, kAbsent);
  const Restored made = restore(images);
  ASSERT_TRUE(made);
  TableImage image;
  ASSERT_TRUE(made->image(0, image));
  EXPECT_EQ(image.shape.depths[0], 1);
  ASSERT_TRUE(made->image(1, image));
  EXPECT_EQ(image.shape.depths[0], 1);
  EXPECT_EQ(image.shape.depths[1], 2);
}

TEST_F(HostileImageTest, ImagesThatNeedMoreTablesThanTheyAreAreRefused) {
  images.resize(1);
  for (int bit = 46; bit > 40; --bit)
    for (int other = 0; other < 40; ++other) {
      images.push_back(std::make_unique<TableImage>());
      images.back()->shape.prefix = uint64_t{1} << bit | uint64_t{1} << other;
      for (uint8_t& depth : images.back()->shape.depths) depth = kMaxDepth - 1;
    }
  EXPECT_EQ(error_of(), ENOMEM);
}

TEST_F(HostileImageTest, WhateverAnImageHoldsTheIndexIsWholeOrRefused) {
  std::mt19937_64 random(11);
  int refused = 0, done = 0;
  const Images good = all_images();
  for (uint64_t round = 0; round < 300 / kEffortParts; ++round) {
    images.clear();
    for (const auto& image : good)
      if (random() % 8 != 0) images.push_back(std::make_unique<TableImage>(*image));
    for (const auto& image : images) {
      const unsigned what = random() % 8;
      if (what == 0) image->shape.depths[random() % kRegions] = static_cast<uint8_t>(random() % 5);
      if (what == 1) image->shape.depths[random() % kRegions] = static_cast<uint8_t>(random() % 50);
      if (what == 2) image->shape.prefix = random() % 8;
      if (what == 3) {
        const uint64_t lost = random() % kSlots;
        for (uint32_t i = 0; i < kSlots / 2; ++i) image->slots[slot_at(static_cast<uint32_t>(lost), i)] = 0;
      }
      // Entries anywhere, with tags of any length.
      if (what == 4)
        for (int i = 0; i < 1'000; ++i) image->slots[random() % kSlots] = random() >> random() % 8;
      if (what == 5) std::ranges::fill(image->slots, random());
    }
    std::shuffle(images.begin(), images.end(), random);
    (error_of() == 0 ? done : refused) += 1;
  }
  EXPECT_GT(refused, 5);
  EXPECT_GT(done, 5);
}

}  // namespace
}  // namespace kv
