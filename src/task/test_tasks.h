// For tests: a scheduler, and tasks made of lambdas.
#pragma once
#include <gtest/gtest.h>

#include "base/check.h"
#include "task/scheduler.h"

namespace task {

// With a sanitizer, stack frames are several times as large.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr size_t kTestStackBytes = 512 << 10;
#else
inline constexpr size_t kTestStackBytes = 64 << 10;
#endif

// A task that calls `f`, which outlives it.
template <class F>
TaskParameters calls(const char* name, F& f, Worker* worker = nullptr) {
  return {.name = name,
          .entry = [](void* function) { (*static_cast<F*>(function))(); },
          .argument = &f,
          .worker = worker};
}

template <class F>
Task& start(const char* name, F& f, Worker* worker = nullptr) {
  auto task = spawn(calls(name, f, worker));
  CHECK(task.has_value());
  return **task;
}

// A test whose body runs as a task.
class TasksTest : public testing::Test {
 protected:
  explicit TasksTest(uint32_t worker_count) : worker_count_(worker_count) {}
  void SetUp() override {
    ASSERT_TRUE(scheduler.open({.worker_count = worker_count_, .stack_bytes = kTestStackBytes}));
  }
  void TearDown() override { scheduler.close(); }

  template <class F>
  void run(F f) {
    auto ran = scheduler.run(calls("main", f));
    ASSERT_TRUE(ran) << ran.error().message;
  }
  Worker* worker(uint32_t i) { return &scheduler.worker(i % worker_count_); }

  Scheduler scheduler;

 private:
  const uint32_t worker_count_;
};

}  // namespace task
