#include "persist/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace persist {
namespace {

struct LaidOut {
  size_t bytes = 0;
  std::vector<size_t> offsets;
};
LaidOut lay_out(const std::vector<size_t>& parts, size_t alignment = 8) {
  LaidOut result;
  result.offsets.resize(parts.size());
  result.bytes = persist::lay_out(std::span(parts), alignment, std::span(result.offsets));
  return result;
}

size_t lines_of(size_t offset, size_t bytes) {
  return bytes == 0 ? 0 : (offset + bytes - 1) / 64 - offset / 64 + 1;
}

TEST(Layout, AKeyAndItsValueShareALine) {
  const LaidOut both = lay_out({24, 40});
  EXPECT_EQ(both.bytes, 64u);
  EXPECT_EQ(both.offsets[1], 0u);
  EXPECT_EQ(both.offsets[0], 40u);
}

TEST(Layout, TheRestOfALargePartsLastLineIsUsed) {
  const LaidOut both = lay_out({16, 100});
  EXPECT_EQ(both.bytes, 128u);
  EXPECT_EQ(both.offsets[1], 0u);
  EXPECT_EQ(both.offsets[0], 104u);
}

TEST(Layout, FewerLinesCountMoreThanPartsInOneEach) {
  EXPECT_EQ(lay_out({40, 40, 40}).bytes, 128u);
  // With as many lines either way, none crosses.
  const LaidOut apart = lay_out({40, 40});
  EXPECT_EQ(apart.bytes, 128u);
  EXPECT_EQ(lines_of(apart.offsets[0], 40), 1u);
  EXPECT_EQ(lines_of(apart.offsets[1], 40), 1u);
}

TEST(Layout, RefusesWhatItCannotDo) {
  EXPECT_EQ(lay_out({8}, 0).bytes, 0u);
  EXPECT_EQ(lay_out({8}, 12).bytes, 0u);
  EXPECT_EQ(lay_out({8}, 128).bytes, 0u);
  EXPECT_EQ(lay_out(std::vector<size_t>(65, 8)).bytes, 0u);
  EXPECT_EQ(lay_out({SIZE_MAX / 2, SIZE_MAX / 2}).bytes, 0u);
  EXPECT_EQ(lay_out({}).bytes, 0u);
}

// A part goes into the smallest rest that fits: then two others have room together in the larger one.
TEST(Layout, SmallPartsFillWhatIsLeft) {
  const std::vector<size_t> parts = {40, 32, 24, 16, 16};
  const LaidOut all = lay_out(parts);
  EXPECT_EQ(all.bytes, 128u);
  for (size_t i = 0; i < parts.size(); ++i)
    EXPECT_EQ(all.offsets[i] / 64, (all.offsets[i] + parts[i] - 1) / 64) << i;
}

// Parts of any sizes do not overlap, are aligned, and take no more lines than if they lay one after the other by size.
TEST(Layout, PartsOfAnySize) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<size_t> parts(random() % 12);
    for (size_t& part : parts) part = random() % (random() % 8 == 0 ? 500 : 90);
    const size_t alignment = size_t{1} << random() % 7;
    const LaidOut all = lay_out(parts, alignment);
    std::vector<std::pair<size_t, size_t>> places;
    size_t dense = 0;
    std::vector<size_t> sorted = parts;
    std::sort(sorted.rbegin(), sorted.rend());
    for (const size_t part : sorted) dense = (dense + alignment - 1) / alignment * alignment + part;
    for (size_t i = 0; i < parts.size(); ++i) {
      ASSERT_EQ(all.offsets[i] % alignment, 0u);
      ASSERT_LE(all.offsets[i] + parts[i], all.bytes);
      if (parts[i] > 0) places.emplace_back(all.offsets[i], all.offsets[i] + parts[i]);
    }
    std::sort(places.begin(), places.end());
    for (size_t i = 1; i < places.size(); ++i) ASSERT_LE(places[i - 1].second, places[i].first);
    ASSERT_LE(all.bytes, (dense + 63) / 64 * 64);
  }
}

}  // namespace
}  // namespace persist
