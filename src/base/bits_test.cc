#include "base/bits.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(Bits, EachIsSetAndClearedAlone) {
  for (const uint64_t i : {0u, 1u, 63u, 64u, 127u}) {
    uint64_t words[2] = {};
    set_bit(words, i);
    for (uint64_t other = 0; other < 128; ++other) EXPECT_EQ(has_bit(words, other), other == i) << other;
    clear_bit(words, i);
    EXPECT_EQ(words[0] | words[1], 0u) << i;
    words[0] = words[1] = ~uint64_t{0};
    clear_bit(words, i);
    for (uint64_t other = 0; other < 128; ++other) EXPECT_EQ(has_bit(words, other), other != i) << other;
  }
}

}  // namespace
}  // namespace base
