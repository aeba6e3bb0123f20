// Latch: lets one thread wait until others have counted it down.
#pragma once
#include "sys/lock.h"

namespace sys {

class Latch {
 public:
  explicit Latch(uint32_t count) : left_(count) {}
  // The waiting thread may destroy the latch before the last of these calls returns.
  void count_down() {
    // Pairs with the acquire in wait().
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) futex_wake(left_, 1);
  }
  void wait() {
    for (uint32_t left; (left = left_.load(std::memory_order_acquire)) != 0;) futex_wait(left_, left);
  }

 private:
  std::atomic<uint32_t> left_;
};

}  // namespace sys
