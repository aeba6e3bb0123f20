#include "kv/collection/key_locks.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "task/test_tasks.h"

namespace kv {
namespace {

constexpr uint64_t kHash = 77;

// Calls that queue for a lock in the order of the list while the test holds it, and then get it one after the other.
class Row {
 public:
  struct Call {
    std::string key;
    bool replaces = true;
    bool succeeds = true;
  };

  // What they did, in order: `a` had the lock and succeeded, `-a` did not, `a@7` was superseded and got this version.
  static std::vector<std::string> run(const std::vector<Call>& calls) {
    Row row(calls);
    task::Scheduler scheduler;
    EXPECT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
    auto main = [&] { row.do_run(); };
    EXPECT_TRUE(scheduler.run(task::calls("main", main)));
    scheduler.close();
    return row.done_;
  }

 private:
  explicit Row(const std::vector<Call>& calls) : calls_(calls) {}

  void do_run() {
    std::vector<task::Task*> tasks;
    std::vector<std::function<void()>> bodies;
    for (const Call& call : calls_) bodies.emplace_back([this, &call] { make(call); });
    {
      KeyLocks::Hold first(locks_, kHash, "first", true);
      for (auto& body : bodies) {
        tasks.push_back(&task::start("call", body));
        task::yield();  // the call begins to wait
      }
      first.succeed();
    }
    for (task::Task* const task : tasks) static_cast<void>(task::join(*task));
  }
  void make(const Call& call) {
    KeyLocks::Hold hold(locks_, kHash, call.key, call.replaces);
    if (hold.is_superseded()) {
      done_.push_back(call.key + "@" + std::to_string(hold.version()));
      return;
    }
    EXPECT_FALSE(is_held_);
    is_held_ = true;
    hold.number_superseded([&] { return ++version_; });
    task::yield();
    is_held_ = false;
    if (call.succeeds) hold.succeed();
    done_.push_back((call.succeeds ? "" : "-") + call.key);
  }

  const std::vector<Call>& calls_;
  KeyLocks locks_;
  std::vector<std::string> done_;
  bool is_held_ = false;
  uint64_t version_ = 0;
};

using Done = std::vector<std::string>;

TEST(KeyLocks, FirstComeFirstServed) {
  EXPECT_EQ(Row::run({{"a", false}, {"b", false}, {"c", false}}), (Done{"a", "b", "c"}));
}

TEST(KeyLocks, TheLastOfARowSupersedesTheOthersInTheirOrder) {
  EXPECT_EQ(Row::run({{"a"}, {"a"}, {"a"}}), (Done{"a", "a@1", "a@2"}));
}

TEST(KeyLocks, WhatDependsOnWhatIsThereEndsARow) {
  EXPECT_EQ(Row::run({{"a"}, {"a"}, {"a", false}, {"a"}, {"a"}, {"a", false}}),
            (Done{"a", "a@1", "a", "a", "a@2", "a"}));
}

TEST(KeyLocks, AnotherKeyOfTheSameHashIsNotSuperseded) {
  EXPECT_EQ(Row::run({{"a"}, {"b"}, {"b"}, {"a"}}), (Done{"a", "b", "b@1", "a"}));
}

TEST(KeyLocks, WhatASupersedingCallDidNotManageTheOthersDoForThemselves) {
  EXPECT_EQ(Row::run({{"a"}, {"a"}, {.key = "a", .succeeds = false}, {"b", false}}),
            (Done{"-a", "a", "a", "b"}));
}

TEST(KeyLocks, NobodySupersedesWhoHoldsTheLock) {
  EXPECT_EQ(Row::run({{"first"}, {"first"}}), (Done{"first", "first@1"}));
}

TEST(KeyLocks, WhoOnlyTriesDoesNotWait) {
  KeyLocks locks;
  {
    KeyLocks::Hold first(locks, kHash, "a", std::try_to_lock);
    EXPECT_TRUE(first.is_held());
    KeyLocks::Hold second(locks, kHash, "a", std::try_to_lock),
        other(locks, kHash + 1, "b", std::try_to_lock);
    EXPECT_FALSE(second.is_held());
    EXPECT_TRUE(other.is_held());
  }
  EXPECT_TRUE(KeyLocks::Hold(locks, kHash, "a", true).is_held());
}

// Each call adds one to what the lock protects, for itself and for those that it supersedes.
TEST(KeyLocks, Threads) {
  constexpr int kThreads = 8, kCalls = 20'000;
  KeyLocks locks;
  uint64_t made_count = 0;
  std::atomic<uint64_t> failed_count{0}, superseded_count{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([&, number] {
      uint64_t last = 0;
      for (int i = 0; i < kCalls; ++i) {
        KeyLocks::Hold hold(locks, kHash, "key", (number + i) % 8 != 0);
        if (hold.is_superseded()) {
          EXPECT_GT(hold.version(), last);
          last = hold.version();
          superseded_count.fetch_add(1, std::memory_order_relaxed);
          continue;
        }
        if (i % 16 == 0) std::this_thread::yield();  // so that others queue meanwhile
        if (i % 64 == 0) {
          failed_count.fetch_add(1, std::memory_order_relaxed);
          continue;
        }
        hold.number_superseded([&] { return ++made_count; });
        last = ++made_count;
        hold.succeed();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made_count + failed_count.load(), uint64_t{kThreads} * kCalls);
  EXPECT_GT(superseded_count.load(), 0u);
}

}  // namespace
}  // namespace kv
