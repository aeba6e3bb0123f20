// Tasks on real workers: switching, waiting, waking from other threads, cancelling, deadlines.
#include "task/scheduler.h"

#include <fenv.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <xmmintrin.h>

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "task/sync.h"
#include "task/test_tasks.h"

namespace task {
namespace {

class SchedulerTest : public TasksTest, public testing::WithParamInterface<uint32_t> {
 protected:
  SchedulerTest() : TasksTest(GetParam()) {}
};

TEST_P(SchedulerTest, TasksTakeTurns) {
  std::vector<int> order;
  run([&] {
    auto count = [&](int from) {
      for (int i = 0; i < 3; ++i) {
        order.push_back(from + i);
        yield();
      }
    };
    auto first = [&] { count(10); };
    auto second = [&] { count(20); };
    Task& a = start("first", first);
    Task& b = start("second", second);
    EXPECT_EQ(join(a), Woken::kNotified);
    EXPECT_EQ(join(b), Woken::kNotified);
  });
  EXPECT_EQ(order, (std::vector<int>{10, 20, 11, 21, 12, 22}));
}

TEST_P(SchedulerTest, ManyTasksOnAllWorkersEnd) {
  std::atomic<uint64_t> sum{0};
  run([&] {
    auto body = [&] {
      for (int i = 0; i < 10; ++i) {
        sum.fetch_add(1);
        yield();
      }
    };
    std::vector<Task*> tasks;
    for (uint32_t i = 0; i < 3000; ++i) tasks.push_back(&start("counts", body, worker(i)));
    for (Task* task : tasks) join(*task);
  });
  EXPECT_EQ(sum, 30000u);
}

TEST_P(SchedulerTest, AMutexKeepsTasksOfAllWorkersApart) {
  uint64_t count = 0;
  InterMutex mutex;
  run([&] {
    auto body = [&] {
      for (int i = 0; i < 1000; ++i) {
        mutex.lock();
        const uint64_t seen = count;
        if (i % 10 == 0) yield();
        count = seen + 1;
        mutex.unlock();
      }
    };
    std::vector<Task*> tasks;
    for (uint32_t i = 0; i < 16; ++i) tasks.push_back(&start("adds", body, worker(i)));
    for (Task* task : tasks) join(*task);
  });
  EXPECT_EQ(count, 16000u);
}

TEST_P(SchedulerTest, WorkersThatSleepAreWoken) {
  InterSemaphore ping(0), pong(0);
  run([&] {
    auto body = [&] {
      for (int i = 0; i < 2000; ++i) {
        EXPECT_EQ(ping.acquire(), Woken::kNotified);
        pong.release();
      }
    };
    Task& other = start("answers", body, worker(1));
    for (int i = 0; i < 2000; ++i) {
      ping.release();
      EXPECT_EQ(pong.acquire(), Woken::kNotified);
    }
    join(other);
  });
}

TEST_P(SchedulerTest, AThreadWithoutTasksFulfils) {
  Future future;
  std::thread thread;
  run([&] {
    thread = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      future.fulfil(7);
    });
    EXPECT_EQ(future.wait(), Woken::kNotified);
    EXPECT_EQ(future.value(), 7u);
  });
  thread.join();
}

TEST_P(SchedulerTest, DeadlinesEndWaits) {
  run([&] {
    Future never;
    const uint64_t before = now_ns();
    EXPECT_EQ(never.wait({.deadline_ns = 0}), Woken::kTimedOut);
    EXPECT_EQ(never.wait({.deadline_ns = before + 20'000'000}), Woken::kTimedOut);
    EXPECT_GE(now_ns(), before + 20'000'000);
    EXPECT_EQ(sleep_until(now_ns() + 1'000'000), Woken::kTimedOut);
    InterSemaphore none(0);
    EXPECT_EQ(none.acquire({.deadline_ns = now_ns() + 1'000'000}), Woken::kTimedOut);
    none.release();
    EXPECT_TRUE(none.try_acquire());
  });
}

TEST_P(SchedulerTest, CancelEndsThePresentAndTheNextWait) {
  run([&] {
    Future never;
    std::atomic<bool> waits{false};
    Woken first = Woken::kNotified, second = Woken::kNotified;
    auto body = [&] {
      waits = true;
      first = never.wait();
      EXPECT_TRUE(is_cancelled());
      second = never.wait();
      InterMutex mutex;
      mutex.lock();
      mutex.unlock();
    };
    Task& task = start("waits", body, worker(1));
    while (!waits) yield();
    cancel(task);
    cancel(task);
    EXPECT_EQ(join(task), Woken::kNotified);
    EXPECT_EQ(first, Woken::kCancelled);
    EXPECT_EQ(second, Woken::kCancelled);
  });
}

TEST_P(SchedulerTest, AWaitSetReturnsFuturesAsTheyAreFulfilled) {
  run([&] {
    constexpr uint32_t kCount = 50;
    std::vector<Future> futures(kCount);
    std::vector<Future::Link> links(kCount);
    WaitSet set;
    for (uint32_t i = 0; i < kCount; ++i) set.add(futures[i], links[i]);
    auto body = [&] {
      for (uint32_t i = 0; i + 1 < kCount; ++i) futures[i * 5 % (kCount - 1)].fulfil(i);
    };
    Task& task = start("fulfils", body, worker(1));
    for (uint32_t i = 0; i + 1 < kCount; ++i) {
      Future* const future = set.wait();
      ASSERT_EQ(future, &futures[i * 5 % (kCount - 1)]);
      EXPECT_EQ(future->value(), i);
    }
    Woken woken = Woken::kNotified;
    EXPECT_EQ(set.wait({.deadline_ns = now_ns() + 1'000'000}, &woken), nullptr);
    EXPECT_EQ(woken, Woken::kTimedOut);
    join(task);
  });
}

TEST_P(SchedulerTest, AConditionIsNotMissed) {
  run([&] {
    InterMutex mutex;
    InterCondition changed;
    uint64_t items = 0, taken = 0;
    auto producer = [&] {
      for (int i = 0; i < 500; ++i) {
        mutex.lock();
        ++items;
        mutex.unlock();
        changed.notify_one();
      }
    };
    auto consumer = [&] {
      for (int i = 0; i < 250; ++i) {
        mutex.lock();
        while (items == 0) changed.wait(mutex);
        --items;
        ++taken;
        mutex.unlock();
      }
    };
    Task& a = start("consumes", consumer, worker(0));
    Task& b = start("consumes", consumer, worker(1));
    Task& c = start("produces", producer, worker(2));
    join(a);
    join(b);
    join(c);
    EXPECT_EQ(taken, 500u);
    EXPECT_EQ(items, 0u);
  });
}

TEST_P(SchedulerTest, ADumpSaysWhatTasksWaitFor) {
  testing::internal::CaptureStderr();
  run([&] {
    InterMutex mutex;
    Future future;
    auto first = [&] { mutex.lock(); };
    auto second = [&] { static_cast<void>(future.wait()); };
    mutex.lock();
    Task& a = start("locks", first);
    Task& b = start("looks ahead", second, worker(1));
    while (a.state != State::kBlocked || b.state != State::kBlocked) yield();
    scheduler.dump();
    mutex.unlock();
    future.fulfil();
    join(a);
    join(b);
  });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("task main of worker 0: running\n"), std::string::npos) << text;
  EXPECT_NE(text.find("task locks of worker 0: blocked, waits for a mutex\n"), std::string::npos) << text;
  const std::string other = GetParam() > 1 ? "1" : "0";
  EXPECT_NE(text.find("task looks ahead of worker " + other + ": blocked, waits for a future\n"),
            std::string::npos)
      << text;
}

TEST_P(SchedulerTest, RoundingAndErrorsBelongToTheTask) {
  run([&] {
    auto body = [&] {
      EXPECT_EQ(fegetround(), FE_TONEAREST);
      fesetround(FE_UPWARD);
      for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(fegetround(), FE_UPWARD);
        EXPECT_EQ(_MM_GET_ROUNDING_MODE(), static_cast<unsigned>(_MM_ROUND_UP));
        yield();
      }
    };
    Task& task = start("rounds up", body);
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(fegetround(), FE_TONEAREST);
      EXPECT_EQ(_MM_GET_ROUNDING_MODE(), static_cast<unsigned>(_MM_ROUND_NEAREST));
      yield();
    }
    join(task);
  });
}

TEST_P(SchedulerTest, ExceptionsAndErrorNumbersBelongToTheTask) {
  run([&] {
    int counted = 0;
    auto body = [&] {
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      EXPECT_EQ(std::current_exception(), nullptr);
      const int mine = counted++;
      for (int i = 0; i < 5; ++i) {
        try {
          try {
            throw mine;
          } catch (int value) {
            errno = 1000 + mine;
            yield();
            EXPECT_EQ(errno, 1000 + mine);
            EXPECT_EQ(value, mine);
            yield();
            throw;
          }
        } catch (int value) {
          yield();
          EXPECT_EQ(value, mine);
        }
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    };
    std::vector<Task*> tasks;
    for (int i = 0; i < 8; ++i) tasks.push_back(&start("throws", body));
    for (Task* task : tasks) join(*task);
  });
}

// A program may run a loop of tasks while it handles an exception.
TEST_P(SchedulerTest, ExceptionsOfWhoRunsTasksStay) {
  int rethrown = 0;
  try {
    try {
      throw 7;
    } catch (int) {
      run([] {
        EXPECT_TRUE(std::current_exception() == nullptr);
        yield();
      });
      ASSERT_TRUE(std::current_exception() != nullptr);
      throw;
    }
  } catch (int value) {
    rethrown = value;
  }
  EXPECT_EQ(rethrown, 7);
}

struct Hooks {
  std::atomic<uint32_t> begun{0};
  std::atomic<uint32_t> ended{0};
  bool ran = false;
};

TEST_P(SchedulerTest, EachWorkerIsToldWhenItBeginsAndEnds) {
  Hooks hooks;
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.open({.worker_count = GetParam(),
                              .worker_begins = [](Worker&, void* all) { ++static_cast<Hooks*>(all)->begun; },
                              .worker_ends = [](Worker&, void* all) { ++static_cast<Hooks*>(all)->ended; },
                              .context = &hooks}));
  const auto body = [](void* all) {
    auto& seen = *static_cast<Hooks*>(all);
    seen.ran = seen.begun > 0 && seen.ended == 0;
  };
  ASSERT_TRUE(scheduler.run({.name = "main", .entry = body, .argument = &hooks}));
  scheduler.close();
  EXPECT_TRUE(hooks.ran);
  EXPECT_EQ(hooks.begun, GetParam());
  EXPECT_EQ(hooks.ended, GetParam());
}

TEST_P(SchedulerTest, WorkersThatArePinnedStayOnACpuEach) {
  cpu_set_t cpus[4] = {};
  ASSERT_EQ(sched_getaffinity(0, sizeof cpus[0], &cpus[0]), 0);
  Scheduler scheduler;
  ASSERT_TRUE(scheduler.open({.worker_count = GetParam(),
                              .pinned = true,
                              .worker_begins =
                                  [](Worker& worker, void* all) {
                                    auto* const own = static_cast<cpu_set_t*>(all) + worker.index();
                                    EXPECT_EQ(sched_getaffinity(0, sizeof *own, own), 0);
                                  },
                              .context = cpus}));
  ASSERT_TRUE(scheduler.run({.name = "main", .entry = [](void*) {}}));
  scheduler.close();
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &cpus[0])) allowed.push_back(cpu);  // from the calling thread, which is not pinned
  for (uint32_t i = 1; i < GetParam(); ++i) {
    EXPECT_EQ(CPU_COUNT(&cpus[i]), 1);
    EXPECT_TRUE(CPU_ISSET(allowed[i % allowed.size()], &cpus[i])) << i;
  }
}

__attribute__((noinline)) int sink(int depth, const char* above) {
  char frame[512];
  frame[0] = static_cast<char>(depth + *above);
  asm volatile("" : : "r"(frame) : "memory");
  return depth == 0 ? frame[0] : sink(depth - 1, frame) + frame[0];
}

using SchedulerDeathTest = SchedulerTest;

TEST_P(SchedulerDeathTest, AnOverflowNamesTheTask) {
  const auto overflow = [&] {
    report_overflows();
    run([&] {
      auto body = [] { sink(10000, "a"); };
      join(start("deep", body, worker(1)));
    });
  };
  EXPECT_DEATH(overflow(), "task deep has used more than its stack of [0-9]+K; give tasks larger stacks");
}

INSTANTIATE_TEST_SUITE_P(Workers, SchedulerDeathTest, testing::Values(1, 2));
INSTANTIATE_TEST_SUITE_P(Workers, SchedulerTest, testing::Values(1, 2, 4));

}  // namespace
}  // namespace task
