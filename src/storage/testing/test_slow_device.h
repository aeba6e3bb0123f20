// For tests: a device that keeps nothing, and whose flushes end when a test says so.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/text.h"
#include "storage/device.h"

namespace storage {

class SlowDevice final : public Device {
 public:
  SlowDevice() {
    capacity_bytes_ = 1 << 20;
    base::TextRef(name_, sizeof name_) << "slow";
  }

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
  class SlowQueue final : public Queue {
   public:
    SlowQueue(SlowDevice& device, size_t depth) : Queue(device, depth), slow_(device) {}

   private:
    void do_start(Io& io) override {
      if (io.operation == Operation::kFlush)
        io.error = slow_.flush();
      else
        io.transferred_bytes = io.length_bytes;
      complete(io);
    }
    void do_poll(bool) override {}
    void do_close() override { delete this; }

    SlowDevice& slow_;
  };
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse&) override {
    return new SlowQueue(*this, depth);
  }
  void do_close() override {}

  int flush() {
    std::unique_lock lock(lock_);
    const int own = ++begun_count_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return allowed_count_ >= own; });
    return error_;
  }

  std::mutex lock_;
  std::condition_variable changed_;
  int begun_count_ = 0;
  int allowed_count_ = 0;
  int error_ = 0;
};

}  // namespace storage
