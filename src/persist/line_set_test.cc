#include "persist/line_set.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace persist {
namespace {

using Flush = LineSet::Flush;

constexpr uintptr_t line(uint64_t number) { return 0x7000'0000'0000 + number * base::kLineBytes; }

// Flushes as a thread does; calls execute(line) for each line that is written back.
template <class Execute>
void flush(LineSet& set, uintptr_t address, const Execute& execute) {
  switch (set.add(address)) {
    case Flush::kNow: execute(address); return;
    case Flush::kPutOff: return;
    case Flush::kPutIn:
      if (set.is_full()) {
        set.visit(execute);
        set.clear();
        set.begin_epoch();
      }
      set.put_in(address);
  }
}

template <class Execute>
void fence(LineSet& set, const Execute& execute) {
  set.visit(execute);
  set.clear();
  set.begin_epoch();
}

TEST(LineSet, LinesThatAreFlushedOnceAreExecutedAtOnce) {
  LineSet set;
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (uint64_t i = 0; i < 50; ++i) EXPECT_EQ(set.add(line(i)), Flush::kNow);
    EXPECT_EQ(set.count(), 0u);
    set.begin_epoch();
  }
}

TEST(LineSet, ALineThatIsFlushedAgainIsPutOffAndInTheNextEpochFromTheStart) {
  LineSet set;
  EXPECT_EQ(set.add(line(1)), Flush::kNow);
  EXPECT_EQ(set.add(line(1)), Flush::kPutIn);
  set.put_in(line(1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(set.add(line(1)), Flush::kPutOff);
  EXPECT_EQ(set.count(), 1u);
  set.clear();
  set.begin_epoch();
  EXPECT_EQ(set.add(line(1)), Flush::kPutIn);
  set.put_in(line(1));
  set.clear();
  set.begin_epoch();
  // It was flushed only once in that epoch, so it is like any other line again.
  EXPECT_EQ(set.add(line(1)), Flush::kNow);
}

TEST(LineSet, WhatStaysInTheListIsPutInAgainInTheNextEpoch) {
  LineSet set;
  set.add(line(1));
  set.put_in(line(1));
  set.begin_epoch();
  // It must not be mistaken for a line in this epoch's list: clear() may come in between.
  EXPECT_NE(set.add(line(1)), Flush::kPutOff);
}

// The numbers of epochs wrap around.
TEST(LineSet, AMarkOfLongAgoIsNotOfThisEpoch) {
  for (const unsigned power : {8, 10, 12, 14, 16})
    for (int epochs = (1 << power) - 2; epochs <= (1 << power) + 1; ++epochs) {
      LineSet set;
      set.add(line(1));
      set.put_in(line(1));
      EXPECT_EQ(set.add(line(1)), Flush::kPutOff);
      set.clear();
      for (int i = 0; i < epochs; ++i) set.begin_epoch();
      EXPECT_NE(set.add(line(1)), Flush::kPutOff) << epochs;
    }
}

// Programs have addresses of 56 bits if the CPU has 57.
TEST(LineSet, LinesThatAreFarApartAreNotTakenForOne) {
  for (unsigned bit = 14; bit < 56; ++bit) {
    LineSet set;
    set.add(line(1));
    set.put_in(line(1));
    EXPECT_EQ(set.add(line(1)), Flush::kPutOff);
    EXPECT_EQ(set.add(line(1) ^ uintptr_t{1} << bit), Flush::kNow) << bit;
  }
}

// Whatever the order of flushes and fences, a line is written back at or after its last flush, before the fence ends.
TEST(LineSet, EveryFlushIsFollowedByAnExecutionBeforeTheFenceEnds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const uint64_t lines = uint64_t{1} << random() % 12;
    const uint64_t stride = random() % 3 == 0 ? 256 : 1;  // all in one place of the table, or side by side
    LineSet set;
    std::map<uintptr_t, uint64_t> flushed, executed;
    uint64_t now = 0, executions = 0;
    const auto execute = [&](uintptr_t address) {
      executed[address] = now;
      ++executions;
    };
    for (int step = 0; step < 20'000; ++step) {
      ++now;
      if (random() % 40 == 0) {
        fence(set, execute);
        for (const auto& [address, time] : flushed) ASSERT_GE(executed[address], time);
        flushed.clear();
        EXPECT_EQ(set.count(), 0u);
      } else {
        const uintptr_t address = line(random() % lines * stride);
        flushed[address] = now;
        flush(set, address, execute);
      }
    }
    // And the point of it: hot lines are executed once in an epoch, not each time.
    if (lines <= 4) {
      EXPECT_LT(executions, 20'000u / 4);
    }
  }
}

TEST(LineSet, EpochsThatBeginAnewAreNotTakenForThoseBefore) {
  LineSet set;
  set.add(line(7));
  EXPECT_EQ(set.add(line(7)), Flush::kPutIn);
  set.put_in(line(7));
  set.clear();
  for (uint32_t epoch = 0; epoch < (1u << 16) + 10; ++epoch) {
    set.begin_epoch();
    // In no later epoch is it in the list, whatever the entry looks like.
    if (epoch >= (1u << 16) - 8) {
      EXPECT_NE(set.add(line(7)), Flush::kPutOff);
    }
  }
}

}  // namespace
}  // namespace persist
