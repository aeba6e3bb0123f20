#include "persist/own/dirtiness.h"

#include <gtest/gtest.h>

namespace persist {
namespace {

uint64_t millionths(uint64_t lines, uint64_t dirty_bytes) {
  return Dirtiness::Counts{.lines = lines, .dirty_bytes = dirty_bytes}.dirty_millionths();
}

TEST(Dirtiness, AShareOfManyBytes) {
  EXPECT_EQ(millionths(0, 0), 0u);
  EXPECT_EQ(millionths(3, 64), 333'333u);
  // From 2^64 / 1,000,000 bytes on, some 18 TB.
  for (const uint64_t lines : {uint64_t{1} << 30, uint64_t{1} << 38, uint64_t{1} << 39, uint64_t{1} << 48}) {
    EXPECT_EQ(millionths(lines, lines * 64), 1'000'000u) << lines;
    EXPECT_EQ(millionths(lines, lines * 16), 250'000u) << lines;
  }
}

}  // namespace
}  // namespace persist
