#include "spill/shared_ranges.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>

#include "base/ids.h"

namespace spill {
namespace {

constexpr uint64_t kPage = base::kOsPageBytes;

// What is recorded, by OS page.
std::set<uint64_t> pages_of(const SharedRanges& ranges) {
  std::set<uint64_t> pages;
  for (size_t i = 0; i < ranges.count(); ++i) {
    EXPECT_LT(ranges[i].begin, ranges[i].end);
    if (i > 0) EXPECT_LE(ranges[i - 1].end, ranges[i].begin);
    for (uint64_t at = ranges[i].begin; at < ranges[i].end; at += kPage) pages.insert(at);
  }
  EXPECT_EQ(ranges.bytes(), pages.size() * kPage);
  return pages;
}

TEST(SharedRanges, AreWhatWasAddedAndNotRemoved) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 50; ++turn) {
    auto ranges = std::make_unique<SharedRanges>();
    std::set<uint64_t> expected;
    for (int step = 0; step < 60; ++step) {
      const uint64_t begin = random() % 64 * kPage, end = begin + (1 + random() % 20) * kPage;
      ranges->remove(begin, end);
      for (uint64_t at = begin; at < end; at += kPage) expected.erase(at);
      if (random() % 2 != 0) {
        ASSERT_TRUE(ranges->add({begin, end}));
        for (uint64_t at = begin; at < end; at += kPage) expected.insert(at);
      }
      ASSERT_EQ(pages_of(*ranges), expected);
      const uint64_t address = random() % 90 * kPage;
      const SharedRange* found = ranges->at_or_above(address);
      const auto first = expected.lower_bound(address);
      ASSERT_EQ(found == nullptr, first == expected.end());
      if (found != nullptr) EXPECT_EQ(found->begin > address ? found->begin : address, *first);
    }
  }
}

TEST(SharedRanges, NoRoomIsNoError) {
  auto ranges = std::make_unique<SharedRanges>();
  for (size_t i = 0; i < SharedRanges::kMax; ++i)
    ASSERT_TRUE(ranges->add({i * 8 * kPage, (i * 8 + 5) * kPage}));
  EXPECT_FALSE(ranges->add({5 * kPage, 6 * kPage}));
  ranges->remove(9 * kPage, 10 * kPage);  // its second part has no room
  EXPECT_EQ(ranges->count(), SharedRanges::kMax);
  EXPECT_EQ(ranges->at_or_above(9 * kPage)->begin, 16 * kPage);
  ranges->remove(0, 5 * kPage);
  EXPECT_TRUE(ranges->add({kPage, 2 * kPage}));
}

}  // namespace
}  // namespace spill
