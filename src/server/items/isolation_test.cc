// Tasks that want to be alone, and calls, on three workers: they never meet, and none waits for ever.
#include "server/items/isolation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "task/test_tasks.h"

namespace server {
namespace {

constexpr uint32_t kWorkers = 3;

class IsolationTest : public task::TasksTest, public testing::WithParamInterface<bool> {
 protected:
  IsolationTest() : TasksTest(kWorkers) {}

  // Runs `work` on each worker, in a task.
  template <class Work>
  void run_on_all(Work& work) {
    run([&] {
      std::vector<task::Task*> tasks;
      for (uint32_t i = 0; i < kWorkers; ++i) tasks.push_back(&task::start("works", work, worker(i)));
      join(tasks);
    });
  }
  static void join(const std::vector<task::Task*>& tasks) {
    for (task::Task* const each : tasks) static_cast<void>(task::join(*each));
  }

  Isolation isolation{GetParam() && sys::register_barrier().has_value()};
};
INSTANTIATE_TEST_SUITE_P(All, IsolationTest, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "barrier" : "fence"; });

TEST_P(IsolationTest, CallsSeeAllThatWhoIsAloneDoesOrNothing) {
  constexpr int kCalls = 3000, kTimes = 200;
  uint64_t first = 0, second = 0;  // nothing else guards them
  std::atomic<uint64_t> torn{0};
  auto work = [&] {
    Isolation::Place place;
    isolation.add(place);
    auto calls = [&] {
      for (int i = 0; i < kCalls; ++i) {
        const Isolation::Call call(isolation, place);
        const uint64_t before = first;
        if (i % 8 == 0) task::yield();
        if (first != before || second != before) ++torn;
      }
    };
    auto changes = [&] {
      for (int i = 0; i < kTimes; ++i) {
        const Isolation::Alone alone(isolation);
        ++first;
        task::yield();
        ++second;
      }
    };
    join({&task::start("calls", calls), &task::start("calls", calls), &task::start("changes", changes)});
    isolation.remove(place);
  };
  run_on_all(work);
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(first, uint64_t{kWorkers} * kTimes);
  EXPECT_EQ(second, first);
}

TEST_P(IsolationTest, WhoWantsToBeAloneWaitsForCallsAndOthersWaitForHim) {
  std::string order;
  run([&] {
    Isolation::Place place;
    isolation.add(place);
    auto calls = [&] {
      const Isolation::Call call(isolation, place);
      order += "a call, ";
      for (int i = 0; i < 20; ++i) task::yield();
      order += "its end, ";
    };
    auto is_alone = [&] {
      const Isolation::Alone alone(isolation);
      order += "alone, ";
      const Isolation::Call own(isolation, place);
      task::yield();
      order += "an own call, ";
    };
    auto calls_late = [&] {
      const Isolation::Call call(isolation, place);
      order += "a late call";
    };
    std::vector<task::Task*> tasks;
    tasks.push_back(&task::start("calls", calls));
    task::yield();
    tasks.push_back(&task::start("is alone", is_alone));
    task::yield();
    tasks.push_back(&task::start("calls late", calls_late));
    join(tasks);
    isolation.remove(place);
  });
  EXPECT_EQ(order, "a call, its end, alone, an own call, a late call");
}

// Places are added and removed while others are alone, wait for that, or wait for calls to end; also by a thread that runs no tasks.
TEST_P(IsolationTest, PlacesComeAndGoMeanwhile) {
  constexpr int kTimes = 300;
  uint64_t count = 0;  // nothing else guards it
  const auto call_once = [&](const auto& pause) {
    Isolation::Place place;
    isolation.add(place);
    {
      const Isolation::Call call(isolation, place);
      const uint64_t before = count;
      pause();
      EXPECT_EQ(count, before);
    }
    isolation.remove(place);
  };
  auto work = [&] {
    auto calls = [&] {
      for (int i = 0; i < kTimes; ++i) call_once([] { task::yield(); });
    };
    auto changes = [&] {
      for (int i = 0; i < kTimes; ++i) {
        const Isolation::Alone alone(isolation);
        ++count;
      }
    };
    join({&task::start("calls", calls), &task::start("calls", calls), &task::start("changes", changes)});
  };
  std::thread thread([&] {
    for (int i = 0; i < kTimes; ++i) call_once([] { std::this_thread::yield(); });
  });
  run_on_all(work);
  thread.join();
  EXPECT_EQ(count, uint64_t{kWorkers} * kTimes);
}

// Tasks that want to be alone come one after the other without a pause, and so do calls.
TEST_P(IsolationTest, NeitherKeepsTheOtherOut) {
  constexpr int kMin = 200;
  std::atomic<int> calls{0}, times{0};
  const auto is_over = [&] { return calls >= kMin && times >= kMin; };
  auto work = [&] {
    Isolation::Place place;
    isolation.add(place);
    auto makes_calls = [&] {
      while (!is_over()) {
        const Isolation::Call call(isolation, place);
        ++calls;
        task::yield();
      }
    };
    auto is_alone = [&] {
      while (!is_over()) {
        const Isolation::Alone alone(isolation);
        ++times;
      }
    };
    join({&task::start("calls", makes_calls), &task::start("is alone", is_alone),
          &task::start("is alone", is_alone)});
    isolation.remove(place);
  };
  run_on_all(work);
  EXPECT_TRUE(is_over());
}

}  // namespace
}  // namespace server
