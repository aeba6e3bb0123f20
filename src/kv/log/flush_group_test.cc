#include "kv/log/flush_group.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace kv {
namespace {

// Its flushes end when they are allowed to.
class SlowDevice final : public storage::Device {
 public:
  SlowDevice() { capacity_bytes_ = 1 << 20; }

  void wait_until_begun(int count) {
    std::unique_lock lock(lock_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return begun_count_ >= count; }));
  }
  // The flushes up to this one end, with an error or 0.
  void allow(int count, int error = 0) {
    std::lock_guard scope(lock_);
    allowed_count_ = count;
    error_ = error;
    changed_.notify_all();
  }
  int begun_count() {
    std::lock_guard scope(lock_);
    return begun_count_;
  }

 private:
  class SlowQueue final : public storage::Queue {
   public:
    SlowQueue(SlowDevice& device, size_t depth) : Queue(device, depth), slow_(device) {}

   private:
    void do_start(storage::Io& io) override {
      std::unique_lock lock(slow_.lock_);
      const int own = ++slow_.begun_count_;
      slow_.changed_.notify_all();
      slow_.changed_.wait(lock, [&] { return slow_.allowed_count_ >= own; });
      io.error = slow_.error_;
      complete(io);
    }
    void do_poll(bool) override {}
    void do_close() override { delete this; }

    SlowDevice& slow_;
  };
  base::Expected<storage::Queue*> do_open_queue(size_t depth, const storage::QueueUse&) override {
    return new SlowQueue(*this, depth);
  }
  void do_close() override {}

  std::mutex lock_;
  std::condition_variable changed_;
  int begun_count_ = 0;
  int allowed_count_ = 0;
  int error_ = 0;
};

TEST(FlushGroup, WhoComesDuringAFlushSharesTheNext) {
  SlowDevice device;
  FlushGroup group;
  std::atomic<int> done_count{0}, error_count{0};
  const auto flush = [&] {
    Channel channel;
    ASSERT_TRUE(channel.open(device, 1));
    if (group.flush(channel) != 0) ++error_count;
    ++done_count;
    channel.close();
  };
  std::thread first(flush);
  device.wait_until_begun(1);
  std::vector<std::thread> late;
  for (int i = 0; i < 5; ++i) late.emplace_back(flush);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until they wait, or nearly
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
  EXPECT_LE(device.begun_count(), 6);
  device.close();
}

// What it has lost nobody knows: it may be what another call wrote meanwhile, and the next flush would say nothing of it.
TEST(FlushGroup, NoneSucceedsAfterOneThatFailed) {
  SlowDevice device;
  FlushGroup group;
  const auto flush = [&] {
    Channel channel;
    EXPECT_TRUE(channel.open(device, 1));
    EXPECT_EQ(group.flush(channel), EIO);
    channel.close();
  };
  std::thread first(flush);
  device.wait_until_begun(1);
  std::thread late(flush);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it waits, or nearly
  device.allow(1, EIO);
  first.join();
  device.allow(100);
  late.join();
  flush();
  EXPECT_EQ(group.error(), EIO);
  EXPECT_EQ(device.begun_count(), 1) << "nothing would come of it";
  device.close();
}

}  // namespace
}  // namespace kv
