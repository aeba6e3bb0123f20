#include "task/call_waiter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace task {
namespace {

struct Named final : CallWaiter {
  explicit Named(int number) : CallWaiter("a test"), number(number) {}
  const int number;
};

std::vector<int> take_all_of(CallWaiters& list) {
  std::vector<int> numbers;
  while (!list.empty()) numbers.push_back(static_cast<Named&>(list.take_first()).number);
  return numbers;
}

TEST(CallWaitersTest, RemovesFromAnywhere) {
  for (int removed = 1; removed <= 3; ++removed) {
    Named one(1), two(2), three(3), four(4);
    Named* const all[] = {&one, &two, &three};
    CallWaiters list;
    for (Named* waiter : all) list.append(*waiter);
    EXPECT_TRUE(list.remove(*all[removed - 1]));
    EXPECT_FALSE(list.remove(*all[removed - 1]));
    EXPECT_FALSE(list.remove(four));
    // The list's end is still right.
    list.append(four);
    std::vector<int> expected = {1, 2, 3, 4};
    std::erase(expected, removed);
    EXPECT_EQ(take_all_of(list), expected);
  }
}

TEST(CallWaitersTest, ALastOneThatIsRemovedLeavesAnEmptyList) {
  Named one(1), two(2);
  CallWaiters list;
  list.append(one);
  EXPECT_TRUE(list.remove(one));
  EXPECT_TRUE(list.empty());
  list.append(two);
  EXPECT_EQ(take_all_of(list), std::vector{2});
}

// A waiter that removes itself from the list at its deadline, as callers' waiters do.
struct Limited final : CallWaiter {
  explicit Limited(CallWaiters& list) : CallWaiter("a test"), list(list) { list.append(*this); }
  bool abandon() override {
    ++abandoned;
    return list.remove(*this);
  }
  CallWaiters& list;
  int abandoned = 0;
};

TEST(CallWaiterTest, GivesUpAtTheDeadline) {
  CallWaiters list;
  Limited waiter(list);
  const uint64_t deadline = now_ns() + 2'000'000;
  EXPECT_FALSE(waiter.wait_until(deadline));
  EXPECT_GE(now_ns(), deadline);
  EXPECT_TRUE(list.empty());
}

TEST(CallWaiterTest, AWakeThatIsOnItsWayCounts) {
  CallWaiters list;
  Limited waiter(list);
  CallWaiter& taken = list.take_first();
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    taken.wake();
  });
  EXPECT_TRUE(waiter.wait_until(now_ns() + 1'000'000));
  EXPECT_GE(waiter.abandoned, 1);
  late.join();
}

}  // namespace
}  // namespace task
