// Calls, and threads that act for their session, exclude each other.
#include "sys/gate.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sys {
namespace {

class GateTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !register_barrier()) GTEST_SKIP() << "the kernel has no barriers";
  }
};
INSTANTIATE_TEST_SUITE_P(All, GateTest, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "barrier" : "fence"; });

TEST_P(GateTest, CallsAndWhoActsInTheirPlaceNeverMeet) {
  constexpr int kGates = 2, kShuts = 300;
  struct Guarded {
    explicit Guarded(bool has_barrier) : gate(has_barrier) {}
    Gate gate;
    uint64_t count = 0;  // nothing but the gate guards it
  };
  std::vector<std::unique_ptr<Guarded>> all;
  std::vector<std::thread> threads;
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t> calls{0};
  for (int i = 0; i < kGates; ++i) all.push_back(std::make_unique<Guarded>(GetParam()));
  for (const auto& guarded : all)
    threads.emplace_back([&, own = guarded.get()] {
      uint64_t made = 0;
      for (; !is_over.load(std::memory_order_relaxed); ++made) {
        own->gate.enter();
        const uint64_t before = own->count;
        for (int i = 0; i < 20; ++i) __builtin_ia32_pause();
        own->count = before + 1;
        own->gate.leave();
      }
      calls += made;
    });
  for (int i = 0; i < kShuts; ++i)
    for (const auto& guarded : all) {
      guarded->gate.shut();
      const uint64_t before = guarded->count;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      guarded->count = before + 1;
      guarded->gate.open();
    }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  uint64_t count = 0;
  for (const auto& guarded : all) count += guarded->count;
  EXPECT_EQ(count, calls + kGates * kShuts);
}

TEST_P(GateTest, WhoShutsItWaitsForTheCall) {
  Gate gate(GetParam());
  std::atomic<bool> is_left{false};
  gate.enter();
  std::thread thread([&] {
    gate.shut();
    EXPECT_TRUE(is_left.load());
    gate.open();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  is_left = true;
  gate.leave();
  thread.join();
  gate.enter();
  gate.leave();
}

}  // namespace
}  // namespace sys
