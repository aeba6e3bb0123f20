#include "sys/lock.h"

#include <linux/futex.h>
#include <time.h>

#include "sys/kernel.h"

namespace sys {

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns) {
  timespec timeout = {static_cast<time_t>(timeout_ns / 1'000'000'000),
                      static_cast<long>(timeout_ns % 1'000'000'000)};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_ns != 0 ? &timeout : nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, uint32_t count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

void Mutex::lock_slow() {
  for (int spins = 0; spins < 100; ++spins) {
    uint32_t expected = 0;
    if (word_.load(std::memory_order_relaxed) == 0 &&
        word_.compare_exchange_weak(expected, 1, std::memory_order_acquire))
      return;
    __builtin_ia32_pause();
  }
  while (word_.exchange(2, std::memory_order_acquire) != 0) futex_wait(word_, 2);
}

}  // namespace sys
