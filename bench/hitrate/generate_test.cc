#include "hitrate/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace {

TEST(GenerateTest, TracesHaveTheLengthThatTheyAreSaidToHave) {
  const struct {
    const char* name;
    size_t accesses, less;
  } kTraces[] = {{"zipfleaf/100", 39'188, 0},
                 {"zipf/100", 30'000, 10'000},
                 {"zipfscan/100", 39'188 + 12 * 700, 0},
                 {"zipfshift/100", 39'188, 0},
                 {"loop/100", 5'055, 0}};
  for (const auto& expected : kTraces) {
    const auto trace = hitrate::generate(expected.name);
    ASSERT_TRUE(trace.has_value()) << expected.name;
    EXPECT_GE(trace->accesses.size(), expected.accesses) << expected.name;
    EXPECT_LE(trace->accesses.size(), expected.accesses + expected.less) << expected.name;
  }
}

TEST(GenerateTest, TheyAreTheSameEachTime) {
  const auto once = hitrate::generate("zipf/300"), again = hitrate::generate("zipf/300");
  EXPECT_EQ(once->accesses, again->accesses);
  const auto part = hitrate::generate("zipf/300", 1'000);
  ASSERT_EQ(part->accesses.size(), 1'000u);
  EXPECT_TRUE(std::equal(part->accesses.begin(), part->accesses.end(), once->accesses.begin()));
}

TEST(GenerateTest, InnerNodesAre23PercentOfTheReadsOfATree) {
  const auto trace = hitrate::generate("zipf/20");
  EXPECT_NEAR(1 - 150'000.0 / static_cast<double>(trace->accesses.size()), 0.234, 0.01);
}

TEST(GenerateTest, ALoopGoesRound) {
  const auto trace = hitrate::generate("loop/10");
  EXPECT_EQ(trace->page_count, 101u);
  for (size_t i = 0; i < trace->accesses.size(); ++i) ASSERT_EQ(trace->accesses[i], i % 101);
}

TEST(GenerateTest, WrongNames) {
  for (const char* name : {"", "zipfe", "/3", "loop3"}) {
    const auto trace = hitrate::generate(name);
    ASSERT_FALSE(trace.has_value()) << name;
    for (const char* known : {"zipfleaf", "zipf", "zipfscan", "zipfshift", "loop", "FORMAT:FILE"})
      EXPECT_NE(std::string(trace.error().message).find(known), std::string::npos) << trace.error().message;
  }
  for (const char* name : {"loop/", "loop/0", "loop/x", "loop/3x", "loop/10001"}) {
    const auto trace = hitrate::generate(name);
    ASSERT_FALSE(trace.has_value()) << name;
    EXPECT_NE(std::string(trace.error().message).find("NAME/N"), std::string::npos) << trace.error().message;
  }
}

}  // namespace
