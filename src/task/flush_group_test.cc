#include "task/flush_group.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "storage/testing/test_slow_device.h"
#include "task/channel.h"

namespace task {
namespace {

int flush(FlushGroup& group, storage::Device& device) {
  Channel channel;
  EXPECT_TRUE(channel.open(device, 1));
  const int error = group.run([&] {
    storage::Io io;
    io.operation = storage::Operation::kFlush;
    channel.run(io);
    return io.error;
  });
  channel.close();
  return error;
}

TEST(FlushGroup, WhoComesDuringAFlushSharesTheNext) {
  storage::SlowDevice device;
  FlushGroup group;
  std::atomic<int> done_count{0}, error_count{0};
  const auto flush_one = [&] {
    if (flush(group, device) != 0) ++error_count;
    ++done_count;
  };
  std::thread first(flush_one);
  device.wait_until_begun(1);
  std::vector<std::thread> late;
  for (int i = 0; i < 5; ++i) late.emplace_back(flush_one);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until they wait, or almost
  EXPECT_EQ(device.begun_count(), 1) << "one at a time";
  device.allow(1);
  first.join();
  device.wait_until_begun(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(done_count.load(), 1) << "the first flush began before they came";
  device.allow(100, EIO);
  for (std::thread& thread : late) thread.join();
  EXPECT_EQ(done_count.load(), 6);
  EXPECT_EQ(error_count.load(), 5) << "all of a group are told how it ended";
  EXPECT_EQ(device.begun_count(), 2) << "none is begun after one that has failed";
  device.close();
}

TEST(FlushGroup, AFlushIsForAllThatWaitForIt) {
  bool is_shared = false;
  // Until two calls have waited at the same time, which on a busy machine may take several attempts.
  for (int tries = 0; tries < 100 && !is_shared; ++tries) {
    storage::SlowDevice device;
    FlushGroup group;
    const auto flush_one = [&] { EXPECT_EQ(flush(group, device), 0); };
    std::thread first(flush_one);
    device.wait_until_begun(1);
    std::vector<std::thread> late;
    for (int i = 0; i < 5; ++i) late.emplace_back(flush_one);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    device.allow(100);
    first.join();
    for (std::thread& thread : late) thread.join();
    is_shared = device.begun_count() < 6;
    device.close();
  }
  EXPECT_TRUE(is_shared);
}

// What a failed flush has lost is unknown: it may be what another call wrote meanwhile, and the next flush would not report it.
TEST(FlushGroup, NoneSucceedsAfterOneThatFailed) {
  storage::SlowDevice device;
  FlushGroup group;
  const auto fail = [&] { EXPECT_EQ(flush(group, device), EIO); };
  std::thread first(fail);
  device.wait_until_begun(1);
  std::thread late(fail);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it waits, or almost
  device.allow(1, EIO);
  first.join();
  device.allow(100);
  late.join();
  fail();
  EXPECT_EQ(group.error(), EIO);
  EXPECT_EQ(device.begun_count(), 1) << "nothing would come of it";
  device.close();
}

}  // namespace
}  // namespace task
