#include "storage/decorators/latency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "storage/opening/open.h"
#include "storage/testing/test_io.h"
#include "sys/kernel.h"
#include "sys/test_switches.h"

namespace storage {
namespace {

using Distribution = LatencyParameters::Distribution;

TEST(LatencyModel, Logarithm) {
  for (double x : {1.0, 0.999999, 0.75, 0.7071, 0.7072, 0.5, 0.3, 1e-3, 1e-10, std::ldexp(1.0, -53)})
    EXPECT_NEAR(minus_logarithm(x), -std::log(x), 1e-11) << x;
}

TEST(LatencyModel, DistributionsHaveTheirMeans) {
  for (Distribution distribution :
       {Distribution::kFixed, Distribution::kUniform, Distribution::kExponential}) {
    const LatencyParameters parameters = {.mean_us = 100, .distribution = distribution, .seed = 5};
    double sum = 0;
    int above_460_us = 0;
    constexpr int kCount = 100'000;
    for (int i = 0; i < kCount; ++i) {
      const uint64_t service = service_ns(parameters, static_cast<uint64_t>(i), 0);
      sum += static_cast<double>(service);
      above_460_us += service > 460'000;
      if (distribution == Distribution::kFixed) ASSERT_EQ(service, 100'000u);
      if (distribution == Distribution::kUniform) ASSERT_LE(service, 200'000u);
    }
    EXPECT_NEAR(sum / kCount, 100'000, 2'000);
    if (distribution == Distribution::kExponential) EXPECT_NEAR(above_460_us, kCount / 100, 150);
  }
}

TEST(LatencyModel, BandwidthAddsToIt) {
  const LatencyParameters parameters = {.mean_us = 10, .megabytes_per_second = 500};
  EXPECT_EQ(service_ns(parameters, 0, 0), 10'000u);
  EXPECT_EQ(service_ns(parameters, 0, 1'000'000), 10'000u + 2'000'000u);
}

TEST(LatencyModel, ChannelsWorkSideBySide) {
  LatencyModel model({.mean_us = 10, .channel_count = 2});
  EXPECT_EQ(model.due_ns(1'000'000, 0), 1'010'000u);
  EXPECT_EQ(model.due_ns(1'004'000, 0), 1'014'000u);
  EXPECT_EQ(model.due_ns(1'005'000, 0), 1'020'000u) << "after the first";
  EXPECT_EQ(model.due_ns(1'005'000, 0), 1'024'000u) << "after the second";
  EXPECT_EQ(model.due_ns(2'000'000, 0), 2'010'000u) << "idle time is not saved up";
}

TEST(LatencyModel, TheSeedDecides) {
  auto draw = [](uint64_t seed) {
    LatencyModel model(
        {.mean_us = 50, .channel_count = 3, .distribution = Distribution::kExponential, .seed = seed});
    std::vector<uint64_t> due;
    for (uint64_t i = 0; i < 200; ++i) due.push_back(model.due_ns(i * 10'000, 4096));
    return due;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

class LatencyTest : public testing::Test {
 protected:
  void open(const std::string& text) {
    auto opened = open_device(text, {});
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    device = *opened;
    queue = device->open_queue(16).value();
  }
  void TearDown() override {
    device->close_queue(queue);
    device->close();
  }
  Device* device = nullptr;
  Queue* queue = nullptr;
};

TEST_F(LatencyTest, NothingCompletesBeforeItIsDue) {
  open("latency:us=5000,channels=2:[memory:1M]");
  std::vector<std::unique_ptr<TestIo>> ios;
  std::vector<Io*> batch;
  for (uint64_t i = 0; i < 6; ++i) {
    ios.push_back(std::make_unique<TestIo>(Operation::kWrite, i * kBlock, std::vector{kBlock}));
    batch.push_back(&ios.back()->io);
  }
  const uint64_t start_ns = sys::monotonic_ns();
  ASSERT_EQ(queue->submit(batch), 6u);
  // A pair every 5 ms. wait() would sleep until then; poll() has to know it.
  for (size_t done_count = queue->poll(); done_count < 6;) {
    done_count += queue->poll();
    const uint64_t pairs_due = (sys::monotonic_ns() - start_ns) / 5'000'000;
    EXPECT_LE(done_count, 2 * pairs_due);
  }
  EXPECT_GE(sys::monotonic_ns() - start_ns, 15'000'000u);
  for (auto& io : ios) EXPECT_TRUE(io->io.whole());
}

TEST_F(LatencyTest, PollNeverWaits) {
  open("latency:us=300000:[memory:1M]");
  // Others may have the CPU until the request is due: not each time.
  uint32_t polls = 0;
  for (int tries = 0; tries < 10 && polls < 100; ++tries) {
    TestIo read(Operation::kRead, 0, {kBlock});
    Io* batch[] = {&read.io};
    const uint64_t start_ns = sys::monotonic_ns();
    ASSERT_EQ(queue->submit(batch), 1u);
    for (polls = 0; polls < 100 && queue->poll() == 0;) ++polls;
    if (polls == 100) EXPECT_EQ(queue->wait(), 1u);
    EXPECT_GE(sys::monotonic_ns() - start_ns, 300'000'000u);
  }
  EXPECT_EQ(polls, 100u) << "while nothing was due";
}

TEST_F(LatencyTest, IsQuietUntilTheEarliestIsDue) {
  open("latency:us=100000:[memory:1M]");
  EXPECT_EQ(queue->quiet().until_ns, base::Quiet::kForever);
  TestIo first(Operation::kRead, 0, {kBlock}), second(Operation::kRead, kBlock, {kBlock});
  Io* batch[] = {&first.io, &second.io};
  const uint64_t start_ns = sys::monotonic_ns();
  ASSERT_EQ(queue->submit(batch), 2u);
  queue->poll();
  const uint64_t until_ns = queue->quiet().until_ns;
  EXPECT_GE(until_ns, start_ns + 100'000'000);
  EXPECT_LE(until_ns, sys::monotonic_ns() + 100'000'000);
  EXPECT_EQ(queue->wait(), 1u);
  EXPECT_GE(queue->quiet().until_ns, until_ns + 100'000'000) << "the second is served after the first";
  EXPECT_EQ(queue->wait(), 1u);
  EXPECT_EQ(queue->quiet().until_ns, base::Quiet::kForever);
}

// The last 80 us it spins otherwise, which gives the CPU up only when it is taken away.
TEST_F(LatencyTest, WhoIsToldToSleepDoes) {
  open("latency:us=70,sleep=1:[memory:1M]");
  const uint64_t before = sys::voluntary_switches(), start_ns = sys::monotonic_ns();
  for (int i = 0; i < 20; ++i) {
    TestIo read(Operation::kRead, 0, {kBlock});
    queue->run(read.io);
    EXPECT_TRUE(read.io.whole());
  }
  EXPECT_GT(sys::voluntary_switches(), before);
  EXPECT_GE(sys::monotonic_ns() - start_ns, 20 * 70'000u);
}

// A request that is short of the model's time waits for the inner device, and others overtake it meanwhile.
TEST_F(LatencyTest, WhatTheInnerDeviceHasNotDoneIsLate) {
  open("latency:us=100,channels=16:[fault:read_delay_us=@1x20000:[memory:1M]]");
  TestIo slow(Operation::kRead, 0, {kBlock}), quick(Operation::kRead, kBlock, {kBlock});
  Io* batch[] = {&slow.io, &quick.io};
  const uint64_t start_ns = sys::monotonic_ns();
  ASSERT_EQ(queue->submit(batch), 2u);
  EXPECT_EQ(queue->wait(), 1u);
  EXPECT_EQ(quick.done_count, 1);
  EXPECT_EQ(queue->wait(), 1u);
  EXPECT_EQ(slow.done_count, 1);
  EXPECT_GE(sys::monotonic_ns() - start_ns, 20'000'000u);
}

TEST_F(LatencyTest, ResultsAreTheInnerDevices) {
  open("latency:us=10:[fault:read_eio=@1,read_short=@2,discard_enospc=@1,flush_eio=@1:[memory:1M]]");
  TestIo failed(Operation::kRead, 0, {2 * kBlock}), cut(Operation::kRead, 0, {2 * kBlock});
  queue->run(failed.io);
  queue->run(cut.io);
  EXPECT_EQ(failed.io.error, EIO);
  EXPECT_EQ(cut.io.error, 0);
  EXPECT_EQ(cut.io.transferred_bytes, kBlock);
  for (int i = 0; i < 2; ++i) {
    Io discard, flush;
    discard.operation = Operation::kDiscard;
    discard.length_bytes = kBlock;
    flush.operation = Operation::kFlush;
    queue->run(discard);
    queue->run(flush);
    EXPECT_EQ(discard.error, i == 0 ? ENOSPC : 0);
    EXPECT_EQ(flush.error, i == 0 ? EIO : 0);
  }
}

}  // namespace
}  // namespace storage
