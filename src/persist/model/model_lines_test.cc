#include "persist/model/model_lines.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "persist/runtime.h"

namespace persist {
namespace {

constexpr uint32_t kThreads = 3;
constexpr uint64_t kLinesEach = 200;

class ModelLinesTest : public testing::TestWithParam<Way> {
 protected:
  ~ModelLinesTest() override {
    runtime->flushers().stop();
    device->close();
  }
  // Each thread flushes lines of its own, once, with a fence after every eighth.
  void run_threads() {
    runtime->configure({.way = GetParam(),
                        .instruction = sys::LineFlush::kClflush,
                        .flushers = {.least = 1, .most = 3, .period_ns = 5'000'000},
                        .sample_stores = 1,
                        .find_domain = nullptr});
    ASSERT_TRUE(runtime->add_domain(
        {.begin = 1 << 20, .end = 1 << 21, .kind = DomainKind::kDevice, .device = device}));
    std::vector<std::thread> threads;
    for (uint64_t number = 0; number < kThreads; ++number)
      threads.emplace_back([&, number] {
        Thread* const own = runtime->enter();
        for (uint64_t i = 0; i < kLinesEach; ++i) {
          const uintptr_t line = (1 << 20) + (number * kLinesEach + i) * base::kLineBytes;
          device->stored(line, base::kLineBytes);
          device->compute(100);
          own->flush(line);
          if (i % 8 == 7) ASSERT_TRUE(own->fence());
        }
        ASSERT_TRUE(runtime->leave(own));
      });
    for (std::thread& thread : threads) thread.join();
  }

  ModelLines* device = *ModelLines::make({}, 100);
  std::unique_ptr<Runtime> runtime = std::make_unique<Runtime>();
};
INSTANTIATE_TEST_SUITE_P(Ways, ModelLinesTest,
                         testing::Values(Way::kInline, Way::kEpoch, Way::kDecoupled, Way::kProactive),
                         [](const auto& way) { return name_of(way.param); });

TEST_P(ModelLinesTest, ARuntimeFlushesToTheDevice) {
  const double begin_ns = device->device().clock().now_ns();
  run_threads();
  const DeviceStatistics statistics = device->device().statistics();
  EXPECT_EQ(statistics.lines, kThreads * kLinesEach);
  EXPECT_GE(statistics.fences, kThreads * kLinesEach / 64);
  EXPECT_GE(device->device().clock().now_ns() - begin_ns, 100.0 * kLinesEach - 2000);
}

TEST(ModelLines, OnlyLinesThatWereStoredToAreDirty) {
  ModelLines* const device = *ModelLines::make({}, 100);
  const uintptr_t lines[] = {0x1000, 0x1040, 0x1080};
  device->flush(lines, 3);
  device->stored(0x103f, 2);
  device->flush(lines, 3);
  device->fence();
  EXPECT_EQ(device->device().statistics().lines, 5u);
  EXPECT_EQ(device->device().statistics().clean_lines, 1u);
  EXPECT_EQ(device->device().statistics().fences, 1u);
  device->close();
}

}  // namespace
}  // namespace persist
