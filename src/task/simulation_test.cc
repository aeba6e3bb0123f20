// Random programs of tasks under the deterministic scheduler: their shared data stays consistent, and all of them end.
#include "task/simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "task/scheduler.h"
#include "task/sync.h"
#include "task/test_tasks.h"

namespace task {
namespace {

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* const text = getenv(variable);
  return text == nullptr ? otherwise : strtoull(text, nullptr, 10);
}

// A program: some tasks, each of which does random things with shared data.
class Program {
 public:
  Program(Scheduler& scheduler, uint64_t seed) : scheduler_(scheduler) {
    worker_count_ = scheduler.worker_count();
    task_count_ = 2 + static_cast<uint32_t>(seed % 14);
    step_count_ = (4 + static_cast<uint32_t>(seed / 14 % 30)) *
                  static_cast<uint32_t>(number_of("SPILLWAY_TEST_LENGTH", 1));
    for (uint32_t i = 0; i < task_count_; ++i) actors_.push_back(std::make_unique<Actor>(*this, i));
  }

  void run() {
    for (auto& actor : actors_) {
      auto task = spawn({.name = "actor",
                         .entry = [](void* self) { static_cast<Actor*>(self)->run(); },
                         .argument = actor.get(),
                         .worker = &scheduler_.worker(choose(worker_count_))});
      ASSERT_TRUE(task);
      actor->task = *task;
    }
    started_.fulfil();
    for (auto& actor : actors_) {
      // Finally without a deadline: if the wakeup was lost, nothing else may end the wait.
      if (join(*actor->task, {.deadline_ns = now_ns() + choose(100'000)}) != Woken::kNotified)
        join(*actor->task);
    }
    EXPECT_EQ(in_critical_, 0);
    EXPECT_EQ(buffered_, 0);
    EXPECT_EQ(permits_out_, 0);
    for (uint32_t i = 0; i < kPermits; ++i) EXPECT_TRUE(permits_.try_acquire());
    EXPECT_FALSE(permits_.try_acquire());
  }

 private:
  static constexpr uint32_t kPermits = 2;

  struct Actor {
    Actor(Program& owner, uint32_t number) : program(owner), index(number) {}
    void run() {
      // After a cancellation all waits end early, so all that follows must work without them.
      while (program.started_.wait() == Woken::kCancelled && !program.started_.is_fulfilled()) yield();
      for (uint32_t i = 0; i < program.step_count_; ++i) program.step(*this);
      done.fulfil(index);
    }
    Program& program;
    uint32_t index;
    Task* task = nullptr;
    Future done;
  };

  void step(Actor& actor) {
    switch (choose(12)) {
      case 0: yield(); break;
      case 1: hold_mutex(); break;
      case 2: hold_permit(); break;
      case 3: wait_for_earlier(actor); break;
      case 4: wait_for_any(actor); break;
      case 5: produce(); break;
      case 6: consume(); break;
      case 7: static_cast<void>(sleep_until(now_ns() + choose(2000))); break;
      case 8: spawn_and_join(); break;
      // One of the tasks that are not joined yet: main joins them in order.
      case 9: cancel(*actors_[actor.index + choose(task_count_ - actor.index)]->task); break;
      case 10: hand_over(); break;
      case 11: await_flag(); break;
    }
  }

  Limit some_limit() {
    switch (choose(3)) {
      case 0: return {.deadline_ns = now_ns() + choose(3000)};
      case 1: return {.cancellable = false};
      default: return {};
    }
  }

  void hold_mutex() {
    if (choose(4) == 0) {
      if (!mutex_.try_lock()) return;
    } else if (mutex_.lock_until(some_limit()) != Woken::kNotified) {
      return;
    }
    EXPECT_EQ(in_critical_++, 0);
    if (choose(2) == 0) yield();
    choice_point();
    EXPECT_EQ(--in_critical_, 0);
    mutex_.unlock();
  }

  void hold_permit() {
    if (permits_.acquire(some_limit()) != Woken::kNotified) return;
    EXPECT_LE(++permits_out_, static_cast<int>(kPermits));
    if (choose(2) == 0) yield();
    --permits_out_;
    permits_.release();
  }

  // Waits for a task with a lower number, so that there are no cycles.
  void wait_for_earlier(Actor& actor) {
    if (actor.index == 0) return;
    Actor& other = *actors_[choose(actor.index)];
    if (other.done.wait(some_limit()) == Woken::kNotified) {
      EXPECT_TRUE(other.done.is_fulfilled());
      EXPECT_EQ(other.done.value(), other.index);
    }
  }

  void wait_for_any(Actor& actor) {
    if (actor.index == 0) return;
    std::vector<Future::Link> links(actor.index);
    WaitSet set;
    uint32_t count = 0;
    for (uint32_t i = 0; i < actor.index; ++i)
      if (choose(2) == 0) set.add(actors_[i]->done, links[count++]);
    for (uint32_t left = choose(count + 1); left > 0; --left) {
      Woken woken = Woken::kNotified;
      Future* const future = set.wait(some_limit(), &woken);
      if (future == nullptr) {
        EXPECT_NE(woken, Woken::kNotified);
        break;
      }
      EXPECT_TRUE(future->is_fulfilled());
    }
  }

  void produce() {
    buffer_mutex_.lock();
    ++buffered_;
    buffer_mutex_.unlock();
    changed_.notify_one();
    // Each item is taken by the task that put it in, at the latest.
    consume();
  }

  void consume() {
    buffer_mutex_.lock();
    if (buffered_ == 0) {
      const Woken woken = changed_.wait(buffer_mutex_, {.deadline_ns = now_ns() + choose(3000)});
      EXPECT_TRUE(buffer_mutex_.is_held_by_self());
      static_cast<void>(woken);
    }
    if (buffered_ > 0) --buffered_;
    buffer_mutex_.unlock();
  }

  void spawn_and_join() {
    auto count = std::make_unique<uint32_t>(0);
    auto task = spawn({.name = "child",
                       .entry =
                           [](void* counter) {
                             yield();
                             ++*static_cast<uint32_t*>(counter);
                           },
                       .argument = count.get(),
                       .worker = &scheduler_.worker(choose(worker_count_))});
    ASSERT_TRUE(task);
    if (choose(4) == 0) cancel(**task);
    EXPECT_EQ(join(**task), Woken::kNotified);
    EXPECT_EQ(*count, 1u);
  }

  // A future on the stack, which another worker's task fulfils, and which is gone right afterwards.
  void hand_over() {
    Future future;
    auto task = spawn({.name = "fulfils",
                       .entry = [](void* to) { static_cast<Future*>(to)->fulfil(3); },
                       .argument = &future,
                       .worker = &scheduler_.worker(choose(worker_count_))});
    ASSERT_TRUE(task);
    detach(**task);
    if (choose(2) == 0) {
      EXPECT_EQ(future.wait({.cancellable = false}), Woken::kNotified);
    } else {
      Future::Link link;
      WaitSet set;
      set.add(future, link);
      EXPECT_EQ(set.wait({.cancellable = false}), &future);
    }
    EXPECT_EQ(future.value(), 3u);
  }

  // Without a deadline: a missed notification would leave it waiting for ever.
  void await_flag() {
    struct Flag {
      InterMutex mutex;
      InterCondition changed;
      bool is_set = false;
    } flag;
    auto task = spawn({.name = "sets a flag",
                       .entry =
                           [](void* argument) {
                             Flag& its = *static_cast<Flag*>(argument);
                             its.mutex.lock();
                             its.is_set = true;
                             its.mutex.unlock();
                             its.changed.notify_all();
                           },
                       .argument = &flag,
                       .worker = &scheduler_.worker(choose(worker_count_))});
    ASSERT_TRUE(task);
    flag.mutex.lock();
    while (!flag.is_set) EXPECT_EQ(flag.changed.wait(flag.mutex, {.cancellable = false}), Woken::kNotified);
    flag.mutex.unlock();
    join(**task);
  }

  Scheduler& scheduler_;
  uint32_t worker_count_;
  uint32_t task_count_;
  uint32_t step_count_;
  std::vector<std::unique_ptr<Actor>> actors_;
  Future started_;
  InterMutex mutex_;
  int in_critical_ = 0;
  InterSemaphore permits_{kPermits};
  int permits_out_ = 0;
  InterMutex buffer_mutex_;
  InterCondition changed_;
  int buffered_ = 0;
};

uint64_t simulate(uint64_t seed) {
  Simulation simulation(seed, 1 + static_cast<uint32_t>(seed % 6));
  Scheduler scheduler;
  EXPECT_TRUE(
      scheduler.open({.worker_count = 1 + static_cast<uint32_t>(seed % 4), .stack_bytes = kTestStackBytes}));
  {
    Program program(scheduler, seed);
    EXPECT_TRUE(scheduler.run({.name = "main",
                               .entry = [](void* self) { static_cast<Program*>(self)->run(); },
                               .argument = &program}));
  }
  scheduler.close();
  return simulation.decision_count();
}

// SPILLWAY_TEST_PROGRAMS=n: n programs; SPILLWAY_TEST_SEED=s: the first seed; SPILLWAY_TEST_LENGTH=k: k times as long.
TEST(SimulationTest, RandomProgramsEndAndShareRightly) {
  const uint64_t first = number_of("SPILLWAY_TEST_SEED", 1), count = number_of("SPILLWAY_TEST_PROGRAMS", 500);
  uint64_t decisions = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    decisions += simulate(seed);
    ASSERT_FALSE(HasFailure()) << "replay: SPILLWAY_TEST_SEED=" << seed
                               << " SPILLWAY_TEST_PROGRAMS=1 task_simulation_test";
  }
  printf("%llu decisions over %llu seeds\n", static_cast<unsigned long long>(decisions),
         static_cast<unsigned long long>(count));
}

TEST(SimulationTest, ASeedDecidesEverything) {
  std::set<uint64_t> counts;
  for (uint64_t seed = 7; seed < 20; ++seed) {
    const uint64_t decisions = simulate(seed);
    EXPECT_EQ(simulate(seed), decisions);
    counts.insert(decisions);
  }
  EXPECT_GT(counts.size(), 5u) << "programs of different seeds are different";
}

}  // namespace
}  // namespace task
