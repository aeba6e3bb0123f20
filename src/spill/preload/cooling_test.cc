#include "spill/preload/cooling.h"

#include <gtest/gtest.h>

namespace spill::preload {
namespace {

constexpr uint32_t kLeaving = 128;

TEST(Cooling, AnEighthOfThePages) {
  EXPECT_EQ(cooling_wanted(256, 0, 16), 32u + 16);
  EXPECT_EQ(cooling_wanted(32'768, 0, kLeaving), 4096u + kLeaving);
  EXPECT_EQ(cooling_wanted(32'768, 4096, kLeaving), 4096u + kLeaving);
}

// An eighth of half a TiB is 16 million pages, and the first fault that finds no room would wait for all of them.
TEST(Cooling, LittleByLittleWhereMemoryIsLarge) {
  constexpr uint32_t kAllowed = 1 << 27;
  uint32_t cooling = 0, rounds = 0;
  for (; cooling < kAllowed / kCoolingShare; ++rounds) {
    const uint32_t wanted = cooling_wanted(kAllowed, cooling, kLeaving);
    ASSERT_GT(wanted, cooling + kLeaving);
    ASSERT_LE(wanted, cooling + kMostCooled + kLeaving);
    cooling = wanted - kLeaving;
  }
  EXPECT_EQ(cooling, kAllowed / kCoolingShare);
  EXPECT_EQ(rounds, kAllowed / kCoolingShare / kMostCooled);
  EXPECT_EQ(cooling_wanted(kAllowed, cooling, kLeaving), cooling + kLeaving);
}

}  // namespace
}  // namespace spill::preload
