// Domains of files, which the kernel writes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "persist/test_runtime.h"

namespace persist {
namespace {

class FileTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 1 << 20;
  FileTest() {
    // Unless it is told another folder, not in /tmp, which may be a file system in memory: what is stored there stays dirty.
    const char* const folder = std::getenv("TMPDIR");
    path_ = folder != nullptr ? folder : "/var/tmp";
    path_ /= "spillway-persist-" + std::to_string(getpid());
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

// The kernel reports it once, to whoever asks it to write the file: what it could not write may be another thread's.
TEST_F(FileTest, WhatTheKernelCannotWriteIsToldToAllThatFlushedThere) {
  Own runtime(Way::kEpoch);
  Domain other = domain(-1);
  other.descriptor = open("/dev/null", O_RDONLY);  // has nothing that could be synced
  ASSERT_TRUE(runtime->add_domain(other));
  Thread *const thread = runtime->enter(), *const another = runtime->enter();
  thread->flush(begin(), 64);
  thread->flush(begin() + (1 << 18), 64);
  another->flush(begin() + 4096, 64);
  EXPECT_FALSE(thread->fence());  // several ranges: fdatasync
  const auto fenced = another->fence();
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.error().number, EINVAL);
  // Each thread is told once, and one that comes later is told nothing.
  for (Thread* const each : {thread, another, runtime->enter()}) {
    each->flush(begin(), 64);
    EXPECT_TRUE(each->fence());
  }
  close(other.descriptor);
}

// What a thread has flushed is dropped when its domain is removed: if it could not be written then, not only the remover is told.
TEST_F(FileTest, WhatCannotBeWrittenWhenADomainIsRemovedIsToldToAllThatFlushedThere) {
  Own runtime(Way::kEpoch);
  void* const gone = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto gone_begin = reinterpret_cast<uintptr_t>(gone);
  ASSERT_TRUE(
      runtime->add_domain({.begin = gone_begin, .end = gone_begin + 4096, .kind = DomainKind::kFile}));
  Thread* const thread = runtime->enter();
  thread->flush(gone_begin, 64);
  munmap(gone, 4096);
  EXPECT_FALSE(runtime->remove_domain(gone_begin, gone_begin + 4096));
  EXPECT_FALSE(thread->fence());
  EXPECT_TRUE(thread->fence());
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

// Whoever removes a domain has it written. What others have noted there is dropped: at their fence neither its memory nor its descriptor exists.
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
      // First one half, while the other stays a domain; then all.
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

// Another file's domain begins where a part of a file's domain was: writing one file does not write the other.
TEST_F(FileTest, AnotherFileMayBeWhereADomainBegan) {
  Own runtime(Way::kEpoch);
  const uintptr_t half = begin() + kBytes / 2;
  ASSERT_TRUE(runtime->add_domain(domain(descriptor_)));
  Thread* const thread = runtime->enter();
  thread->flush(half, 64);
  ASSERT_TRUE(runtime->remove_domain(begin(), half).value());
  Domain other = domain(open("/dev/null", O_RDONLY));  // has nothing that could be synced
  other.end = half;
  ASSERT_TRUE(runtime->add_domain(other));
  thread->flush(begin(), 64);
  thread->flush(begin() + 16384, 64);
  const auto fenced = thread->fence();
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.error().number, EINVAL);
  close(other.descriptor);
}

// With more domains than a thread has ranges for, what was noted is written in between.
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

// If an early write, to make room for other domains' ranges, fails, the fence says so.
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

// A device in the middle of whose flush a signal comes, so that the thread is inside.
class RaisingDevice final : public LineDevice {
 public:
  void flush(const uintptr_t*, size_t) override { raise(SIGUSR2); }
  void fence() override {}
};
Thread* raised_thread = nullptr;
uintptr_t raised_line = 0;

// What a handler flushes in a file at that moment is written at once; if it cannot be, the thread's next fence says so.
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

}  // namespace
}  // namespace persist
