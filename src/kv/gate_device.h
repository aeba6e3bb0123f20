// For tests: a device in memory at which a read can be held.
#pragma once
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "base/text.h"
#include "storage/device.h"

namespace kv {

// A device in memory at which one thread's next read waits, before it has read anything, until it is let through.
class GateDevice final : public storage::Device {
 public:
  explicit GateDevice(uint64_t bytes) : medium_(bytes) {
    capacity_bytes_ = bytes;
    counted_ = false;
    base::TextRef(name_, sizeof name_) << "gate";
  }

  // Of the calling thread.
  void hold_next_read() {
    std::lock_guard scope(lock_);
    held_ = std::this_thread::get_id();
  }
  void wait_until_held() {
    std::unique_lock scope(lock_);
    changed_.wait(scope, [&] { return is_held_; });
  }
  void let_through() {
    std::lock_guard scope(lock_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  class GateQueue final : public storage::Queue {
   public:
    GateQueue(GateDevice& device, size_t depth) : Queue(device, depth), gate_(device) {}

   private:
    void do_start(storage::Io& io) override {
      gate_.perform(io);
      io.transferred_bytes = io.length_bytes;
      complete(io);
    }
    void do_poll(bool) override {}
    void do_close() override { delete this; }

    GateDevice& gate_;
  };

  base::Expected<storage::Queue*> do_open_queue(size_t depth, const storage::QueueUse&) override {
    return new GateQueue(*this, depth);
  }
  void do_close() override { delete this; }

  void perform(const storage::Io& io) {
    std::unique_lock scope(lock_);
    const bool reads = io.operation == storage::Operation::kRead;
    if (reads && held_ == std::this_thread::get_id()) {
      held_ = {};
      is_held_ = true;
      changed_.notify_all();
      changed_.wait(scope, [&] { return is_open_; });
    }
    uint64_t at = io.offset_bytes;
    for (uint32_t i = 0; i < io.segment_count; ++i) {
      const iovec& segment = io.segments[i];
      if (reads)
        memcpy(segment.iov_base, &medium_[at], segment.iov_len);
      else
        memcpy(&medium_[at], segment.iov_base, segment.iov_len);
      at += segment.iov_len;
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::byte> medium_;
  std::thread::id held_;
  bool is_held_ = false, is_open_ = false;
};

}  // namespace kv
