#include "persist/flushers.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "persist/test_runtime.h"
#include "persist/test_shadow.h"
#include "sys/threads.h"

namespace persist {
namespace {

// A device that keeps all but its owner's thread inside until it is opened.
class ClosedDevice final : public LineDevice {
 public:
  explicit ClosedDevice(ShadowDevice& device) : device_(device) {}

  void flush(const uintptr_t* lines, size_t count) override {
    inside_.fetch_add(1);
    while (std::this_thread::get_id() != owner_ && !is_open_.load()) std::this_thread::yield();
    device_.flush(lines, count);
  }
  void fence() override { device_.fence(); }
  void open() { is_open_.store(true); }
  void shut() {
    inside_.store(0);
    is_open_.store(false);
  }
  void wait_for_somebody() const {
    while (inside_.load() == 0) std::this_thread::yield();
  }
  Domain domain() {
    return {.begin = device_.begin(),
            .end = device_.begin() + device_.bytes(),
            .kind = DomainKind::kDevice,
            .device = this};
  }

 private:
  ShadowDevice& device_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<bool> is_open_{false};
  std::atomic<uint32_t> inside_{0};
};

// If flushers cannot keep up, the thread that flushes does the rest.
TEST(Flushers, AFullQueueLosesNothing) {
  Own runtime(Way::kDecoupled);
  ShadowDevice shadow(1 << 18);
  ClosedDevice device(shadow);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  Thread* const thread = runtime->enter();
  constexpr uint64_t kLines = 3 * Fifo::kLines;
  for (uint64_t i = 0; i < kLines; ++i) {
    store(shadow.memory() + i * 64, i + 1);
    thread->flush(shadow.begin() + i * 64);
  }
  EXPECT_GE(thread->counts().executed_lines, kLines / 2);
  device.open();
  ASSERT_TRUE(thread->fence());
  EXPECT_TRUE(shadow.is_durable(shadow.memory(), kLines * 64));
  EXPECT_EQ(thread->counts().executed_lines + thread->counts().pushed_lines, kLines);
}

// A domain of memory that can be unmapped.
class Mapping {
 public:
  Mapping(Runtime& runtime, size_t bytes)
      : runtime_(runtime),
        bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_TRUE(runtime_.add_domain({.begin = begin(), .end = begin() + bytes_}));
  }
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(memory_); }
  // Another thread removes and unmaps it, which must not end before the device lets go of who is inside it.
  void expect_to_stay_until_open(ClosedDevice& device) const {
    std::atomic<bool> is_gone{false};
    std::thread other([&] {
      ASSERT_TRUE(runtime_.remove_domain(begin(), begin() + bytes_).value());
      munmap(memory_, bytes_);
      is_gone = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(is_gone.load());
    device.open();
    other.join();
  }

 private:
  Runtime& runtime_;
  const size_t bytes_;
  void* const memory_;
};

// A flusher has claimed lines of a mapping and is held up before it gets to them: the mapping goes only when they are done.
TEST(Flushers, AMappingStaysWhileFlushersAreAtIt) {
  constexpr size_t kBytes = 1 << 14;
  for (int round = 0; round < 5; ++round) {
    Own runtime(Way::kDecoupled, 1);
    ShadowDevice shadow(1 << 14);
    ClosedDevice device(shadow);
    ASSERT_TRUE(runtime->add_domain(device.domain()));
    const Mapping mapping(*runtime, kBytes);
    const uintptr_t begin = mapping.begin();
    Thread* const thread = runtime->enter();
    // Memory, the device, memory: however much the flusher claims at a time, some of it comes after the line that holds it up.
    thread->flush(begin, 512);
    thread->flush(shadow.begin());
    thread->flush(begin, kBytes);
    device.wait_for_somebody();
    mapping.expect_to_stay_until_open(device);
    ASSERT_TRUE(thread->fence());
    ASSERT_TRUE(runtime->leave(thread));
  }
}

// A fence during the removal of its domain returns only when its lines are durable, whatever the removal is waiting for.
TEST(Flushers, AFenceBesideARemovalWaitsForIt) {
  for (const Way way : {Way::kEpoch, Way::kDecoupled}) {
    Own runtime(way, 4);
    ShadowDevice shadow(1 << 14), removed(1 << 14);
    ClosedDevice device(shadow);
    ASSERT_TRUE(runtime->add_domain(device.domain()));
    ASSERT_TRUE(runtime->add_domain(removed.domain()));
    Thread* const thread = runtime->enter();
    // The line was flushed several times in the last epoch, so it is put off from its first flush on.
    for (uint64_t again = 1; again <= 4; ++again) {
      if (again == 4) ASSERT_TRUE(thread->fence());
      store(removed.memory(), again);
      thread->flush(removed.begin());
    }
    // Another thread stands in the middle of its fence.
    device.open();
    std::atomic<bool> has_flushed{false};
    std::thread slow([&] {
      Thread* const other = runtime->enter();
      for (int again = 0; again < 3; ++again) other->flush(shadow.begin());
      device.shut();
      has_flushed = true;
      ASSERT_TRUE(other->fence());
      ASSERT_TRUE(runtime->leave(other));
    });
    while (!has_flushed.load()) std::this_thread::yield();
    device.wait_for_somebody();
    std::thread removing([&] {
      ASSERT_TRUE(runtime->remove_domain(removed.begin(), removed.begin() + removed.bytes()).value());
    });
    // The removal waits; if it did not, the domain would soon be gone.
    for (int i = 0; i < 100 && runtime->domains().find(removed.begin()).is_inside; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::thread opening([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      device.open();
    });
    ASSERT_TRUE(thread->fence());
    EXPECT_TRUE(removed.is_durable(removed.memory(), 64)) << name_of(way);
    for (std::thread* const each : {&slow, &removing, &opening}) each->join();
    ASSERT_TRUE(runtime->leave(thread));
  }
}

// As for flushers, so for a fence that executes what waits.
TEST(Flushers, AMappingStaysWhileAFenceIsAtIt) {
  constexpr size_t kBytes = 1 << 12;
  Own runtime(Way::kDecoupled, 1);
  ShadowDevice shadow(1 << 14);
  ClosedDevice device(shadow);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  const Mapping mapping(*runtime, kBytes);
  const uintptr_t begin = mapping.begin();
  std::thread fencing([&] {
    Thread* const thread = runtime->enter();
    thread->flush(shadow.begin());
    thread->flush(begin, kBytes / 2);
    ASSERT_TRUE(thread->fence());
    EXPECT_EQ(thread->counts().fence_lines, 1 + kBytes / 2 / base::kLineBytes);
    ASSERT_TRUE(runtime->leave(thread));
  });
  device.wait_for_somebody();
  mapping.expect_to_stay_until_open(device);
  fencing.join();
}

// These are too few lines to call anybody else for.
TEST(Flushers, AFenceExecutesWhatWaits) {
  Own runtime(Way::kDecoupled);
  ShadowDevice shadow(1 << 16);
  ClosedDevice device(shadow);  // others would stay in it
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  Thread* const thread = runtime->enter();
  uint64_t lines = 0;
  for (uint64_t epoch = 1; epoch <= 100; ++epoch) {
    for (uint64_t i = 0; i < epoch; ++i, ++lines) {
      store(shadow.memory() + i * 64, epoch);
      thread->flush(shadow.begin() + i * 64);
    }
    ASSERT_TRUE(thread->fence());
    ASSERT_TRUE(shadow.is_durable(shadow.memory(), epoch * 64)) << epoch;
    ASSERT_EQ(thread->pending(), 0u);
  }
  EXPECT_EQ(runtime->counts().pushed_lines, lines);
  EXPECT_EQ(runtime->counts().fence_lines, lines);
  EXPECT_EQ(runtime->flushers().executed_lines(), 0u);
}

// Fences flush only while no more threads hand lines over than may flush at a time; otherwise they leave it to flushers.
TEST(Flushers, NoMoreThreadsFlushThanMay) {
  for (const bool is_bound : {true, false}) {
    const uint32_t most = std::min(sys::cpu_count(), Flushers::kMaxFlushers);
    const auto runtime = std::make_unique<Runtime>();
    runtime->configure({.way = Way::kDecoupled,
                        .instruction = sys::best_line_flush(),
                        .flushers = {.least = 1, .most = is_bound ? most : 0, .period_ns = 0}});
    ShadowDevice device(1 << 12);
    ASSERT_TRUE(runtime->add_domain(device.domain()));
    std::vector<Thread*> threads;
    uint64_t by_fences = 0, by_flushers = 0;
    const auto flush_and_fence = [&](uint64_t value) {
      for (uint64_t i = 0; i < 8; ++i) {
        store(device.memory() + i * 64, value);
        threads[0]->flush(device.begin() + i * 64);
      }
      ASSERT_TRUE(threads[0]->fence());
      ASSERT_TRUE(device.is_durable(device.memory(), 512));
      // No more threads than processors run at the same time in any case.
      (threads.size() <= most || !is_bound ? by_fences : by_flushers) += 8;
      EXPECT_EQ(runtime->counts().fence_lines, by_fences) << threads.size();
    };
    while (threads.size() < most + 2) {
      threads.push_back(runtime->enter());
      flush_and_fence(threads.size());
    }
    while (threads.size() > 1) {
      ASSERT_TRUE(runtime->leave(threads.back()));
      threads.pop_back();
      flush_and_fence(threads.size());
    }
    EXPECT_EQ(runtime->counts().pushed_lines, by_fences + by_flushers);
    EXPECT_EQ(by_flushers > 0, is_bound);
    runtime->flushers().stop();
  }
}

// What fences execute is part of the rate from which the number of flushers is chosen.
TEST(Flushers, TheGovernorKnowsWhatFencesExecute) {
  Own runtime(Way::kDecoupled, 4);
  ShadowDevice device(1 << 12);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  Thread* const thread = runtime->enter();
  std::set<uint32_t> counts;
  for (uint64_t i = 1; i < 10'000'000 && counts.size() < 3; ++i) {
    thread->flush(device.begin());
    ASSERT_TRUE(thread->fence());
    counts.insert(runtime->flushers().count());
  }
  EXPECT_GE(counts.size(), 3u);
  EXPECT_EQ(runtime->flushers().executed_lines(), 0u);
}

// While threads come and go, fences alternate between executing what waits and waiting for flushers.
TEST(Flushers, FencesAreRightWhoeverExecutes) {
  Own runtime(Way::kDecoupled, 3);
  ShadowDevice device(1 << 17);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  constexpr uint64_t kBytesEach = 1 << 16;
  std::atomic<bool> is_over{false};
  std::thread guests([&] {
    std::mt19937_64 random(9);
    std::vector<Thread*> threads;
    while (!is_over.load()) {
      if (random() % 2 == 0 && threads.size() < 3) {
        threads.push_back(runtime->enter());
        ASSERT_NE(threads.back(), nullptr);
      } else if (!threads.empty()) {
        ASSERT_TRUE(runtime->leave(threads.back()));
        threads.pop_back();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    }
    for (Thread* const thread : threads) ASSERT_TRUE(runtime->leave(thread));
  });
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      Thread* const thread = runtime->enter();
      char* const own = device.memory() + t * kBytesEach;
      const auto begin = reinterpret_cast<uintptr_t>(own);
      // The thread also has a device of its own, whose domain goes and comes; in between it must not be touched.
      ShadowDevice other(1 << 14, t);
      for (uint64_t round = 1; round < 300; ++round) {
        ASSERT_TRUE(runtime->add_domain(other.domain()));
        const uint64_t lines = random() % (round % 8 == 0 ? 500 : 20) + 1;
        for (uint64_t i = 0; i < lines; ++i) {
          store(own + i * 64, round);
          thread->flush(begin + i * 64);
          store(other.memory() + i % 200 * 64, round);
          thread->flush(other.begin() + i % 200 * 64);
        }
        if (round % 3 == 0)
          ASSERT_TRUE(runtime->remove_domain(other.begin(), other.begin() + other.bytes()).value());
        if (round % 3 != 0) ASSERT_TRUE(thread->fence());
        ASSERT_TRUE(other.is_durable(other.memory(), std::min<uint64_t>(lines, 200) * 64)) << round;
        if (round % 3 == 0) ASSERT_TRUE(thread->fence());
        ASSERT_TRUE(device.is_durable(own, lines * 64)) << round;
        if (round % 3 != 0)
          ASSERT_TRUE(runtime->remove_domain(other.begin(), other.begin() + other.bytes()).value());
      }
      ASSERT_TRUE(runtime->leave(thread));
    });
  for (std::thread& thread : threads) thread.join();
  is_over = true;
  guests.join();
  EXPECT_GT(runtime->counts().fence_lines, 0u);
  EXPECT_GT(runtime->flushers().executed_lines(), 0u);
}

}  // namespace
}  // namespace persist
