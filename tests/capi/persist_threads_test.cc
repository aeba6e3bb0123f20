// The persistence runtime from many threads of one process: all policies on one mapping, domains that come and go.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "spillway/persist.h"

namespace {

constexpr size_t kBytes = 1 << 20;
constexpr const char* kPolicies[] = {"inline", "epoch", "decoupled", "proactive", "auto"};

class Mapped {
 public:
  explicit Mapped(const char* kind) {
    // Unless it is told another folder, not in /tmp, which may be a file system in memory: what is stored there stays dirty.
    const char* const folder = std::getenv("TMPDIR");
    path_ = folder != nullptr ? folder : "/var/tmp";
    path_ /= "spillway-persist-threads-" + std::to_string(getpid());
    void* address = nullptr;
    EXPECT_EQ(spillway_persist_map(path_.c_str(), kBytes, kind, &address, nullptr), SPILLWAY_PERSIST_OK)
        << spillway_persist_error_text();
    memory_ = static_cast<char*>(address);
  }
  ~Mapped() {
    EXPECT_EQ(spillway_persist_unmap(memory_), SPILLWAY_PERSIST_OK) << spillway_persist_error_text();
    std::filesystem::remove(path_);
  }
  char* memory() const { return memory_; }
  const std::filesystem::path& path() const { return path_; }
  // How much of the mapping waits for the kernel to write it.
  uint64_t dirty_bytes() const {
    std::ifstream maps("/proc/self/smaps");
    bool is_here = false;
    uint64_t bytes = 0;
    for (std::string line; std::getline(maps, line);) {
      if (line.ends_with(path_.filename().string()))
        is_here = true;
      else if (is_here && (line.starts_with("Shared_Dirty:") || line.starts_with("Private_Dirty:")))
        bytes += std::stoull(line.substr(line.find(':') + 1)) * 1024;
      else if (line.starts_with("VmFlags"))
        is_here = false;
    }
    return bytes;
  }

 private:
  std::filesystem::path path_;
  char* memory_ = nullptr;
};

uint64_t statistic(const std::string& name) {
  char text[4096];
  EXPECT_EQ(spillway_persist_stats(text, sizeof text, nullptr), SPILLWAY_PERSIST_OK);
  const std::string all = text, quoted = "\"" + name + "\": ";
  const size_t at = all.find(quoted);
  EXPECT_NE(at, all.npos) << name;
  return std::stoull(all.substr(at + quoted.size()));
}

// How much a statistic has grown since this object was made.
class Counted {
 public:
  explicit Counted(const char* name) : name_(name), before_(statistic(name)) {}
  uint64_t count() const { return statistic(name_) - before_; }

 private:
  const std::string name_;
  const uint64_t before_;
};

class KindTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, KindTest, testing::Values("dram", "file"),
                         [](const auto& tested) { return std::string(tested.param); });

// Each thread goes through all policies, on lines of its own and on some that all flush: each flush and fence is counted once, as one of the mapping's,
// and what was flushed in a file has been written.
TEST_P(KindTest, AllPoliciesOnOneMapping) {
  const bool is_file = std::string(GetParam()) == "file";
  const int rounds = is_file ? 20 : 200;
  Mapped mapped(GetParam());
  const Counted asked_lines("asked_lines"), executed_lines("executed_lines"), pushed_lines("pushed_lines");
  const Counted noted_lines("noted_lines"), outside_lines("outside_lines"), all_fences("fences");
  std::atomic<uint64_t> asked{0}, fences{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      char* const own = mapped.memory() + t * kBytes / 8;
      char* const shared = mapped.memory() + kBytes / 2;
      for (int round = 0; round < rounds; ++round) {
        ASSERT_EQ(spillway_persist_set_policy(kPolicies[(round + t) % 5]), SPILLWAY_PERSIST_OK)
            << spillway_persist_error_text();
        for (int i = 0; i < 50; ++i) {
          char* const at = own + random() % (round % 2 == 0 ? 16 : 1024) * 64;
          *at = static_cast<char>(round);
          spillway_persist_flush(at, 1);
          reinterpret_cast<std::atomic<uint64_t>*>(shared)[random() % 64].store(round);
          spillway_persist_flush(shared, 512);
        }
        char* const filled = own + kBytes / 16;
        spillway_persist_set(filled, round, 1000);
        // The whole lines of what was set go past the caches in memory, and are flushed in a file.
        asked.fetch_add(50 * 9 + (is_file ? 16 : 1));
        ASSERT_EQ(spillway_persist_fence(), SPILLWAY_PERSIST_OK) << spillway_persist_error_text();
        fences.fetch_add(1);
        ASSERT_EQ(std::count(filled, filled + 1000, static_cast<char>(round)), 1000);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(asked_lines.count(), asked.load());
  EXPECT_EQ(outside_lines.count(), 0u);
  EXPECT_EQ(noted_lines.count(), is_file ? asked.load() : 0);
  // Some policies hand lines over, and some put off those that come again.
  EXPECT_EQ(pushed_lines.count() > 0, !is_file);
  EXPECT_EQ(executed_lines.count() > 0, !is_file);
  EXPECT_LT(executed_lines.count() + pushed_lines.count(), asked.load());
  // Each thread's end is one fence more.
  EXPECT_EQ(all_fences.count(), fences.load() + 4);
  if (!is_file) return;
  EXPECT_EQ(mapped.dirty_bytes(), 0u);
  *mapped.memory() = 1;
  EXPECT_GE(mapped.dirty_bytes(), 4096u);
}

// Threads map, use and unmap files, and others start for the first time, while some flush.
TEST(PersistThreads, DomainsComeAndGo) {
  Mapped mapped("dram");
  ASSERT_GE(statistic("domains"), 1u);
  const Counted domains("domains"), outside_lines("outside_lines");
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      ASSERT_EQ(spillway_persist_set_policy(t == 0 ? "epoch" : "decoupled"), SPILLWAY_PERSIST_OK);
      for (int i = 0; !is_over.load(); ++i) {
        char* const at = mapped.memory() + (i % 32 + t * 100) * 64;
        *at = static_cast<char>(i);
        spillway_persist_flush(at, 64);
        if (i % 40 == 0) ASSERT_EQ(spillway_persist_fence(), SPILLWAY_PERSIST_OK);
      }
    });
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      const std::string path = mapped.path().string() + "-" + std::to_string(t);
      for (int i = 0; i < 60; ++i) {
        void* address = nullptr;
        ASSERT_EQ(
            spillway_persist_map(path.c_str(), 1 << 16, i % 2 == 0 ? "file" : "dram", &address, nullptr),
            SPILLWAY_PERSIST_OK)
            << spillway_persist_error_text();
        std::thread([&] { spillway_persist_set(address, i, 1 << 15); }).join();
        for (int again = 0; again < 3; ++again) spillway_persist_flush(address, 4096);
        ASSERT_EQ(spillway_persist_unmap(address), SPILLWAY_PERSIST_OK) << spillway_persist_error_text();
        ASSERT_EQ(spillway_persist_fence(), SPILLWAY_PERSIST_OK) << spillway_persist_error_text();
      }
      std::filesystem::remove(path);
    });
  threads[2].join();
  threads[3].join();
  is_over = true;
  threads[0].join();
  threads[1].join();
  EXPECT_EQ(domains.count(), 0u);
  EXPECT_EQ(outside_lines.count(), 0u);
}

// Errors are each thread's own.
TEST(PersistThreads, EachHasItsLine) {
  EXPECT_EQ(spillway_persist_set_policy("mine"), SPILLWAY_PERSIST_INVALID);
  std::thread([] {
    EXPECT_STREQ(spillway_persist_error_text(), "");
    EXPECT_EQ(spillway_persist_set_policy("another's"), SPILLWAY_PERSIST_INVALID);
  }).join();
  EXPECT_NE(std::string(spillway_persist_error_text()).find("'mine'"), std::string::npos);
}

}  // namespace
