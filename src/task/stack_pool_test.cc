#include "task/stack_pool.h"

#include <gtest/gtest.h>
#include <string.h>

#include <set>
#include <vector>

namespace task {
namespace {

TEST(StackPoolTest, StacksAreApartAndGivenAgain) {
  StackPool pool;
  ASSERT_TRUE(pool.open(16 << 10));
  std::vector<uint32_t> slots;
  for (int i = 0; i < 3000; ++i) {
    slots.push_back(*pool.take());
    memset(pool.stack_of(slots.back()), i & 0xff, pool.stack_bytes());
  }
  EXPECT_EQ(std::set<uint32_t>(slots.begin(), slots.end()).size(), slots.size());
  for (int i = 0; i < 3000; ++i) {
    const char* const stack = pool.stack_of(slots[static_cast<size_t>(i)]);
    EXPECT_EQ(static_cast<unsigned char>(stack[0]), i & 0xff);
    EXPECT_EQ(static_cast<unsigned char>(stack[pool.stack_bytes() - 1]), i & 0xff);
    EXPECT_EQ(pool.slot_at(reinterpret_cast<uint64_t>(stack)), slots[static_cast<size_t>(i)]);
    EXPECT_EQ(pool.slot_at(reinterpret_cast<uint64_t>(stack) - 1),
              slots[static_cast<size_t>(i)]);  // the guard
  }
  for (uint32_t slot : slots) pool.give_back(slot);
  for (int i = 0; i < 3000; ++i) EXPECT_LT(*pool.take(), 3000u);
  EXPECT_EQ(pool.slot_at(1), StackPool::kNoSlot);
  pool.close();
}

TEST(StackPoolDeathTest, NobodyTouchesWhatIsBelow) {
  StackPool pool;
  ASSERT_TRUE(pool.open(16 << 10));
  const uint32_t first = *pool.take();
  const uint32_t second = *pool.take();
  EXPECT_TRUE(pool.is_guarded(first));
  EXPECT_DEATH(pool.stack_of(first)[-1] = 1, "");
  EXPECT_DEATH(pool.stack_of(second)[-base::kOsPageBytes] = 1, "");
  // A stack that was given back keeps its guard, even if its memory was returned to the OS.
  std::vector<uint32_t> slots;
  for (uint32_t i = 0; i < StackPool::kMaxWarm + 10; ++i) slots.push_back(*pool.take());
  for (uint32_t slot : slots) pool.stack_of(slot)[0] = 1;
  for (uint32_t slot : slots) pool.give_back(slot);
  const uint32_t cold = slots.back();
  EXPECT_EQ(pool.stack_of(cold)[0], 0);
  EXPECT_DEATH(pool.stack_of(cold)[-1] = 1, "");
  pool.close();
}

TEST(StackPoolDeathTest, AGuardIsAsLargeAsAsked) {
  constexpr size_t kGuardBytes = 64 << 10;
  StackPool pool;
  ASSERT_TRUE(pool.open(16 << 10, kGuardBytes));
  const uint32_t first = *pool.take();
  const uint32_t second = *pool.take();
  char* const stack = pool.stack_of(second);
  EXPECT_EQ(static_cast<size_t>(stack - pool.stack_of(first)), kGuardBytes + pool.stack_bytes());
  EXPECT_EQ(pool.slot_at(reinterpret_cast<uint64_t>(stack) - kGuardBytes), second);
  EXPECT_EQ(pool.slot_at(reinterpret_cast<uint64_t>(stack) - kGuardBytes - 1), first);
  EXPECT_DEATH(stack[-1] = 1, "");
  EXPECT_DEATH(stack[-ptrdiff_t{kGuardBytes}] = 1, "");
  stack[-ptrdiff_t{kGuardBytes} - 1] = 1;  // belongs to the other stack
  pool.close();
}

}  // namespace
}  // namespace task
