// Executors: all work is done once, in order, and on the thread of its executor; if opening one executor fails, all end.
#include "task/executors.h"

#include <thread>
#include <vector>

#include "task/test_tasks.h"

namespace task {
namespace {

constexpr uint32_t kExecutors = 3;

struct Numbered : Work {
  uint32_t number = 0;
  sys::Latch* done = nullptr;
};

// Records what each executor has done.
class Recorder final : public ExecutorUser {
 public:
  base::Expected<void> open_executor(uint32_t executor) override {
    if (executor == fails) return base::failure(ENOSPC, "executor ", executor, " is full");
    threads[executor] = std::this_thread::get_id();
    ++open_count;
    return {};
  }
  void perform(uint32_t executor, Work& work) override {
    auto& numbered = static_cast<Numbered&>(work);
    EXPECT_EQ(std::this_thread::get_id(), threads[executor]);
    numbers[executor].push_back(numbered.number);
    if (numbered.number % 3 == 0) yield();  // other work is carried out meanwhile
    numbered.done->count_down();
  }
  void close_executor(uint32_t executor) override {
    EXPECT_EQ(std::this_thread::get_id(), threads[executor]);
    --open_count;
  }

  uint32_t fails = kExecutors;
  std::atomic<int> open_count{0};
  std::thread::id threads[kExecutors];
  std::vector<uint32_t> numbers[kExecutors];
};

ExecutorsParameters executors_of(uint32_t tasks) {
  return {.name = "test", .executor_count = kExecutors, .tasks_each = tasks, .stack_bytes = kTestStackBytes};
}

TEST(ExecutorsTest, DoWhatTheyAreGivenInItsOrder) {
  Recorder recorder;
  Executors executors;
  ASSERT_TRUE(executors.open(executors_of(4), recorder));
  EXPECT_EQ(recorder.open_count, 3);
  constexpr uint32_t kCount = 300;
  sys::Latch done(kCount);
  std::vector<Numbered> all(kCount);
  WorkList together;
  for (uint32_t i = 0; i < kCount; ++i) {
    all[i].number = i;
    all[i].done = &done;
    // Executor 0 gets them one by one, executor 1 in lists of 10, executor 2 gets none.
    if (i % 2 == 0)
      executors.give(0, all[i]);
    else
      together.append(all[i]);
    if (together.count() == 10) executors.give(1, together);
  }
  EXPECT_TRUE(together.empty());
  done.wait();
  executors.close();
  EXPECT_EQ(recorder.open_count, 0);
  for (uint32_t executor = 0; executor < 2; ++executor) {
    ASSERT_EQ(recorder.numbers[executor].size(), kCount / 2);
    for (uint32_t i = 0; i < kCount / 2; ++i) ASSERT_EQ(recorder.numbers[executor][i], 2 * i + executor);
  }
  EXPECT_TRUE(recorder.numbers[2].empty());
}

// Three pieces of work are given together: is there more to begin while each of them is carried out?
TEST(ExecutorsTest, TellWhetherThereIsMoreToBegin) {
  struct Looker final : ExecutorUser {
    base::Expected<void> open_executor(uint32_t) override { return {}; }
    void perform(uint32_t executor, Work& work) override {
      seen.push_back(executors->is_to_begin(executor));
      static_cast<Numbered&>(work).done->count_down();
    }
    void close_executor(uint32_t) override {}
    Executors* executors = nullptr;
    std::vector<bool> seen;
  };
  for (const uint32_t tasks : {1u, 2u}) {
    Looker looker;
    Executors executors;
    looker.executors = &executors;
    ASSERT_TRUE(executors.open(
        {.name = "test", .executor_count = 1, .tasks_each = tasks, .stack_bytes = kTestStackBytes}, looker));
    sys::Latch done(3);
    Numbered all[3];
    WorkList list;
    for (Numbered& one : all) {
      one.done = &done;
      list.append(one);
    }
    executors.give(0, list);
    done.wait();
    executors.close();
    const bool has_another_task = tasks > 1;
    EXPECT_EQ(looker.seen, (std::vector<bool>{has_another_task, has_another_task, false}));
  }
}

TEST(ExecutorsTest, ManyThreadsGiveThemWork) {
  Recorder recorder;
  Executors executors;
  ASSERT_TRUE(executors.open(executors_of(8), recorder));
  constexpr uint32_t kThreads = 4, kRounds = 200, kEach = 16;
  std::vector<std::thread> threads;
  for (uint32_t self = 0; self < kThreads; ++self)
    threads.emplace_back([&, self] {
      std::vector<Numbered> all(kEach);
      for (uint32_t round = 0; round < kRounds; ++round) {
        sys::Latch done(kEach);
        WorkList works[kExecutors];
        for (uint32_t i = 0; i < kEach; ++i) {
          all[i].number = i;
          all[i].done = &done;
          works[(self + i) % kExecutors].append(all[i]);
        }
        for (uint32_t executor = 0; executor < kExecutors; ++executor)
          executors.give(executor, works[executor]);
        done.wait();
      }
    });
  for (std::thread& thread : threads) thread.join();
  executors.close();
  size_t count = 0;
  for (const auto& numbers : recorder.numbers) count += numbers.size();
  EXPECT_EQ(count, kThreads * kRounds * kEach);
}

TEST(ExecutorsTest, OneThatDoesNotOpenClosesTheOthers) {
  Recorder recorder;
  recorder.fails = 1;
  Executors executors;
  auto opened = executors.open(executors_of(4), recorder);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number, ENOSPC);
  EXPECT_STREQ(opened.error().message, "executor 1 is full");
  EXPECT_EQ(recorder.open_count, 0);
}

}  // namespace
}  // namespace task
