// What holds in whichever way a thread flushes.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "persist/test_runtime.h"
#include "persist/test_shadow.h"

namespace persist {
namespace {

class WayTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, WayTest, testing::ValuesIn(kOwnWays),
                         [](const auto& way) { return name_of(way.param); });

// What was stored, flushed and fenced is durable, whatever came between.
TEST_P(WayTest, WhatWasFlushedIsDurableAfterTheFence) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Own runtime(GetParam());
    ShadowDevice device(1 << 16, seed);
    ASSERT_TRUE(runtime->add_domain(device.domain()));
    Thread* const thread = runtime->enter();
    std::mt19937_64 random(seed);
    const uint64_t lines = uint64_t{1} << (3 * seed % 11);
    std::set<uint64_t> flushed;
    for (uint64_t step = 1; step < 8'000; ++step) {
      const uint64_t number = random() % lines;
      char* const at = device.memory() + number * base::kLineBytes;
      switch (random() % 16) {
        case 0: {
          ASSERT_TRUE(thread->fence());
          for (const uint64_t line : flushed)
            ASSERT_TRUE(device.is_durable(device.memory() + line * base::kLineBytes, base::kLineBytes))
                << line;
          flushed.clear();
          break;
        }
        case 1: thread->sample_store(reinterpret_cast<uintptr_t>(at)); break;
        case 2: {
          const uint64_t end = std::min(lines, number + 1 + random() % 20);
          thread->flush(reinterpret_cast<uintptr_t>(at) + random() % 64, (end - number - 1) * 64 + 1);
          for (uint64_t i = number; i < end; ++i) flushed.insert(i);
          break;
        }
        case 3:
          thread->flush_ordered(reinterpret_cast<uintptr_t>(at));
          ASSERT_TRUE(device.is_durable(at, base::kLineBytes));
          flushed.insert(number);
          break;
        default:
          store(at + random() % 8 * 8, step);
          flushed.erase(number);
          if (random() % 4 != 0) {
            thread->flush(reinterpret_cast<uintptr_t>(at) + random() % 64);
            flushed.insert(number);
          }
      }
    }
    EXPECT_TRUE(runtime->leave(thread));
  }
}

TEST_P(WayTest, AThreadThatLeavesHasFencedWhatItFlushed) {
  Own runtime(GetParam());
  ShadowDevice device(1 << 16);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  std::thread([&] {
    Thread* const thread = runtime->enter();
    for (int again = 0; again < 3; ++again)
      for (uint64_t i = 0; i < 100; ++i) {
        store(device.memory() + i * 64, i + 1);
        thread->flush(device.begin() + i * 64);
      }
    ASSERT_TRUE(runtime->leave(thread));
  }).join();
  EXPECT_TRUE(device.is_durable(device.memory(), 6400));
  EXPECT_EQ(runtime->counts().asked_lines, 300u);
}

// Threads on lines of their own, and on some that they share; meanwhile ways change, and domains come and go.
TEST_P(WayTest, ThreadsDoNotDisturbEachOther) {
  Own runtime(GetParam());
  ShadowDevice device(1 << 18);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  constexpr uint64_t kThreads = 4, kLinesEach = 512;
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    const auto memory = std::make_unique<char[]>(1 << 16);
    const uintptr_t begin = base::round_up(reinterpret_cast<uintptr_t>(memory.get()), 64);
    while (!is_over.load()) {
      ASSERT_TRUE(runtime->add_domain({.begin = begin, .end = begin + 4096}));
      std::this_thread::yield();
      ASSERT_TRUE(runtime->remove_domain(begin, begin + 4096).value());
    }
  });
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      Thread* const thread = runtime->enter();
      ASSERT_NE(thread, nullptr);
      char* const own = device.memory() + t * kLinesEach * 64;
      char* const shared = device.memory() + kThreads * kLinesEach * 64;
      for (uint64_t round = 1; round < 400; ++round) {
        if (round % 64 == 0 && GetParam() == Way::kDecoupled)
          ASSERT_TRUE(thread->set_way(round % 128 == 0 ? Way::kEpoch : Way::kDecoupled));
        std::set<uint64_t> lines;
        for (uint64_t i = 0; i < random() % 40; ++i) {
          const uint64_t line = random() % (round % 2 == 0 ? 16 : kLinesEach);
          lines.insert(line);
          store(own + line * 64, round << 32 | i);
          thread->flush(reinterpret_cast<uintptr_t>(own) + line * 64);
          store(shared + random() % 64 * 64 + t * 8, round);
          thread->flush(reinterpret_cast<uintptr_t>(shared) + random() % 64 * 64);
        }
        ASSERT_TRUE(thread->fence());
        for (const uint64_t line : lines)
          ASSERT_TRUE(device.is_durable(own + line * 64, 64)) << t << ' ' << round;
      }
      ASSERT_TRUE(runtime->leave(thread));
    });
  for (std::thread& thread : threads) thread.join();
  is_over = true;
  other.join();
}

// A mapping goes away between the flush and the fence: hardware would have written its lines back before.
TEST_P(WayTest, AMappingMayGoBeforeTheFence) {
  Own runtime(GetParam());
  constexpr size_t kBytes = 1 << 14;
  const auto map = [] {
    return mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  std::atomic<int> turn{0};
  void* memory = nullptr;
  // This thread has put lines off while the other one takes their memory away.
  std::thread waiting([&] {
    Thread* const thread = runtime->enter();
    for (int round = 0; round < 200; ++round) {
      while (turn.load() != 2 * round + 1) std::this_thread::yield();
      for (int again = 0; again < 3; ++again) thread->flush(reinterpret_cast<uintptr_t>(memory), kBytes);
      turn.store(2 * round + 2);
      if (round % 2 == 0) std::this_thread::yield();
      ASSERT_TRUE(thread->fence());
    }
    ASSERT_TRUE(runtime->leave(thread));
  });
  for (int round = 0; round < 200; ++round) {
    memory = map();
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    ASSERT_TRUE(runtime->add_domain({.begin = begin, .end = begin + kBytes}));
    turn.store(2 * round + 1);
    while (turn.load() != 2 * round + 2) std::this_thread::yield();
    ASSERT_TRUE(runtime->remove_domain(begin, begin + kBytes).value());
    munmap(memory, kBytes);
  }
  waiting.join();
}

// A child has its parent's domains, flushes by itself, and starts flushers of its own when it needs some.
TEST_P(WayTest, AChildGoesOn) {
  if (kIsThreadSanitizer)
    GTEST_SKIP() << "the thread sanitizer takes no threads in children of a process that has some";
  Own runtime(GetParam());
  ShadowDevice device(1 << 16);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  Thread* const thread = runtime->enter();
  thread->flush(device.begin(), 4096);
  ASSERT_TRUE(thread->fence());
  runtime->before_fork();
  const pid_t child = fork();
  if (child == 0) {
    runtime->after_fork_in_child(thread);
    for (int round = 0; round < 50; ++round) {
      store(device.memory() + round * 64, 9);
      for (int again = 0; again < 3; ++again)
        thread->flush(device.begin() + static_cast<uintptr_t>(round) * 64);
      if (!thread->fence() || !device.is_durable(device.memory() + round * 64, 8)) _exit(1);
    }
    _exit(thread->set_way(Way::kDecoupled) ? 0 : 2);
  }
  runtime->after_fork_in_parent();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  store(device.memory(), 10);
  thread->flush(device.begin());
  ASSERT_TRUE(thread->fence());
  EXPECT_TRUE(device.is_durable(device.memory(), 8));
}

}  // namespace
}  // namespace persist
