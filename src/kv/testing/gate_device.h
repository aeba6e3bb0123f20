// For tests: a device in memory that holds a read or a write back until the test lets it go on.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/text.h"
#include "kv/testing/medium_device.h"

namespace kv {

// hold_next_read() makes the next read of one thread wait, before it has read anything, until let_through(); hold_next_write() its next write.
class GateDevice final : public MediumDevice {
 public:
  explicit GateDevice(uint64_t bytes) : MediumDevice(std::vector<std::byte>(bytes)) {
    base::TextRef(name_, sizeof name_) << "gate";
  }

  // The calling thread's.
  void hold_next_read() { hold_next(storage::Operation::kRead); }
  void hold_next_write() { hold_next(storage::Operation::kWrite); }
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
  void hold_next(storage::Operation operation) {
    std::lock_guard scope(lock_);
    held_ = std::this_thread::get_id();
    held_operation_ = operation;
  }
  int before(const storage::Io& io) override {
    std::unique_lock scope(lock_);
    if (io.operation != held_operation_ || held_ != std::this_thread::get_id()) return 0;
    held_ = {};
    is_held_ = true;
    changed_.notify_all();
    changed_.wait(scope, [&] { return is_open_; });
    return 0;
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::thread::id held_;
  storage::Operation held_operation_ = storage::Operation::kRead;
  bool is_held_ = false, is_open_ = false;
};

}  // namespace kv
