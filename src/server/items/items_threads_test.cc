// Many threads, and tasks, that change the same items: nothing is lost, and nobody waits for ever.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kv/testing/jitter_device.h"
#include "kv/testing/test_effort.h"
#include "server/items/items.h"
#include "server/items/test_items.h"
#include "server/items/update_locks.h"
#include "storage/backends/memory.h"
#include "task/test_tasks.h"

namespace server {
namespace {

const int kTimes = static_cast<int>(2000 / kv::kEffortParts);

class ItemsThreadsTest : public ItemsTest {
 protected:
  using ItemsTest::ItemsTest;
  template <class Body>
  void in_threads(int count, Body body) {
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
      threads.emplace_back([&, t] {
        Items own;
        ASSERT_TRUE(own.open(shared));
        body(own, t);
        own.close();
      });
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(ItemsThreadsTest, IncreasesAddUp) {
  constexpr int kThreads = 4;
  set("number", "0");
  in_threads(kThreads, [](Items& own, int) {
    for (int i = 0; i < kTimes; ++i) EXPECT_EQ(of(own.add("number", {.delta = 3})).outcome, Outcome::kDone);
    for (int i = 0; i < kTimes; ++i) EXPECT_EQ(of(own.add_integer("integer", -1)).outcome, Outcome::kDone);
  });
  EXPECT_EQ(std::stoi(get("number")), 3 * kThreads * kTimes);
  EXPECT_EQ(std::stoi(get("integer")), -kThreads * kTimes);
}

TEST_F(ItemsThreadsTest, AppendsAreAllThereInTheirOrder) {
  constexpr int kThreads = 4;
  static const int kAppends = kTimes / 4;
  set("log", "");
  in_threads(kThreads, [](Items& own, int thread) {
    for (int i = 0; i < kAppends; ++i)
      EXPECT_EQ(of(own.set("log", bytes_of(std::to_string(thread) + ":" + std::to_string(i) + ","),
                           {.mode = Mode::kAppend}))
                    .outcome,
                Outcome::kDone);
  });
  const std::string log = get("log");
  int next[kThreads] = {}, count = 0;
  for (size_t at = 0; at < log.size(); ++count) {
    const size_t end = log.find(',', at), colon = log.find(':', at);
    ASSERT_NE(end, std::string::npos);
    const int thread = std::stoi(log.substr(at, colon - at));
    EXPECT_EQ(std::stoi(log.substr(colon + 1, end - colon - 1)), next[thread]++);
    at = end + 1;
  }
  EXPECT_EQ(count, kThreads * kAppends);
}

// Of the threads that compare a cas one wins each time.
TEST_F(ItemsThreadsTest, ACasIsGivenToOne) {
  constexpr int kThreads = 4;
  set("key", "0");
  std::atomic<int> wins{0};
  in_threads(kThreads, [&](Items& own, int) {
    for (int i = 0; i < kTimes;) {
      Item item = of(own.get("key"));
      const int number = std::stoi(whole_value(own, item));
      const Done done = of(own.set("key", bytes_of(std::to_string(number + 1)), {.cas = item.cas()}));
      EXPECT_TRUE(done.outcome == Outcome::kDone || done.outcome == Outcome::kOtherCas);
      if (done.outcome != Outcome::kDone) continue;
      ++wins;
      ++i;
    }
  });
  EXPECT_EQ(wins, kThreads * kTimes);
  EXPECT_EQ(get("key"), std::to_string(kThreads * kTimes));
}

TEST_F(ItemsThreadsTest, OneAddsAndOneClaims) {
  constexpr int kThreads = 4;
  static const int kKeys = kTimes / 2;
  std::atomic<int> added{0}, made{0}, removed{0};
  in_threads(kThreads, [&](Items& own, int) {
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = std::to_string(i);
      added += of(own.set("a" + key, bytes_of("1"), {.mode = Mode::kAdd})).outcome == Outcome::kDone;
      made += of(own.fetch("c" + key, {.makes_until_ms = kNever})).has_claimed;
    }
    for (int i = 0; i < kKeys; ++i)
      removed += of(own.remove("a" + std::to_string(i))).outcome == Outcome::kDone;
  });
  EXPECT_EQ(added, removed);
  EXPECT_GE(added, kKeys);
  EXPECT_EQ(made, kKeys);
}

// On a device whose requests take a while: a set that does not look first comes in between nearly every time.
class ItemsFightTest : public ItemsThreadsTest {
 protected:
  ItemsFightTest() : ItemsThreadsTest(new kv::JitterDevice(*storage::make_memory_device(128 << 20), 1)) {}
};

TEST_F(ItemsFightTest, UpdatesEndThoughOthersSetWithoutLooking) {
  static_cast<kv::JitterDevice*>(device)->set_slow_of_256(128);
  reopen();
  constexpr int kUpdaters = 2, kSetters = 8;
  static const int kUpdates = kTimes / 40;
  std::atomic<int> setting{0}, ended{0};
  set("key", "0");
  in_threads(kUpdaters + kSetters, [&](Items& own, int thread) {
    if (thread < kUpdaters) {
      while (setting < kSetters) std::this_thread::yield();
      for (int i = 0; i < kUpdates; ++i)
        EXPECT_EQ(of(own.add("key", {.initial = 1})).outcome, Outcome::kDone);
      ++ended;
      return;
    }
    for (int i = 0; ended < kUpdaters; ++i) {
      EXPECT_EQ(of(own.set("key", bytes_of(std::to_string(i)))).outcome, Outcome::kDone);
      if (i == 0) ++setting;
      if (i % 16 == 0) of(own.remove("key"));
      of(own.set("key", bytes_of("7"), {.mode = Mode::kAdd}));
    }
  });
  // Rounds outside a fight, then those in which sets that were under way when it began may interfere.
  constexpr uint64_t kMaxRounds = UpdateLocks::kRoundsAlone + 2 * kSetters;
  EXPECT_GT(shared.counts()[Count::kAnew], 0u);
  EXPECT_LE(shared.counts()[Count::kAnew], kUpdaters * kUpdates * kMaxRounds);
}

// The tasks of two workers.
TEST_F(ItemsThreadsTest, TasksIncreaseToo) {
  constexpr uint32_t kWorkers = 2, kTasks = 8;
  static const int kEach = kTimes / 10;
  task::Scheduler scheduler;
  ASSERT_TRUE(scheduler.open({.worker_count = kWorkers, .stack_bytes = task::kTestStackBytes}));
  set("number", "0");
  set("log", "");
  // A worker's own: opened, used and closed there.
  auto work = [&] {
    auto own = std::make_unique<Items>();
    ASSERT_TRUE(own->open(shared));
    auto increase = [&] {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_EQ(of(own->add("number", {})).outcome, Outcome::kDone);
        EXPECT_EQ(of(own->set("log", bytes_of("x"), {.mode = Mode::kAppend})).outcome, Outcome::kDone);
        if (i % 64 == 0) of(own->get("number"));
        task::yield();
      }
    };
    std::vector<task::Task*> tasks;
    for (uint32_t i = 0; i < kTasks; ++i) tasks.push_back(&task::start("increases", increase));
    for (task::Task* const each : tasks) static_cast<void>(task::join(*each));
    own->close();
  };
  auto main = [&] {
    std::vector<task::Task*> tasks;
    for (uint32_t i = 0; i < kWorkers; ++i)
      tasks.push_back(&task::start("works", work, &scheduler.worker(i)));
    for (task::Task* const each : tasks) static_cast<void>(task::join(*each));
  };
  ASSERT_TRUE(scheduler.run(task::calls("main", main)));
  scheduler.close();
  EXPECT_EQ(get("number"), std::to_string(kWorkers * kTasks * kEach));
  EXPECT_EQ(get("log").size(), size_t{kWorkers} * kTasks * kEach);
}

}  // namespace
}  // namespace server
