#include "persist/runtime.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "persist/test_shadow.h"

namespace persist {
namespace {

constexpr Way kOwnWays[] = {Way::kInline, Way::kEpoch, Way::kDecoupled, Way::kProactive, Way::kAuto};

// A runtime for a test; its flushers end with it.
class Own {
 public:
  explicit Own(Way way = Way::kEpoch, uint32_t flushers = 2) {
    runtime_->configure({.way = way,
                         .instruction = sys::best_line_flush(),
                         .flushers = {.least = 1, .most = flushers, .period_ns = 20'000'000}});
  }
  ~Own() { runtime_->flushers().stop(); }
  Runtime& operator*() { return *runtime_; }
  Runtime* operator->() { return runtime_.get(); }

 private:
  std::unique_ptr<Runtime> runtime_ = std::make_unique<Runtime>();
};

#if __has_feature(thread_sanitizer)
constexpr bool kIsThreadSanitizer = true;
#else
constexpr bool kIsThreadSanitizer = false;
#endif

void store(char* at, uint64_t value) {
  reinterpret_cast<std::atomic<uint64_t>*>(at)->store(value, std::memory_order_relaxed);
}

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

// Threads on lines of their own, and on some that they share; ways change under way, and domains come and go beside them.
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

// A fence waits for every device, also for one whose lines were put off while lines went to more of them than a thread keeps in mind.
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

// Other threads are tried where they may pay: on devices, and nowhere else.
TEST(Runtime, AutoTriesFlushersOnDevices) {
  for (const bool is_device : {true, false}) {
    Own runtime(Way::kAuto);
    ShadowDevice device(1 << 16);
    Domain domain = device.domain();
    if (!is_device) domain.kind = DomainKind::kMemory;
    ASSERT_TRUE(runtime->add_domain(domain));
    Thread* const thread = runtime->enter();
    bool was_proactive = false;
    // A trial of four ways, and more.
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
    EXPECT_EQ(runtime->flushers().are_running(), is_device);
    ASSERT_TRUE(runtime->leave(thread));
  }
}

// Threads hand their lines over all at the same time, and take them back, under way.
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
  // Twice in the first epoch, when nobody knows yet.
  EXPECT_EQ(device.flushed_lines(), 4u * 100 + 4);
  EXPECT_EQ(runtime->counts().asked_lines, 6'400u);
  EXPECT_EQ(runtime->counts().executed_lines, 404u);
  EXPECT_EQ(runtime->counts().fences, 100u);
}

// Lines that are put off, without a fence until long after the list is full.
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

// Flushers that cannot keep up: who flushes does the rest.
TEST(Runtime, AFullQueueLosesNothing) {
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

// A flusher has claimed lines of a mapping and is held up before it comes to them: the mapping goes only when it is done with them.
TEST(Runtime, AMappingStaysWhileFlushersAreAtIt) {
  constexpr size_t kBytes = 1 << 14;
  for (int round = 0; round < 5; ++round) {
    Own runtime(Way::kDecoupled, 1);
    ShadowDevice shadow(1 << 14);
    ClosedDevice device(shadow);
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    ASSERT_TRUE(runtime->add_domain(device.domain()));
    ASSERT_TRUE(runtime->add_domain({.begin = begin, .end = begin + kBytes}));
    Thread* const thread = runtime->enter();
    // Memory, the device, memory: whatever the flusher claims at a time, some of it comes after what holds it up.
    thread->flush(begin, 512);
    thread->flush(shadow.begin());
    thread->flush(begin, kBytes);
    device.wait_for_somebody();
    std::atomic<bool> is_gone{false};
    std::thread other([&] {
      ASSERT_TRUE(runtime->remove_domain(begin, begin + kBytes).value());
      munmap(memory, kBytes);
      is_gone = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(is_gone.load());
    device.open();
    other.join();
    ASSERT_TRUE(thread->fence());
    ASSERT_TRUE(runtime->leave(thread));
  }
}

// As storage's queues: what one has put off is not another's.
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

// A mapping that goes away between the flush and the fence: by hardware its lines would have been written back before.
TEST_P(WayTest, AMappingMayGoBeforeTheFence) {
  Own runtime(GetParam());
  constexpr size_t kBytes = 1 << 14;
  const auto map = [] {
    return mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  std::atomic<int> turn{0};
  void* memory = nullptr;
  // One that has put lines off, while the other takes their memory away.
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

class FileTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 1 << 20;
  FileTest() {
    path_ = std::filesystem::temp_directory_path() / ("spillway-persist-" + std::to_string(getpid()));
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    EXPECT_EQ(ftruncate(descriptor_, kBytes), 0);
    memory_ = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0));
  }
  ~FileTest() override {
    munmap(memory_, kBytes);
    close(descriptor_);
    std::filesystem::remove(path_);
  }
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(memory_); }
  Domain domain(int descriptor) const {
    return {.begin = begin(),
            .end = begin() + kBytes,
            .kind = DomainKind::kFile,
            .device = nullptr,
            .descriptor = descriptor};
  }
  // How many OS pages of the mapping wait for the kernel to write them, of those in memory.
  uint64_t dirty_bytes() const {
    std::ifstream maps("/proc/self/smaps");
    bool is_here = false;
    uint64_t bytes = 0;
    for (std::string line; std::getline(maps, line);) {
      if (line.find(path_.string()) != std::string::npos)
        is_here = true;
      else if (is_here && (line.starts_with("Shared_Dirty:") || line.starts_with("Private_Dirty:")))
        bytes += std::stoull(line.substr(line.find(':') + 1)) * 1024;
      else if (is_here && line.starts_with("VmFlags"))
        break;
    }
    return bytes;
  }

  std::filesystem::path path_;
  int descriptor_ = -1;
  char* memory_ = nullptr;
};

TEST_F(FileTest, AFenceHasTheKernelWriteWhatWasFlushed) {
  for (const bool has_descriptor : {true, false}) {
    Own runtime(Way::kAuto);
    ASSERT_TRUE(runtime->add_domain(domain(has_descriptor ? descriptor_ : -1)));
    Thread* const thread = runtime->enter();
    for (const size_t pages : {1, 5, 40}) {
      for (size_t i = 0; i < pages; ++i) {
        store(memory_ + i * 3 * 4096, pages);
        thread->flush(begin() + i * 3 * 4096, 8);
      }
      EXPECT_GE(dirty_bytes(), pages * 4096);
      ASSERT_TRUE(thread->fence());
      EXPECT_EQ(dirty_bytes(), 0u) << pages;
    }
    EXPECT_EQ(thread->counts().asked_lines, 46u);
    EXPECT_EQ(thread->counts().executed_lines, 0u);
    EXPECT_EQ(thread->counts().noted_lines, 46u);
  }
}

TEST_F(FileTest, WhatTheKernelCannotWriteIsTold) {
  Own runtime(Way::kEpoch);
  Domain other = domain(-1);
  other.descriptor = open("/dev/null", O_RDONLY);  // has nothing that could be synced
  ASSERT_TRUE(runtime->add_domain(other));
  Thread* const thread = runtime->enter();
  thread->flush(begin(), 64);
  EXPECT_TRUE(thread->fence());  // one range: msync
  thread->flush(begin(), 64);
  thread->flush(begin() + (1 << 18), 64);
  const auto fenced = thread->fence();
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.error().number, EINVAL);
  EXPECT_TRUE(thread->fence());
  close(other.descriptor);
}

TEST_F(FileTest, ADomainOfAFileIsWrittenWhenItIsRemoved) {
  Own runtime(Way::kEpoch);
  ASSERT_TRUE(runtime->add_domain(domain(descriptor_)));
  Thread* const thread = runtime->enter();
  store(memory_ + 8192, 5);
  EXPECT_GE(dirty_bytes(), 4096u);
  ASSERT_TRUE(runtime->remove_domain(begin(), begin() + kBytes).value());
  EXPECT_EQ(dirty_bytes(), 0u);
  EXPECT_FALSE(runtime->remove_domain(begin(), begin() + kBytes).value());
  EXPECT_TRUE(runtime->leave(thread));
}

// Whoever removes a domain has it written. What others have noted of it is dropped then: neither its memory nor its descriptor is there at their fence.
TEST_F(FileTest, AMappingMayGoBeforeTheFence) {
  for (const bool has_descriptor : {true, false})
    for (const int ranges : {1, 3}) {
      Own runtime(Way::kEpoch);
      const int own = dup(descriptor_);
      auto* const memory =
          static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0));
      const auto start = reinterpret_cast<uintptr_t>(memory);
      ASSERT_TRUE(runtime->add_domain({.begin = start,
                                       .end = start + kBytes,
                                       .kind = DomainKind::kFile,
                                       .device = nullptr,
                                       .descriptor = has_descriptor ? own : -1}));
      Thread* const thread = runtime->enter();
      const uintptr_t half = start + kBytes / 2;
      for (int i = 0; i < ranges; ++i)
        for (const uintptr_t from : {start, half}) {
          store(reinterpret_cast<char*>(from) + i * 16384, 7);
          thread->flush(from + i * 16384, 64);
        }
      // One half, whose domain the rest keeps; then all.
      ASSERT_TRUE(runtime->remove_domain(start, half).value());
      munmap(memory, kBytes / 2);
      ASSERT_TRUE(thread->fence());
      EXPECT_EQ(dirty_bytes(), 0u);
      thread->flush(half, 64);
      ASSERT_TRUE(runtime->remove_domain(half, start + kBytes).value());
      munmap(memory + kBytes / 2, kBytes / 2);
      close(own);
      ASSERT_TRUE(thread->fence());
      EXPECT_TRUE(runtime->leave(thread));
    }
}

// More domains than a thread has ranges for: what was noted is written in between.
TEST_F(FileTest, ManyDomainsOfFiles) {
  Own runtime(Way::kEpoch);
  for (uintptr_t i = 0; i < 40; ++i)
    ASSERT_TRUE(runtime->add_domain({.begin = begin() + i * 8192,
                                     .end = begin() + (i + 1) * 8192,
                                     .kind = DomainKind::kFile,
                                     .device = nullptr,
                                     .descriptor = descriptor_}));
  Thread* const thread = runtime->enter();
  for (uintptr_t i = 0; i < 40; ++i) {
    store(memory_ + i * 8192, i + 1);
    thread->flush(begin() + i * 8192, 8);
  }
  ASSERT_TRUE(thread->fence());
  EXPECT_EQ(dirty_bytes(), 0u);
  EXPECT_EQ(thread->counts().noted_lines, 40u);
}

TEST_F(FileTest, FencesOfSeveralThreadsMayShareAnIo) {
  Settings settings;
  settings.way = Way::kInline;
  settings.shares_syncs = true;
  const auto runtime = std::make_unique<Runtime>();
  runtime->configure(settings);
  ASSERT_TRUE(runtime->add_domain(domain(descriptor_)));
  std::vector<std::thread> threads;
  for (uintptr_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Thread* const thread = runtime->enter();
      for (uint64_t i = 1; i <= 20; ++i) {
        store(memory_ + t * 8192, i);
        thread->flush(begin() + t * 8192, 8);
        ASSERT_TRUE(thread->fence());
      }
      ASSERT_TRUE(runtime->leave(thread));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dirty_bytes(), 0u);
}

// What was written early, to have room for other domains' ranges, and failed, is told by the fence.
TEST_F(FileTest, WhatCouldNotBeWrittenEarlyIsTold) {
  Own runtime(Way::kEpoch);
  const int null = open("/dev/null", O_RDONLY);  // has nothing that could be synced
  for (uintptr_t i = 0; i < 20; ++i)
    ASSERT_TRUE(runtime->add_domain({.begin = begin() + i * 32768,
                                     .end = begin() + (i + 1) * 32768,
                                     .kind = DomainKind::kFile,
                                     .device = nullptr,
                                     .descriptor = i == 0 ? null : descriptor_}));
  Thread* const thread = runtime->enter();
  thread->flush(begin() + 16384, 8);
  for (uintptr_t i = 0; i < 20; ++i) thread->flush(begin() + i * 32768, 8);
  const auto fenced = thread->fence();
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.error().number, EINVAL);
  EXPECT_TRUE(thread->fence());
  close(null);
}

// A device whose flush a signal comes in the middle of, so that the thread is inside.
class RaisingDevice final : public LineDevice {
 public:
  void flush(const uintptr_t*, size_t) override { raise(SIGUSR2); }
  void fence() override {}
};
Thread* raised_thread = nullptr;
uintptr_t raised_line = 0;

// What a handler flushes of a file then is written at once; if it cannot be, its thread's next fence tells.
TEST_F(FileTest, HandlersInTheMiddleWriteAtOnce) {
  Own runtime(Way::kInline);
  RaisingDevice device;
  alignas(64) static char lines[128];
  const auto own = reinterpret_cast<uintptr_t>(lines);
  ASSERT_TRUE(
      runtime->add_domain({.begin = own, .end = own + 128, .kind = DomainKind::kDevice, .device = &device}));
  ASSERT_TRUE(runtime->add_domain(domain(descriptor_)));
  void* const gone = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto gone_begin = reinterpret_cast<uintptr_t>(gone);
  ASSERT_TRUE(
      runtime->add_domain({.begin = gone_begin, .end = gone_begin + 4096, .kind = DomainKind::kFile}));
  Thread* const thread = raised_thread = runtime->enter();
  struct sigaction action = {}, old;
  action.sa_handler = [](int) { raised_thread->flush(raised_line); };
  sigaction(SIGUSR2, &action, &old);
  store(memory_ + 4096, 3);
  raised_line = begin() + 4096;
  thread->flush(own);
  EXPECT_EQ(dirty_bytes(), 0u);
  ASSERT_TRUE(thread->fence());
  raised_line = gone_begin;
  munmap(gone, 4096);
  ASSERT_TRUE(runtime->add_domain(
      {.begin = own + (1 << 20), .end = own + (1 << 20) + 64}));  // places are looked up anew
  thread->flush(own);
  const auto fenced = thread->fence();
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.error().number, EIO);
  EXPECT_TRUE(thread->fence());
  sigaction(SIGUSR2, &old, nullptr);
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
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  store(device.memory(), 10);
  thread->flush(device.begin());
  ASSERT_TRUE(thread->fence());
  EXPECT_TRUE(device.is_durable(device.memory(), 8));
}

// A device without locks, since handlers come while the thread is inside of it: a line's first word is durable when it is flushed.
class WordDevice final : public LineDevice {
 public:
  static constexpr size_t kLines = 64;

  void flush(const uintptr_t* lines, size_t count) override {
    // Words only grow; whoever has read one and was stopped then must not put it over a newer one.
    for (size_t i = 0; i < count; ++i) {
      std::atomic<uint64_t>& to = durable[index(lines[i])];
      const uint64_t now = word(index(lines[i])).load();
      for (uint64_t before = to.load(); before < now && !to.compare_exchange_weak(before, now);) {
      }
    }
  }
  void fence() override {}

  std::atomic<uint64_t>& word(size_t i) {
    return *reinterpret_cast<std::atomic<uint64_t>*>(memory + i * base::kLineBytes);
  }
  size_t index(uintptr_t line) const { return (line - begin()) / base::kLineBytes; }
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(memory); }
  Domain domain() {
    return {.begin = begin(), .end = begin() + sizeof memory, .kind = DomainKind::kDevice, .device = this};
  }

  std::atomic<uint64_t> durable[kLines] = {};

 private:
  alignas(base::kLineBytes) char memory[kLines * base::kLineBytes] = {};
};

struct Handled {
  Thread* thread = nullptr;
  WordDevice device;
  std::atomic<uint64_t> count{0}, failures{0};
  // Of the thread's own lines: what it had flushed when it said so, and has not stored to since.
  std::atomic<uint64_t> flushed[16] = {};
};
Handled* handled = nullptr;

// Half of the handlers fence: then what they have flushed is durable, and so is what the thread had flushed before. The others leave it to the thread.
void handle(int) {
  const uint64_t count = handled->count.fetch_add(1) + 1;
  const size_t line = 32 + count % 8;
  handled->device.word(line).store(count);
  handled->thread->flush(handled->device.begin() + line * base::kLineBytes);
  if (count % 2 == 0) return;
  if (!handled->thread->fence() || handled->device.durable[line].load() != count)
    handled->failures.fetch_add(1);
  for (size_t i = 0; i < 16; ++i)
    if (handled->device.durable[i].load() < handled->flushed[i].load()) handled->failures.fetch_add(1);
}

TEST_P(WayTest, HandlersOfSignalsFlushInTheMiddleOfAnything) {
  Own runtime(GetParam());
  const auto own = std::make_unique<Handled>();
  handled = own.get();
  ASSERT_TRUE(runtime->add_domain(own->device.domain()));
  own->thread = runtime->enter();
  struct sigaction action = {};
  action.sa_handler = handle;
  struct sigaction old;
  sigaction(SIGUSR1, &action, &old);
  std::atomic<bool> is_over{false};
  const pthread_t self = pthread_self();
  std::thread sender([&] {
    while (!is_over.load()) {
      pthread_kill(self, SIGUSR1);
      std::this_thread::yield();
    }
  });
  std::mt19937_64 random(3);
  for (uint64_t step = 1; own->count.load() < 3'000; ++step) {
    const size_t line = random() % 16;
    own->device.word(line).store(step);
    own->thread->flush(own->device.begin() + line * base::kLineBytes);
    own->flushed[line].store(step);
    if (step % 32 != 0) continue;
    ASSERT_TRUE(own->thread->fence());
    for (size_t i = 0; i < 16; ++i) ASSERT_GE(own->device.durable[i].load(), own->flushed[i].load());
  }
  is_over = true;
  sender.join();
  sigaction(SIGUSR1, &old, nullptr);
  ASSERT_TRUE(own->thread->fence());
  for (size_t i = 32; i < 40; ++i) EXPECT_EQ(own->device.durable[i].load(), own->device.word(i).load());
  EXPECT_EQ(own->failures.load(), 0u);
  EXPECT_TRUE(runtime->leave(own->thread));
}

}  // namespace
}  // namespace persist
