#include "server/items/update_locks.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "task/test_tasks.h"

namespace server {
namespace {

constexpr uint64_t kHash = uint64_t{5} << 32, kOther = uint64_t{6} << 32;

TEST(UpdateLocksTest, OneAtATimeHasAKeysLock) {
  UpdateLocks locks;
  constexpr int kThreads = 4, kTimes = 20'000;
  uint64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) {
        UpdateLocks::Held held(locks, kHash);
        ++count;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, uint64_t{kThreads} * kTimes);
}

TEST(UpdateLocksTest, WhoHoldsAllKeepsEachOut) {
  UpdateLocks locks;
  constexpr int kThreads = 4, kTimes = 500;
  std::atomic<int> within{0};
  std::atomic<bool> was_disturbed{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTimes; ++i) {
        UpdateLocks::Held held(locks, static_cast<uint64_t>(t * kTimes + i) << 32);
        ++within;
        --within;
      }
    });
  for (int i = 0; i < 20; ++i) {
    UpdateLocks::AllHeld held(locks);
    for (int look = 0; look < 100; ++look) was_disturbed = was_disturbed || within != 0;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(was_disturbed);
}

TEST(UpdateLocksTest, AFightIsOfAKeyAndEnds) {
  UpdateLocks locks;
  EXPECT_FALSE(locks.is_fought(kHash));
  {
    UpdateLocks::Held held(locks, kHash);
    EXPECT_FALSE(locks.is_fought(kHash));
    held.fight();
    EXPECT_TRUE(locks.is_fought(kHash));
    EXPECT_FALSE(locks.is_fought(kOther));
  }
  EXPECT_FALSE(locks.is_fought(kHash));
}

class UpdateLocksTaskTest : public task::TasksTest {
 protected:
  UpdateLocksTaskTest() : TasksTest(1) {}
};

TEST_F(UpdateLocksTaskTest, IsHandedToWhoCameFirst) {
  UpdateLocks locks;
  std::vector<int> order;
  run([&] {
    int next = 0;
    auto come = [&] {
      const int own = next++;
      UpdateLocks::Held held(locks, kHash);
      order.push_back(own);
      task::yield();
    };
    std::vector<task::Task*> tasks;
    {
      UpdateLocks::Held held(locks, kHash);
      for (int i = 0; i < 5; ++i) tasks.push_back(&task::start("comes", come));
      for (int i = 0; i < 20; ++i) task::yield();
      EXPECT_EQ(next, 5);
      EXPECT_TRUE(order.empty());
    }
    for (task::Task* const task : tasks) static_cast<void>(task::join(*task));
  });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace server
