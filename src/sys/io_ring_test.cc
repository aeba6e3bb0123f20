#include "sys/io_ring.h"

#include <gtest/gtest.h>

#include <set>

#include "sys/files.h"

namespace sys {
namespace {

class IoRingTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = ring.open(4);
    if (!opened) GTEST_SKIP() << opened.error().message;
  }
  void TearDown() override { ring.close(); }
  void add_nop(uint64_t user_data) {
    io_uring_sqe* entry = ring.next_submission();
    ASSERT_NE(entry, nullptr);
    entry->opcode = IORING_OP_NOP;
    entry->user_data = user_data;
  }
  std::multiset<uint64_t> completed() {
    std::multiset<uint64_t> all;
    uint64_t user_data;
    int32_t result;
    while (ring.next_completion(user_data, result)) {
      EXPECT_EQ(result, 0);
      all.insert(user_data);
    }
    return all;
  }
  IoRing ring;
};

TEST_F(IoRingTest, CompletesWhatWasSubmittedOverManyTurns) {
  EXPECT_GE(ring.entry_count(), 4u);
  for (uint64_t turn = 0; turn < 20; ++turn) {
    for (uint64_t i = 0; i < 3; ++i) add_nop(turn * 10 + i);
    EXPECT_EQ(ring.pending_count(), 3u);
    EXPECT_EQ(ring.enter(3), 3);
    EXPECT_EQ(ring.pending_count(), 0u);
    EXPECT_EQ(completed(), (std::multiset<uint64_t>{turn * 10, turn * 10 + 1, turn * 10 + 2}));
  }
}

TEST_F(IoRingTest, FullIsNull) {
  for (uint64_t i = 0; i < ring.entry_count(); ++i) add_nop(i);
  EXPECT_EQ(ring.next_submission(), nullptr);
  EXPECT_EQ(ring.enter(ring.entry_count()), static_cast<long>(ring.entry_count()));
  EXPECT_NE(ring.next_submission(), nullptr);
}

TEST_F(IoRingTest, WhatIsTakenBackIsNotSubmitted) {
  for (uint64_t i = 1; i <= 3; ++i) add_nop(i);
  EXPECT_EQ(ring.take_back(), 3u);
  EXPECT_EQ(ring.take_back(), 2u);
  add_nop(7);
  EXPECT_EQ(ring.enter(2), 2);
  EXPECT_EQ(completed(), (std::multiset<uint64_t>{1, 7}));
}

TEST_F(IoRingTest, GivesItsDescriptorBack) {
  int before[256], after[256];
  size_t open_count = own_descriptors(before);
  ring.close();
  EXPECT_EQ(own_descriptors(after), open_count - 1);
  ring.close();  // again: nothing
  EXPECT_EQ(own_descriptors(after), open_count - 1);
  ASSERT_TRUE(ring.open(1).has_value());
}

}  // namespace
}  // namespace sys
