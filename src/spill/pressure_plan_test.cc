#include "spill/pressure_plan.h"

#include <gtest/gtest.h>

namespace spill {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class PressurePlanTest : public testing::Test {
 protected:
  PressurePlanTest() { plan.ask(1600); }
  uint64_t step(bool pressure, uint64_t after_ns, uint64_t floor = 0) {
    now_ns += after_ns;
    return plan.step(pressure, now_ns, floor);
  }
  PressurePlan plan;
  uint64_t now_ns = 100 * kSecond;
};

TEST_F(PressurePlanTest, NothingHappensWithoutPressure) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(step(false, kSecond), 1600u);
}

TEST_F(PressurePlanTest, GoesDownInStepsToAQuarter) {
  EXPECT_EQ(step(true, 0), 1400u);
  EXPECT_EQ(step(true, 1), 1400u) << "not at once again";
  EXPECT_EQ(step(true, PressurePlan::kDownNs), 1200u);
  for (int i = 0; i < 20; ++i) step(true, PressurePlan::kDownNs);
  EXPECT_EQ(step(true, kSecond), 400u);
}

TEST_F(PressurePlanTest, ComesBackWhenItIsCalm) {
  step(true, 0);
  step(true, kSecond);
  EXPECT_EQ(step(false, PressurePlan::kCalmNs - 1), 1200u);
  EXPECT_EQ(step(false, 1), 1300u);
  EXPECT_EQ(step(false, 1), 1300u);
  EXPECT_EQ(step(false, PressurePlan::kUpNs), 1400u);
  EXPECT_EQ(step(true, PressurePlan::kUpNs), 1200u) << "and goes down again";
  EXPECT_EQ(step(false, PressurePlan::kCalmNs - 1), 1200u);
  for (int i = 0; i < 20; ++i) step(false, PressurePlan::kUpNs);
  EXPECT_EQ(step(false, 0), 1600u);
}

TEST_F(PressurePlanTest, KeepsToTheFloor) {
  for (int i = 0; i < 20; ++i) step(true, kSecond, 900);
  EXPECT_EQ(step(true, kSecond, 900), 900u);
  EXPECT_EQ(step(true, kSecond, 1000), 900u) << "a floor that has risen raises nothing";
  plan.ask(800);
  EXPECT_EQ(step(true, kSecond, 900), 800u);
}

TEST_F(PressurePlanTest, RisesToTheFloorAtLeast) {
  step(true, 0);
  EXPECT_EQ(step(true, kSecond), 1200u);
  EXPECT_EQ(step(false, PressurePlan::kCalmNs, 1450), 1450u);
  EXPECT_EQ(step(false, PressurePlan::kUpNs, 5000), 1600u);
}

TEST_F(PressurePlanTest, WhatIsRefusedIsTriedAgain) {
  EXPECT_EQ(step(true, 0), 1400u);
  EXPECT_EQ(step(true, kSecond), 1200u);
  plan.refused(1400);
  EXPECT_EQ(step(true, 1), 1400u) << "not at once";
  EXPECT_EQ(step(true, PressurePlan::kDownNs), 1200u);
  EXPECT_EQ(step(false, PressurePlan::kCalmNs), 1300u);
  for (int i = 0; i < 3; ++i) step(false, PressurePlan::kUpNs);
  EXPECT_FALSE(plan.is_lowered());
  plan.refused(1500);
  EXPECT_TRUE(plan.is_lowered());
  EXPECT_EQ(step(false, 1), 1500u);
  EXPECT_EQ(step(false, PressurePlan::kUpNs), 1600u);
}

TEST_F(PressurePlanTest, WhatIsAskedForCountsAtOnce) {
  step(true, 0);
  plan.ask(3200);
  EXPECT_EQ(step(false, 0), 3200u);
  EXPECT_EQ(step(true, kSecond), 2800u);
}

}  // namespace
}  // namespace spill
