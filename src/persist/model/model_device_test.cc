// What threads see of a modelled device. That they wait at least as long as the model says is asserted; that they hardly wait longer is not, since
// it depends on what else the machine does.
#include "persist/model/model_device.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "persist/model/test_load.h"
#include "sys/nap.h"

namespace persist {
namespace {

class ModelDeviceTest : public testing::Test {
 protected:
  static constexpr double kDilation = 50;
  static constexpr double kAheadNs = ModelDevice::kAheadWallNs / kDilation;
  ~ModelDeviceTest() override { device->close(); }

  void flush(ModelDevice::Writer* writer, std::vector<uintptr_t> addresses) {
    device->flush(writer, addresses);
  }

  DeviceParameters parameters;
  ModelDevice* device = *ModelDevice::make(parameters, kDilation);
};

TEST(DilatedClockTest, TimesOfTheDeviceAreTheWallsDilated) {
  const uint64_t before_ns = sys::monotonic_ns();
  const DilatedClock clock(40);
  EXPECT_GE(clock.wall_ns(0), before_ns);
  EXPECT_LE(clock.wall_ns(0), sys::monotonic_ns());
  EXPECT_EQ(clock.wall_ns(1000) - clock.wall_ns(0), 40'000u);
  EXPECT_EQ(clock.device_ns(clock.wall_ns(0) + 4000), 100);
  const double earlier_ns = clock.now_ns();
  sys::nap(1'000'000);
  EXPECT_GE(clock.now_ns(), earlier_ns + 25'000);
}

TEST(CleanLinesTest, LinesAreDirtyUnlessTheyWereFlushedAndNotStoredToSince) {
  const auto clean = std::make_unique<CleanLines>();
  for (const uint64_t line : {0ull, 1ull, 2ull, 1ull << 57}) {
    EXPECT_TRUE(clean->flush(line));
    EXPECT_FALSE(clean->flush(line));
    clean->stored(line);
    EXPECT_TRUE(clean->flush(line));
  }
  // Only lines that were forgotten are dirty.
  uint32_t dirty_count = 0;
  for (uint64_t line = 1000; line < 1000 + CleanLines::kPlaces / 8; ++line) EXPECT_TRUE(clean->flush(line));
  for (uint64_t line = 1000; line < 1000 + CleanLines::kPlaces / 8; ++line) dirty_count += clean->flush(line);
  EXPECT_LT(dirty_count, CleanLines::kPlaces / 8 / 3);
  clean->stored(999);
  for (uint64_t line = 100'000; line < 100'000 + 4 * CleanLines::kPlaces; ++line)
    EXPECT_TRUE(clean->flush(line));
}

TEST_F(ModelDeviceTest, AWriterWaitsAsLongAsTheModelSays) {
  ModelDevice::Writer* writer = device->open_writer();
  const double begin_ns = device->clock().now_ns();
  TestLines lines({}, 0);
  constexpr int kFences = 2000;
  for (int i = 0; i < kFences; ++i) {
    flush(writer, {64 * lines.next(), 64 * lines.next()});
    device->fence(writer);
  }
  EXPECT_GE(device->clock().now_ns() - begin_ns,
            kFences * (2 * parameters.issue_dirty_ns + parameters.fence_ns) - kAheadNs);
  const DeviceStatistics statistics = device->statistics();
  EXPECT_EQ(statistics.lines, 2u * kFences);
  EXPECT_EQ(statistics.fences, uint64_t{kFences});
  EXPECT_EQ(statistics.media_writes, kFences / 2u);
  device->close_writer(writer);
}

TEST_F(ModelDeviceTest, WaitingTakesNoCpuTimeAndComputingAddsUp) {
  ModelDevice::Writer* writer = device->open_writer();
  timespec cpu_before = {}, cpu_after = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_before);
  const double begin_ns = device->clock().now_ns();
  for (int i = 0; i < 1000; ++i) device->compute(writer, 1000);
  const double took_ns = device->clock().now_ns() - begin_ns;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_after);
  EXPECT_GE(took_ns, 1e6 - kAheadNs);
  const double cpu_ns = 1e9 * static_cast<double>(cpu_after.tv_sec - cpu_before.tv_sec) +
                        static_cast<double>(cpu_after.tv_nsec - cpu_before.tv_nsec);
  EXPECT_LT(cpu_ns, 0.75 * took_ns * kDilation);
  device->close_writer(writer);
}

TEST_F(ModelDeviceTest, LinesThatAreFlushedAgainAreCleanUnlessStoredTo) {
  ModelDevice::Writer* writer = device->open_writer();
  flush(writer, {0x1000, 0x1040, 0x1008});
  EXPECT_EQ(device->statistics().lines, 2u);
  EXPECT_EQ(device->statistics().clean_lines, 1u);
  device->stored(0x107f);
  flush(writer, {0x1000, 0x1040});
  EXPECT_EQ(device->statistics().lines, 3u);
  EXPECT_EQ(device->statistics().clean_lines, 2u);
  device->close_writer(writer);
}

TEST_F(ModelDeviceTest, AThreadsTimerSlackIsItsOwn) {
  ASSERT_EQ(prctl(PR_SET_TIMERSLACK, 40'000), 0);
  ModelDevice::Writer* writer = device->open_writer();
  device->compute(writer, 2 * kAheadNs);
  EXPECT_EQ(prctl(PR_GET_TIMERSLACK), 40'000);
  device->close_writer(writer);
}

TEST_F(ModelDeviceTest, ThereAreOnlySoManyWriters) {
  std::vector<ModelDevice::Writer*> writers(DeviceModel::kMaxWriters);
  for (ModelDevice::Writer*& writer : writers) writer = device->open_writer();
  EXPECT_EQ(device->open_writer(), nullptr);
  device->close_writer(writers[5]);
  writers[5] = device->open_writer();
  EXPECT_NE(writers[5], nullptr);
  for (ModelDevice::Writer* writer : writers) device->close_writer(writer);
}

// Writers come and go. The device does what they ask, each line once, and no more than it has time for.
TEST_F(ModelDeviceTest, ManyThreadsShareADevice) {
  constexpr uint32_t kThreads = 24;
  constexpr uint64_t kRounds = 6, kFences = 60;
  std::atomic<uint64_t> line_count{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      TestLines lines({.is_random = i % 2 == 0}, i);
      for (uint64_t round = 0; round < kRounds; ++round) {
        ModelDevice::Writer* writer = device->open_writer();
        ASSERT_NE(writer, nullptr);
        for (uint64_t fence = 0; fence < kFences; ++fence) {
          std::vector<uintptr_t> addresses(1 + (i + fence) % 16);
          for (uintptr_t& address : addresses) {
            address = 64 * lines.next();
            device->stored(address);
          }
          line_count += addresses.size();
          device->flush(writer, addresses);
          if (fence % 8 == 0) device->compute(writer, 500);
          device->fence(writer);
        }
        device->close_writer(writer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const DeviceStatistics statistics = device->statistics();
  EXPECT_EQ(statistics.lines + statistics.clean_lines, line_count);
  EXPECT_EQ(statistics.fences, kThreads * kRounds * kFences);
  EXPECT_LE(statistics.busy_ns, device->clock().now_ns() + kAheadNs + ModelDevice::kLateWallNs / kDilation);
  EXPECT_LE(statistics.taken_until_ns, device->clock().now_ns() + kAheadNs);
}

}  // namespace
}  // namespace persist
