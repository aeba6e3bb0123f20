#include "spill/ahead/runs.h"

#include <gtest/gtest.h>

namespace spill {
namespace {

constexpr int64_t kPause = 512;

// A loop over values of four bytes that is entered again and again, and asks every kPause iterations.
class Loop {
 public:
  explicit Loop(int64_t step = 4) : step_(step) {}
  void run(uint64_t begin, int64_t iterations) {
    for (int64_t i = 0; i < iterations; i += kPause) {
      runs.at(begin + static_cast<uint64_t>(i * step_), step_);
      runs.due_after(kPause, step_);
    }
  }
  Runs runs;

 private:
  const int64_t step_;
};

TEST(Runs, RowsThatFollowEachOtherGoOn) {
  Loop loop;
  uint64_t begin = 0x10000;
  for (int64_t row = 0; row < 100; ++row) {
    const int64_t iterations = 1 + row * row % 1500;
    loop.run(begin, iterations);
    EXPECT_TRUE(loop.runs.go_on());
    begin += static_cast<uint64_t>(4 * iterations);
  }
}

TEST(Runs, RowsThatAreLeftOutNowAndThenGoOn) {
  Loop loop;
  for (uint64_t row = 0; row < 100; ++row) loop.run(0x10000 + row * 4 * (kPause + Runs::kMaxGap), 10);
  EXPECT_TRUE(loop.runs.go_on());
}

TEST(Runs, DownwardsIsAWayToGoOn) {
  Loop loop(-4);
  for (uint64_t row = 0; row < 100; ++row) loop.run(0x100000 - row * 400, 100);
  EXPECT_TRUE(loop.runs.go_on());
}

// Positions may be the program's own numbers: half of all lie between this one and where a loop has never been.
TEST(Runs, DownwardsByOneFromTheSignBit) {
  const volatile int64_t step = -1;  // or no division would be left
  Loop loop(step);
  loop.run(uint64_t{1} << 63, 10);
  EXPECT_TRUE(loop.runs.go_on());
  EXPECT_EQ(loop.runs.length(step), 0);
}

// However long they are: that a row goes on by itself says nothing.
TEST(Runs, RowsThatBeginAnywhereDoNot) {
  for (const int64_t iterations : {int64_t{30}, 8 * kPause}) {
    Loop loop;
    for (uint64_t row = 0; row < 8; ++row) loop.run(0x10000 + row * 7919 % 8 * 0x10000, iterations);
    EXPECT_FALSE(loop.runs.go_on()) << iterations;
  }
}

TEST(Runs, AFewJumpsAreForgotten) {
  Loop loop;
  for (uint64_t part = 0; part < 8; ++part)
    for (uint64_t row = 0; row < 16; ++row) {
      loop.run(0x10000 + part * 3 % 8 * 0x100000 + row * 400, 100);
      EXPECT_TRUE(loop.runs.go_on());
    }
}

TEST(Runs, ARunIsAsLongAsItHasCome) {
  Loop loop;
  loop.run(0x10000, 30);
  loop.run(0x90000, 1);
  EXPECT_EQ(loop.runs.length(4), 0);
  loop.runs.at(0x90000 + 4 * kPause, 4);
  EXPECT_EQ(loop.runs.length(4), kPause);
}

}  // namespace
}  // namespace spill
