// Mutex and event count over futexes, for the runtime: no allocation, no libc, safe before main.
#pragma once
#include <atomic>
#include <cstdint>

#include "sys/signals.h"

namespace sys {

// Sleeps while word == expected (until woken, or spuriously). timeout_ns 0 waits without limit.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns = 0);
void futex_wake(std::atomic<uint32_t>& word, uint32_t count);

// A lock of one word: 0 free, 1 held, 2 held and waited for. Spins briefly, then sleeps.
// Not recursive. Cost: one compare-and-swap when free.
class Mutex {
 public:
  void lock() {
    uint32_t expected = 0;
    // Pairs with the release in unlock().
    if (!word_.compare_exchange_strong(expected, 1, std::memory_order_acquire)) lock_slow();
  }
  bool try_lock() {
    uint32_t expected = 0;
    return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire);
  }
  void unlock() {
    if (word_.exchange(0, std::memory_order_release) == 2) futex_wake(word_, 1);
  }

 private:
  void lock_slow();
  std::atomic<uint32_t> word_{0};
};

template <class Lock>
class LockGuard {
 public:
  explicit LockGuard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

// Holds a lock that signal handlers take, too. Meanwhile this thread runs no handlers, except of signals that its own instructions raise.
template <class Lock>
class QuietLockGuard {
 public:
  explicit QuietLockGuard(Lock& lock) : guard_(lock) {}

 private:
  const BlockedSignals blocked_{kSentSignals};  // before the lock is taken, and until it is free
  const LockGuard<Lock> guard_;
};

// Lets threads sleep until "something happened": key = prepare(), check the condition, then wait(key), or cancel() if it
// holds. Whoever changes the condition calls notify_all() afterwards.
class EventCount {
 public:
  uint32_t prepare() {
    waiters_.fetch_add(1, std::memory_order_seq_cst);  // pairs with the load in notify_all()
    return epoch_.load(std::memory_order_acquire);
  }
  void cancel() { waiters_.fetch_sub(1, std::memory_order_relaxed); }
  // timeout_ns 0 waits without limit. Returns after a notify_all() or notify_one() since prepare(), the timeout, or spuriously.
  void wait(uint32_t key, uint64_t timeout_ns = 0) {
    if (epoch_.load(std::memory_order_acquire) == key) futex_wait(epoch_, key, timeout_ns);
    cancel();
  }
  void notify_all() { notify(~uint32_t{0} >> 1); }
  // Wakes one waiting thread, if there is any; more than one may return from wait().
  void notify_one() { notify(1); }

 private:
  void notify(uint32_t count) {
    epoch_.fetch_add(1, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_relaxed) != 0) futex_wake(epoch_, count);
  }

  std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> waiters_{0};
};

}  // namespace sys
