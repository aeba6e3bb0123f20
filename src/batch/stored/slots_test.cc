#include "batch/stored/slots.h"

#include <gtest/gtest.h>

namespace batch {
namespace {

// Slots of which only slot 0 is in use.
Slots slots_of(uint64_t count) {
  Slots slots;
  slots.open(count);
  slots.set_limit();
  return slots;
}

// Takes slots until there are no more below the limit; returns how many it took.
uint64_t take_all(Slots& slots) {
  uint64_t count = 0;
  while (slots.take() != 0) ++count;
  return count;
}

TEST(Slots, AreTakenInOrderAndOnlyOnce) {
  Slots slots = slots_of(200);
  for (uint64_t slot = 1; slot <= Slots::kMinSpare; ++slot) EXPECT_EQ(slots.take(), slot);
  EXPECT_EQ(slots.take(), 0u);
  EXPECT_EQ(slots.used_count(), 1 + Slots::kMinSpare);
  EXPECT_EQ(slots.free_count(), 200 - 1 - Slots::kMinSpare);
}

TEST(Slots, ThatAreGivenBackAreTakenAgain) {
  Slots slots = slots_of(200);
  take_all(slots);
  slots.give_back(3);
  slots.give_back(0);
  EXPECT_EQ(slots.used_count(), Slots::kMinSpare);
  EXPECT_EQ(slots.take(), 3u);
  EXPECT_EQ(slots.take(), 0u);
}

TEST(Slots, ThatAreGivenUpStayUntilACheckpointGivesThemBack) {
  Slots slots = slots_of(200);
  take_all(slots);
  slots.give_up(2);
  slots.give_up(0);
  EXPECT_TRUE(slots.has_given_up());
  EXPECT_EQ(slots.take(), 0u);
  EXPECT_EQ(slots.take_given_up(), std::vector<uint64_t>{2});
  EXPECT_FALSE(slots.has_given_up());
  slots.give_back(2);
  EXPECT_EQ(slots.take(), 2u);
}

TEST(Slots, TheLimitRisesUnlessManyAreGivenUp) {
  Slots slots = slots_of(200);
  const uint64_t first = take_all(slots);
  ASSERT_TRUE(slots.raise_limit());
  EXPECT_EQ(slots.take(), first + 1);
  take_all(slots);
  for (uint64_t slot = 1; slot <= Slots::kMinSpare; ++slot) slots.give_up(slot);
  EXPECT_FALSE(slots.raise_limit());
  EXPECT_EQ(slots.take(), 0u);
}

TEST(Slots, AllOfThemCanBeTaken) {
  Slots slots = slots_of(100);
  for (uint64_t slot = 1; slot < 100; ++slot) EXPECT_EQ(slots.take_anywhere(), slot);
  EXPECT_EQ(slots.take_anywhere(), 0u);
  EXPECT_EQ(slots.free_count(), 0u);
  EXPECT_FALSE(slots.raise_limit());
}

TEST(Slots, TheLimitIsAboveWhatWasKnownToBeInUse) {
  Slots slots;
  slots.open(200);
  for (uint64_t slot = 1; slot < 80; ++slot) EXPECT_TRUE(slots.mark_used(slot));
  EXPECT_FALSE(slots.mark_used(79));
  slots.set_limit();
  EXPECT_EQ(slots.take(), 80u);
  EXPECT_EQ(take_all(slots), 80 / Slots::kSpareShare + Slots::kMinSpare - 1);
}

}  // namespace
}  // namespace batch
