// Images of the index's tables, and indexes restored from them.
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "kv/testing/test_effort.h"
#include "kv/testing/test_index_image.h"

namespace kv {
namespace {

TEST_F(IndexImageTest, AnIndexIsRestoredAsItWas) {
  int halves = 0;
  uint64_t moved = 0;
  for (uint64_t i = 0; i < 150'000; ++i) {
    insert_keys(i, i + 1);
    // From time to time, and in the middle of splits.
    const IndexCounts counts = index->counts();
    const bool is_half = counts.regions_moved != moved && counts.regions_moved % kRegions == 3;
    moved = counts.regions_moved;
    if (i % 9'001 != 0 && !is_half) continue;
    halves += is_half;
    const Images images = all_images();
    const Restored made = restore(images);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->counts().entries, i + 1);
    EXPECT_EQ(made->counts().tables, counts.tables);
    Images again;
    TableImage image;
    for (uint32_t number = 0; number < made->table_count(); ++number)
      if (made->image(number, image)) again.push_back(std::make_unique<TableImage>(image));
    expect_same(images, again);
    // Splits that had begun go on.
    for (uint64_t more = i + 1; more < i + 20'000; ++more) ASSERT_TRUE(insert(*made, hash_of(more), more));
    made->verify();
  }
  EXPECT_GT(halves, 3);
}

TEST_F(IndexImageTest, ARestoredIndexGrowsAndShrinks) {
  constexpr uint64_t kKeys = 200'000;
  insert_keys(0, kKeys);
  for (uint64_t i = 0; i < kKeys; i += 5) ASSERT_TRUE(index->remove(hash_of(i), i));
  std::vector<uint64_t> sizes(1 << 4);
  const Restored made = restore(all_images(), [&](uint64_t address, uint32_t size) {
    sizes[address >> 20] += size_code::grains(size);
    return address % 5 != 1;
  });
  ASSERT_TRUE(made);
  EXPECT_EQ(sizes[0], kKeys * 4 / 5 * kSize);
  EXPECT_EQ(made->counts().entries, kKeys * 3 / 5);
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_EQ(times_found(*made, hash_of(i), i), i % 5 > 1) << i;
  const uint64_t tables = made->counts().tables;
  for (uint64_t i = kKeys; i < 3 * kKeys; ++i) ASSERT_TRUE(insert(*made, hash_of(i), i));
  made->verify();
  EXPECT_GT(made->counts().tables, 2 * tables);
  for (uint64_t i = 0; i < 3 * kKeys; ++i)
    ASSERT_EQ(times_found(*made, hash_of(i), i), i >= kKeys || i % 5 > 1) << i;
  for (uint64_t i = 0; i < 3 * kKeys; ++i)
    ASSERT_EQ(made->remove(hash_of(i), i), i >= kKeys || i % 5 > 1) << i;
  made->verify();
  EXPECT_EQ(made->counts().entries, 0u);
  EXPECT_LE(made->counts().tables, 2u);
}

// The first table's image is from before much growth, the others' from after it.
TEST_F(IndexImageTest, WhatSplitsHaveMovedMeanwhileIsThereOnce) {
  for (uint64_t before : {1'000, 30'000, 31'500, 33'000, 60'000, 64'000}) {
    for (uint64_t more : {300, 3'000, 40'000, 100'000}) {
      index->close();
      index = *Index::open(kAddressBits);
      insert_keys(0, before);
      Images images;
      index->begin_images();
      add_images(images, 0, 1);
      insert_keys(before, before + more);
      add_images(images, 1, ~0u);
      index->end_images();
      for (bool is_reversed : {false, true}) {
        if (is_reversed) std::reverse(images.begin(), images.end());
        const Restored made = restore(images, [&](uint64_t address, uint32_t) { return address < before; });
        ASSERT_TRUE(made);
        EXPECT_EQ(made->counts().entries, before) << more;
        for (uint64_t i = 0; i < before; ++i) ASSERT_EQ(times_found(*made, hash_of(i), i), 1) << i;
      }
    }
  }
}

TEST_F(IndexImageTest, EachImageMayBeOfAnotherTime) {
  constexpr uint64_t kKeys = 30'000;
  for (uint64_t more : {20'000, 40'000, 70'000}) {
    index->close();
    index = *Index::open(kAddressBits);
    insert_keys(0, kKeys);
    uint64_t next = kKeys;
    Images images;
    index->begin_images();
    for (uint32_t number = 0; number < index->table_count(); ++number) {
      add_images(images, number, number + 1);
      if (next > 400'000) continue;
      insert_keys(next, next + more);
      next += more;
    }
    index->end_images();
    EXPECT_GT(images.size(), 3u);
    const Restored made = restore(images, [&](uint64_t address, uint32_t) { return address < kKeys; });
    ASSERT_TRUE(made);
    EXPECT_EQ(made->counts().entries, kKeys);
    for (uint64_t i = 0; i < kKeys; ++i) ASSERT_EQ(times_found(*made, hash_of(i), i), 1) << i;
  }
}

TEST_F(IndexImageTest, TablesAreMergedWhenImagesHaveBeenTaken) {
  insert_keys(0, 200'000);
  index->begin_images();
  const uint64_t tables = index->counts().tables;
  for (uint64_t i = 0; i < 200'000; ++i) ASSERT_TRUE(index->remove(hash_of(i), i));
  EXPECT_EQ(index->counts().tables, tables);
  index->end_images();
  index->verify();
  EXPECT_EQ(index->counts().tables, 1u);
  insert_keys(0, 1000);
  EXPECT_EQ(all_images().size(), 1u) << "those that are merged take no room";
}

TEST_F(IndexImageTest, MergesThatAreUnderWayBecomeSplits) {
  insert_keys(0, 40'000);
  uint64_t i = 0;
  TableImage image;
  // A merge is under way once the second table has lost a region.
  const auto remove_until_one_moves = [&] {
    for (const uint64_t moved = index->counts().regions_moved;
         i < 40'000 && index->counts().regions_moved == moved; ++i)
      ASSERT_TRUE(index->remove(hash_of(i), i));
    ASSERT_TRUE(index->image(1, image));
  };
  while (i == 0 || (i < 40'000 && image.shape.present() == 0xff)) remove_until_one_moves();
  ASSERT_LT(i, 40'000u);
  index->begin_images();
  while (i < 40'000) {
    const uint32_t present = image.shape.present();
    remove_until_one_moves();
    ASSERT_EQ(image.shape.present() & present, present);
  }
  EXPECT_EQ(image.shape.present(), 0xffu);
  index->verify();
  index->end_images();
}

// A table's split cannot go on if an entry has no bit left: it is restored half done.
TEST_F(IndexImageTest, ASplitThatIsStuckStaysSo) {
  index->close();
  index = *Index::open(40);
  std::mt19937_64 random(5);
  std::vector<uint64_t> hashes;
  // Tags have 8 bits, and the hashes zeros where growth takes its bits: splits separate nothing until these bits are used up.
  const auto put = [&](uint32_t home, uint32_t homes) {
    const uint64_t hash = random() << (kHomeBits + 10) | (home + random() % homes);
    if (!insert(*index, hash, hashes.size())) return false;
    hashes.push_back(hash);
    return true;
  };
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(put(3 * kRegionSlots, 4'000));
  const size_t old = hashes.size();
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(put(kRegionSlots, 4'000));
  while (put(0, 4'000)) {
  }
  for (size_t i = old; i < hashes.size(); ++i) ASSERT_TRUE(index->replace(hashes[i], i, i, kSize));
  while (put(0, 4'000)) {
  }
  index->verify();
  const Images images = all_images();
  ASSERT_EQ(images[0]->shape.depths[0], 9);
  ASSERT_EQ(images[0]->shape.depths[3], 8);
  const Restored made = restore(images, [](uint64_t, uint32_t) { return true; }, 40);
  ASSERT_TRUE(made);
  TableImage image;
  EXPECT_TRUE(made->image(0, image));
  EXPECT_EQ(memcmp(image.shape.depths, images[0]->shape.depths, kRegions), 0);
  EXPECT_EQ(made->counts().entries, hashes.size());
  for (size_t i = 0; i < hashes.size(); ++i) ASSERT_EQ(times_found(*made, hashes[i], i), 1) << i;
}

// Keys that stay are in every set of images, while threads make the index grow; everything else in an image is a key where it belongs.
TEST_F(IndexImageTest, ImagesBesideThreadsHoldWhatStays) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(setting("SPILLWAY_TEST_SECONDS", 4));
  constexpr uint64_t kStay = 20'000, kOwn = 150'000, kReplaced = 1 << 23;
  constexpr int kWriters = 3;
  const EntryFormat format(kAddressBits);
  std::vector<uint64_t> sizes(2);
  uint64_t sets = 0;
  while (std::chrono::steady_clock::now() < end || sets <= 3) {
    index->close();
    index = *Index::open(kAddressBits);
    insert_keys(0, kStay);
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int number = 0; number < kWriters; ++number)
      threads.emplace_back([&, number] {
        const uint64_t first = kStay + number * kOwn;
        for (uint64_t i = first; i < first + kOwn && !over; ++i) {
          EXPECT_TRUE(insert(*index, hash_of(i), i));
          if (i % 3 == 0) EXPECT_TRUE(index->replace(hash_of(i), i, i + kReplaced, kSize));
          // Half of what was put in a while ago is removed.
          const uint64_t old = i - 1000;
          if (i >= first + 1000 && i % 2 == 0)
            EXPECT_TRUE(index->remove(hash_of(old), old % 3 == 0 ? old + kReplaced : old));
        }
        // The first one to finish ends them all: no images are taken of an index at rest.
        over = true;
      });
    while (!over) {
      const Images images = all_images();
      for (const auto& image : images)
        for (uint32_t slot = 0; slot < kSlots; ++slot) {
          const uint64_t entry = image->slots[slot];
          if (entry == 0) continue;
          const uint64_t hash = hash_of(format.address(entry) % kReplaced);
          const uint32_t home = slot_at(slot, kSlots - EntryFormat::offset(entry));
          const unsigned depth = image->shape.depths[region_of(home)];
          const uint64_t prefix = hash >> kHomeBits & ((uint64_t{1} << depth) - 1);
          ASSERT_TRUE(home == home_of(hash) && prefix == image->shape.prefix);
          ASSERT_TRUE(format.matches(entry, hash >> (kHomeBits + depth)));
        }
      const Restored made = restore(images, [&](uint64_t address, uint32_t) { return address < kStay; });
      ASSERT_TRUE(made);
      EXPECT_EQ(made->counts().entries, kStay);
      for (uint64_t i = 0; i < kStay; ++i) ASSERT_EQ(times_found(*made, hash_of(i), i), 1) << i;
      ++sets;
    }
    for (auto& thread : threads) thread.join();
    index->verify();
  }
}

}  // namespace
}  // namespace kv
