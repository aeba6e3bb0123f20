// When periods end, when the server is started, and what is to move.
#include "pagecache/balancer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace pagecache {
namespace {

using Load = Balancer::Load;

class BalancerTest : public testing::Test, protected Balancer::Server {
 protected:
  void start_balance() override { ++started; }
  void miss(uint32_t node, uint64_t times) {
    for (; times > 0; --times) balancer.count_miss(node);
  }
  bool begin() { return balancer.begin(misses); }

  Balancer balancer;
  std::atomic<int> started{0};
  std::array<uint64_t, 2> misses = {};
};

TEST_F(BalancerTest, FramesGoFromWhoMissesLeastForItsFramesToWhoMissesMost) {
  const auto chosen = [](std::initializer_list<Load> loads) {
    const Balancer::Move move = Balancer::choose(std::span(loads.begin(), loads.size()));
    return std::pair(move.from, move.to);
  };
  const std::pair none(0u, 0u);
  EXPECT_EQ(chosen({{10, 100}, {30, 100}, {20, 100}}), std::pair(0u, 1u));
  EXPECT_EQ(chosen({{30, 300}, {30, 100}, {20, 100}}), std::pair(0u, 1u));
  EXPECT_EQ(chosen({{30, 300}, {30, 100}, {2, 100}}), std::pair(2u, 1u));
  EXPECT_EQ(chosen({{0, 100}, {1, 100}}), std::pair(0u, 1u));
  EXPECT_EQ(chosen({{0, 90}, {0, 100}, {9, 100}}), std::pair(1u, 2u));
  EXPECT_EQ(chosen({{10, 100}, {20, 100}}), none);
  EXPECT_EQ(chosen({{10, 100}, {21, 100}}), std::pair(0u, 1u));
  EXPECT_EQ(chosen({{10, 100}, {21, 110}}), none);
  EXPECT_EQ(chosen({{0, 100}, {0, 100}}), none);
  EXPECT_EQ(chosen({{9, 100}}), none);
  EXPECT_EQ(chosen({{0, 100, false}, {9, 100}, {1, 100}}), std::pair(2u, 1u));
  EXPECT_EQ(chosen({{0, 100}, {9, 100, true, false}, {1, 100}}), std::pair(0u, 2u));
  EXPECT_EQ(chosen({{0, 100, false}, {9, 100, false}}), none);
  EXPECT_EQ(chosen({{0, 100, true, false}, {9, 100, true, false}}), none);
}

TEST_F(BalancerTest, APeriodEndsWithTheMissesOfOneNode) {
  ASSERT_TRUE(balancer.open(*this, 400));
  miss(0, 99);
  miss(1, 99);
  EXPECT_EQ(started, 0);
  miss(1, 1);
  EXPECT_EQ(started, 1);
  miss(0, 50);
  EXPECT_EQ(started, 1);
  EXPECT_TRUE(begin());
  EXPECT_EQ(misses, (std::array<uint64_t, 2>{149, 100}));
  // Misses while frames move do not count.
  miss(0, 1000);
  EXPECT_EQ(started, 1);
  balancer.end(800);
  miss(0, 199);
  EXPECT_EQ(started, 1);
  miss(0, 1);
  EXPECT_EQ(started, 2);
  EXPECT_TRUE(begin());
  balancer.end(4);
  miss(0, Balancer::kMinPeriodMisses - 1);
  EXPECT_EQ(started, 2);
  miss(0, 1);
  EXPECT_EQ(started, 3);
  balancer.end(4);
  balancer.close();
}

TEST_F(BalancerTest, NothingStartsUnlessItIsServed) {
  miss(0, 1000);
  EXPECT_EQ(started, 0);
  ASSERT_TRUE(balancer.open(*this, 400));
  EXPECT_FALSE(balancer.open(*this, 400));
  miss(0, 99);
  EXPECT_EQ(started, 0);
  balancer.close();
  miss(0, 1000);
  EXPECT_EQ(started, 0);
  ASSERT_TRUE(balancer.open(*this, 400));
  miss(0, 100);
  EXPECT_EQ(started, 1);
  balancer.end(400);
  balancer.close();
}

TEST_F(BalancerTest, WhoHoldsOrClosesItWaitsForTheMove) {
  for (const bool closes : {false, true}) {
    ASSERT_TRUE(balancer.open(*this, 400));
    miss(0, 100);
    ASSERT_TRUE(begin());
    EXPECT_FALSE(balancer.is_to_stop());
    std::atomic<bool> has_waited = false;
    std::thread other([&] {
      closes ? balancer.close() : balancer.hold();
      has_waited = true;
    });
    while (!balancer.is_to_stop()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(has_waited);
    balancer.end(400);
    other.join();
    if (closes) break;
    // No move begins while it is held.
    miss(0, 100);
    EXPECT_FALSE(begin());
    balancer.end(400);
    balancer.hold();
    balancer.release();
    EXPECT_TRUE(balancer.is_to_stop());
    balancer.release();
    EXPECT_FALSE(balancer.is_to_stop());
    balancer.close();
  }
}

}  // namespace
}  // namespace pagecache
