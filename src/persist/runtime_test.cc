#include "persist/runtime.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "persist/test_runtime.h"
#include "persist/test_shadow.h"

namespace persist {
namespace {

// A fence waits for every device, even for one whose lines were put off while lines went to more devices than a thread remembers.
TEST(Runtime, LinesThatArePutOffAreDurableOnEveryDevice) {
  Own runtime(Way::kEpoch);
  constexpr int kDevices = 7;
  std::vector<std::unique_ptr<ShadowDevice>> devices;
  for (int i = 0; i < kDevices; ++i) {
    devices.push_back(std::make_unique<ShadowDevice>(1 << 12));
    ASSERT_TRUE(runtime->add_domain(devices.back()->domain()));
  }
  Thread* const thread = runtime->enter();
  for (uint64_t epoch = 1; epoch < 8; ++epoch) {
    for (int again = 0; again < 2; ++again)
      for (const auto& device : devices) {
        store(device->memory(), 2 * epoch + static_cast<uint64_t>(again));
        thread->flush(device->begin());
      }
    ASSERT_TRUE(thread->fence());
    for (const auto& device : devices) EXPECT_TRUE(device->is_durable(device->memory(), 64)) << epoch;
  }
  ASSERT_TRUE(runtime->leave(thread));
}

// Handing over to other threads is tried where it may pay: on devices, and nowhere else.
TEST(Runtime, AutoTriesFlushersOnDevices) {
  for (const bool is_device : {true, false}) {
    Own runtime(Way::kAuto);
    ShadowDevice device(1 << 16);
    Domain domain = device.domain();
    if (!is_device) domain.kind = DomainKind::kMemory;
    ASSERT_TRUE(runtime->add_domain(domain));
    // This starts flushers in either case.
    ShadowDevice unused(1 << 12);
    ASSERT_TRUE(runtime->add_domain(unused.domain()));
    Thread* const thread = runtime->enter();
    bool was_proactive = false;
    // Long enough for a trial of four ways, and more.
    for (uint64_t fence = 0; fence < uint64_t{6} * Policy::kRounds * 2 * Policy::kWindowFences; ++fence) {
      for (uint64_t i = 0; i < 8; ++i) {
        store(device.memory() + i * 64, fence);
        thread->flush(device.begin() + i * 64);
      }
      ASSERT_TRUE(thread->fence());
      if (is_device) ASSERT_TRUE(device.is_durable(device.memory(), 512));
      was_proactive |= thread->way() == Way::kProactive;
    }
    EXPECT_EQ(runtime->counts().pushed_lines > 0, is_device);
    EXPECT_EQ(was_proactive, is_device);
    EXPECT_TRUE(runtime->flushers().are_running());
    ASSERT_TRUE(runtime->leave(thread));
  }
}

// Threads all begin to hand their lines over, and all stop, in the middle of their work.
TEST(Runtime, ThreadsOnDevicesHandOverTogether) {
  Own runtime(Way::kAuto);
  ShadowDevice device(1 << 16);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  std::atomic<bool> is_over{false};
  std::atomic<uint32_t> together_count{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      Thread* const thread = runtime->enter();
      char* const own = device.memory() + t * 1024;
      bool has_been = false;
      for (uint64_t round = 1; !is_over.load(); ++round) {
        for (uint64_t i = 0; i < 8; ++i) {
          store(own + i * 64, round);
          thread->flush(reinterpret_cast<uintptr_t>(own) + i * 64);
        }
        ASSERT_TRUE(thread->fence());
        ASSERT_TRUE(device.is_durable(own, 512));
        if (runtime->flushers().are_together() && thread->way() == Way::kDecoupled && !has_been) {
          has_been = true;
          ++together_count;
        }
      }
      ASSERT_TRUE(runtime->leave(thread));
    });
  const auto wait_for = [](const auto& condition) {
    for (int i = 0; i < 60'000 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return condition();
  };
  EXPECT_TRUE(wait_for([&] { return together_count.load() == 2; }));
  EXPECT_TRUE(wait_for([&] { return !runtime->flushers().are_together(); }));
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Runtime, HotLinesAreExecutedOnceAFence) {
  Own runtime(Way::kEpoch);
  ShadowDevice device(1 << 16);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  Thread* const thread = runtime->enter();
  for (int fence = 0; fence < 100; ++fence) {
    for (int i = 0; i < 64; ++i) thread->flush(device.begin() + static_cast<uintptr_t>(i % 4) * 64);
    ASSERT_TRUE(thread->fence());
  }
  // Each line was written back twice in the first epoch, when nothing was known yet.
  EXPECT_EQ(device.flushed_lines(), 4u * 100 + 4);
  EXPECT_EQ(runtime->counts().asked_lines, 6'400u);
  EXPECT_EQ(runtime->counts().executed_lines, 404u);
  EXPECT_EQ(runtime->counts().fences, 100u);
}

// Lines are put off without a fence until long after the list is full.
TEST(Runtime, MoreLinesArePutOffThanTheListHolds) {
  Own runtime(Way::kEpoch);
  ShadowDevice device(1 << 16);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  Thread* const thread = runtime->enter();
  for (uint64_t round = 1; round <= 3; ++round) {
    for (uint64_t i = 0; i < 5 * LineSet::kListLines; ++i)
      for (uint64_t again = 0; again < 3; ++again) {
        store(device.memory() + i * 64, round * 10 + again);
        thread->flush(device.begin() + i * 64);
      }
    ASSERT_TRUE(thread->fence());
    ASSERT_TRUE(device.is_durable(device.memory(), 5 * LineSet::kListLines * 64)) << round;
  }
  EXPECT_LE(device.flushed_lines(), 3u * 2 * 5 * LineSet::kListLines);
}

// As for queues of storage: what one Thread has put off is not another's.
TEST(Runtime, SeveralInOneThreadAreApart) {
  Own runtime(Way::kEpoch);
  ShadowDevice device(1 << 16);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  Thread* const one = runtime->enter();
  Thread* const other = runtime->enter();
  for (int i = 0; i < 3; ++i) one->flush(device.begin());
  EXPECT_EQ(one->pending(), 1u);
  EXPECT_EQ(other->pending(), 0u);
  other->flush(device.begin() + 64);
  store(device.memory(), 5);
  ASSERT_TRUE(other->fence());
  EXPECT_EQ(one->pending(), 1u);
  ASSERT_TRUE(one->fence());
  EXPECT_TRUE(device.is_durable(device.memory(), 8));
  EXPECT_EQ(one->pending(), 0u);
}

TEST(Runtime, AFlushInNoDomainIsExecutedWhereItStands) {
  for (const Way way : kOwnWays) {
    Own runtime(way);
    Thread* const thread = runtime->enter();
    alignas(64) static char line[128];
    thread->flush(reinterpret_cast<uintptr_t>(line));
    thread->flush(reinterpret_cast<uintptr_t>(line), 128);
    EXPECT_TRUE(thread->fence());
    EXPECT_EQ(thread->counts().outside_lines, 3u);
    EXPECT_EQ(thread->counts().executed_lines, 3u);
  }
}

TEST(Runtime, WhereCachesAreSavedFlushesFallAway) {
  Own runtime(Way::kInline);
  alignas(64) static char memory[4096];
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  ASSERT_TRUE(
      runtime->add_domain({.begin = begin, .end = begin + sizeof memory, .kind = DomainKind::kFlushOnFail}));
  Thread* const thread = runtime->enter();
  thread->flush(begin, sizeof memory);
  thread->flush_ordered(begin);
  EXPECT_TRUE(thread->fence());
  EXPECT_EQ(thread->counts().asked_lines, 65u);
  EXPECT_EQ(thread->counts().executed_lines, 0u);
}

TEST(Runtime, WhatAnotherThreadHasPutOffIsDurableWhenItsDomainIsRemoved) {
  Own runtime(Way::kEpoch);
  ShadowDevice device(1 << 16);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  Thread* const thread = runtime->enter();
  for (int again = 0; again < 3; ++again) thread->flush(device.begin());
  store(device.memory(), 77);
  std::thread([&] {
    ASSERT_TRUE(runtime->remove_domain(device.begin(), device.begin() + 64).value());
  }).join();
  EXPECT_TRUE(device.is_durable(device.memory(), 8));
  EXPECT_TRUE(thread->fence());
}

// What is left after the part that is removed would be one domain too many. It goes, too, and whatever was put off there is durable.
TEST(Runtime, ARemovalTakesTheRestThatThereIsNoPlaceFor) {
  Own runtime(Way::kEpoch);
  ShadowDevice device(1 << 16);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  for (uintptr_t i = 1; i < Domains::kMaxDomains; ++i)
    ASSERT_TRUE(runtime->add_domain({.begin = i * 4096, .end = i * 4096 + 64}));
  Thread* const thread = runtime->enter();
  char* const last = device.memory() + device.bytes() - 64;
  for (int again = 0; again < 3; ++again) thread->flush(reinterpret_cast<uintptr_t>(last));
  store(last, 77);
  std::thread([&] {
    ASSERT_TRUE(runtime->remove_domain(device.begin() + 4096, device.begin() + 8192).value());
  }).join();
  EXPECT_TRUE(device.is_durable(last, 8));
  EXPECT_TRUE(thread->fence());
  EXPECT_TRUE(runtime->domains().find(device.begin()).is_inside);
  EXPECT_FALSE(runtime->domains().find(reinterpret_cast<uintptr_t>(last)).is_inside);
}

// Another thread of the parent is in the middle of a sync that others may share; the child waits for nobody.
TEST(Runtime, AChildSharesNoSyncOfItsParents) {
  Own runtime;
  runtime->configure({.shares_syncs = true});
  constexpr int kDescriptor = 3;
  std::atomic<bool> is_begun{false}, may_end{false};
  std::thread syncing([&] {
    runtime->shared_syncs()->of(kDescriptor)->run([&] {
      is_begun = true;
      while (!may_end) std::this_thread::yield();
      return 0;
    });
  });
  while (!is_begun) std::this_thread::yield();
  runtime->before_fork();
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);  // ends one that waits for ever
    runtime->after_fork_in_child(nullptr);
    _exit(runtime->shared_syncs()->of(kDescriptor)->run([] { return 0; }));
  }
  runtime->after_fork_in_parent();
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  may_end = true;
  syncing.join();
}

}  // namespace
}  // namespace persist
