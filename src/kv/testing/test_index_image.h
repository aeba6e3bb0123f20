// For tests: an index, images of its tables, and indexes that are restored from images.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/mix.h"
#include "kv/index/index.h"
#include "kv/testing/test_restore.h"

namespace kv {

class IndexImageTest : public testing::Test {
 protected:
  using Images = std::vector<std::unique_ptr<TableImage>>;

  static constexpr unsigned kAddressBits = 24;
  static constexpr uint32_t kSize = 3;

  IndexImageTest() : index(*Index::open(kAddressBits)) {}
  ~IndexImageTest() override { index->close(); }

  struct Close {
    void operator()(Index* closed) const { closed->close(); }
  };
  using Restored = std::unique_ptr<Index, Close>;

  static uint64_t hash_of(uint64_t i) { return base::mix(i); }
  static bool insert(Index& to, uint64_t hash, uint64_t address) {
    std::vector<uint64_t> known;
    for (;;) {
      const auto done = to.insert(hash, address, kSize, known);
      if (done != Index::Inserted::kOther) return done == Index::Inserted::kDone;
      Location found[Index::kMaxCandidates];
      const size_t count = to.find_all(hash, found);
      known.clear();
      for (size_t i = 0; i < count; ++i) known.push_back(found[i].address);
    }
  }
  void insert_keys(uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) ASSERT_TRUE(insert(*index, hash_of(i), i));
  }
  static int times_found(const Index& in, uint64_t hash, uint64_t address) {
    Location found[Index::kMaxCandidates];
    const size_t count = in.find_all(hash, found);
    return static_cast<int>(
        std::count_if(found, found + count, [&](const Location& one) { return one.address == address; }));
  }

  void add_images(Images& images, uint32_t begin, uint32_t end) {
    for (uint32_t number = begin; number < end && number < index->table_count(); ++number) {
      auto image = std::make_unique<TableImage>();
      if (index->image(number, *image)) images.push_back(std::move(image));
    }
  }
  Images all_images() {
    Images images;
    index->begin_images();
    add_images(images, 0, ~0u);
    index->end_images();
    return images;
  }
  // Null: the images were refused.
  template <class Stays>
  static Restored restore(const Images& images, const Stays& stays, unsigned address_bits = kAddressBits) {
    Restored made(*Index::open(address_bits));
    for (const auto& image : images)
      if (!restore_image(*made, *image)) return nullptr;
    if (!finish_restore(*made, stays)) return nullptr;
    made->verify();
    return made;
  }
  static Restored restore(const Images& images) {
    return restore(images, [](uint64_t, uint32_t) { return true; });
  }
  static void expect_same(const Images& left, const Images& right) {
    ASSERT_EQ(left.size(), right.size());
    for (size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i]->shape.prefix, right[i]->shape.prefix);
      EXPECT_EQ(memcmp(left[i]->shape.depths, right[i]->shape.depths, kRegions), 0) << i;
      EXPECT_EQ(memcmp(left[i]->slots, right[i]->slots, sizeof left[i]->slots), 0) << i;
    }
  }

  Index* index;
};

}  // namespace kv
