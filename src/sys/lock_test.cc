#include "sys/lock.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "sys/kernel.h"

namespace sys {
namespace {

constexpr int kThreads = 4;

TEST(Mutex, ExcludesUnderContention) {
  constexpr uint64_t kRounds = 50000;
  Mutex mutex;
  uint64_t plain[3] = {};  // guarded by mutex; differ if two threads were ever inside
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kRounds; ++i) {
        LockGuard guard(mutex);
        uint64_t old = plain[0];
        ASSERT_EQ(plain[1], old);
        ASSERT_EQ(plain[2], old);
        plain[0] = old + 1;
        if (i % 1024 == 0) std::this_thread::yield();
        plain[1] = old + 1;
        plain[2] = old + 1;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(plain[0], kThreads * kRounds);
}

// Holders sleep while they have the lock, so that the others stop spinning and sleep in the kernel.
TEST(Mutex, WakesEverySleeper) {
  Mutex mutex;
  int entered = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        LockGuard guard(mutex);
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        ++entered;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(entered, kThreads * 20);
}

// A lost wake-up leaves a consumer asleep for ever, and the test times out.
TEST(EventCount, NoNotificationIsLost) {
  constexpr uint64_t kItems = 20000;
  EventCount produced, consumed;
  std::atomic<uint64_t> made{0}, taken{0};
  std::atomic<uint64_t> sum{0};
  std::vector<std::jthread> consumers;
  for (int t = 0; t < kThreads - 1; ++t) {
    consumers.emplace_back([&] {
      while (true) {
        uint64_t mine = taken.load();
        if (mine == kItems) return;
        if (mine < made.load()) {
          if (taken.compare_exchange_strong(mine, mine + 1)) {
            sum += mine;
            consumed.notify_all();
            if (mine + 1 == kItems) produced.notify_all();
          }
          continue;
        }
        uint32_t key = produced.prepare();
        if (taken.load() == made.load() && taken.load() != kItems)
          produced.wait(key);
        else
          produced.cancel();
      }
    });
  }
  for (uint64_t i = 0; i < kItems; ++i) {
    while (made.load() - taken.load() >= 8) {  // a bounded queue: the producer sleeps as well
      uint32_t key = consumed.prepare();
      if (made.load() - taken.load() >= 8)
        consumed.wait(key);
      else
        consumed.cancel();
    }
    made.fetch_add(1);
    produced.notify_all();
  }
  consumers.clear();
  EXPECT_EQ(sum.load(), kItems * (kItems - 1) / 2);
}

TEST(EventCount, WaitEndsWhenNotifiedBeforeItBegan) {
  EventCount event;
  uint32_t key = event.prepare();
  event.notify_all();
  event.wait(key);
}

TEST(EventCount, WaitEndsAtItsTimeout) {
  EventCount event;
  const uint64_t begin_ns = monotonic_ns();
  event.wait(event.prepare(), 1'000'000);
  EXPECT_GE(monotonic_ns() - begin_ns, 1'000'000u);
}

TEST(Futex, ReturnsWhenTheWordDiffersAlready) {
  std::atomic<uint32_t> word{5};
  futex_wait(word, 4);
  futex_wake(word, 1);
}

int quiet_signals = 0;

TEST(QuietLockGuard, SignalsWaitUntilTheLockIsFree) {
  quiet_signals = 0;
  Mutex mutex;
  struct sigaction action = {}, old;
  action.sa_handler = [](int) { ++quiet_signals; };
  sigaction(SIGUSR1, &action, &old);
  {
    QuietLockGuard scope(mutex);
    raise(SIGUSR1);
    EXPECT_EQ(quiet_signals, 0);
    EXPECT_FALSE(mutex.try_lock());
  }
  sigprocmask(SIG_BLOCK, nullptr, nullptr);  // the thread sanitizer calls handlers in calls of the C library
  EXPECT_EQ(quiet_signals, 1);
  EXPECT_TRUE(mutex.try_lock());
  sigaction(SIGUSR1, &old, nullptr);
}

TEST(QuietLockGuard, WhatAnInstructionRaisesDoesNotWait) {
  Mutex mutex;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    quiet_signals = 0;
    struct sigaction action = {}, old;
    action.sa_handler = [](int) { ++quiet_signals; };
    sigaction(signal, &action, &old);
    {
      QuietLockGuard scope(mutex);
      raise(signal);
      EXPECT_EQ(quiet_signals, 1) << signal;
    }
    sigaction(signal, &old, nullptr);
  }
}

}  // namespace
}  // namespace sys
