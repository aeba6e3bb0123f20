// For tests: a device in memory that holds a read back until the test lets it go on.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/text.h"
#include "kv/testing/medium_device.h"

namespace kv {

// hold_next_read() makes the next read of one thread wait, before it has read anything, until let_through().
class GateDevice final : public MediumDevice {
 public:
  explicit GateDevice(uint64_t bytes) : MediumDevice(std::vector<std::byte>(bytes)) {
    base::TextRef(name_, sizeof name_) << "gate";
  }

  // The calling thread's next read.
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
  int before(const storage::Io& io) override {
    std::unique_lock scope(lock_);
    if (io.operation != storage::Operation::kRead || held_ != std::this_thread::get_id()) return 0;
    held_ = {};
    is_held_ = true;
    changed_.notify_all();
    changed_.wait(scope, [&] { return is_open_; });
    return 0;
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::thread::id held_;
  bool is_held_ = false, is_open_ = false;
};

}  // namespace kv
