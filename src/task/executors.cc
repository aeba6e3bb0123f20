#include "task/executors.h"

#include <new>

#include "base/check.h"
#include "sys/memory.h"

namespace task {

base::Expected<void> Executors::open(const ExecutorsParameters& parameters, ExecutorUser& user) {
  CHECK(parameters.executor_count >= 1 && parameters.tasks_each >= 1);
  user_ = &user;
  executor_count_ = parameters.executor_count;
  tasks_each_ = parameters.tasks_each;
  auto memory = sys::map_anonymous(memory_bytes(), "threads with tasks");
  if (!memory) return std::unexpected(memory.error());
  executors_ = reinterpret_cast<Executor*>(*memory);
  auto** const tasks = reinterpret_cast<Task**>(&executors_[executor_count_]);
  for (uint32_t i = 0; i < executor_count_; ++i) {
    new (&executors_[i]) Executor;
    executors_[i].executors = this;
    executors_[i].tasks = tasks + uint64_t{i} * tasks_each_;
  }
  opened_ = scheduler_.open({.worker_count = executor_count_, .stack_bytes = parameters.stack_bytes});
  if (!opened_) {
    free_executors();
    return opened_;
  }
  sys::Latch opening(executor_count_);
  opening_ = &opening;
  auto thread = sys::start_thread(run_thread, this, parameters.name);
  if (!thread) {
    scheduler_.close();
    free_executors();
    return std::unexpected(thread.error());
  }
  thread_ = *thread;
  opening.wait();
  if (!opened_) {
    const base::Expected<void> result = opened_;
    close();
    return result;
  }
  return {};
}

void Executors::close() {
  for (uint32_t i = 0; i < executor_count_; ++i) {
    CHECK(executors_[i].works.empty());
    executors_[i].waiting.release(executors_[i].task_count);
  }
  sys::join_thread(thread_);
  scheduler_.close();
  free_executors();
}

void Executors::free_executors() {
  for (uint32_t i = 0; i < executor_count_; ++i) executors_[i].~Executor();
  sys::unmap(executors_, memory_bytes());
  executors_ = nullptr;
}

void Executors::run_thread(void* self) {
  auto& executors = *static_cast<Executors*>(self);
  const auto ran = executors.scheduler_.run({.name = "executors", .entry = run_main, .argument = self});
  if (ran) return;
  for (uint32_t i = 0; i < executors.executor_count_; ++i) executors.opened(ran);  // nothing has run
}

void Executors::run_main(void* self) {
  auto& executors = *static_cast<Executors*>(self);
  for (uint32_t i = 0; i < executors.executor_count_; ++i) {
    auto task = spawn({.name = "executor",
                       .entry = run_executor,
                       .argument = &executors.executors_[i],
                       .worker = &executors.scheduler_.worker(i)});
    if (task)
      detach(**task);
    else
      executors.opened(std::unexpected(task.error()));
  }
}

void Executors::run_executor(void* argument) {
  Executor& executor = *static_cast<Executor*>(argument);
  Executors& executors = *executor.executors;
  const uint32_t index = executors.index_of(executor);
  base::Expected<void> result = executors.user_->open_executor(index);
  if (!result) return executors.opened(result);
  while (executor.task_count < executors.tasks_each_ && result) {
    auto task = spawn({.name = "executor-work", .entry = run_task, .argument = &executor});
    if (task)
      executor.tasks[executor.task_count++] = *task;
    else
      result = std::unexpected(task.error());
  }
  const uint32_t count =
      executor.task_count;  // read here, since close() may use it once the executor has opened
  executors.opened(result);
  for (uint32_t i = 0; i < count; ++i) static_cast<void>(join(*executor.tasks[i]));
  executors.user_->close_executor(index);
}

void Executors::run_task(void* argument) {
  Executor& executor = *static_cast<Executor*>(argument);
  Executors& executors = *executor.executors;
  const uint32_t index = executors.index_of(executor);
  for (;;) {
    static_cast<void>(executor.waiting.acquire({.cancellable = false}));
    Work* work = nullptr;
    {
      sys::LockGuard scope(executor.lock);
      if (!executor.works.empty()) work = &executor.works.take_first();
    }
    if (work == nullptr) return;
    ++executor.busy_count;
    executors.user_->perform(index, *work);
    --executor.busy_count;
  }
}

void Executors::opened(const base::Expected<void>& result) {
  {
    sys::LockGuard scope(opening_lock_);
    if (!result && opened_) opened_ = result;
  }
  opening_->count_down();
}

bool Executors::is_to_begin(uint32_t index) {
  Executor& executor = executors_[index];
  if (executor.busy_count == executor.task_count) return false;
  sys::LockGuard scope(executor.lock);
  return !executor.works.empty();
}

void Executors::give(uint32_t index, Work& work) {
  WorkList works;
  works.append(work);
  give(index, works);
}

void Executors::give(uint32_t index, WorkList& works) {
  Executor& executor = executors_[index];
  const uint32_t count = works.count();
  {
    sys::LockGuard scope(executor.lock);
    executor.works.append(works);
  }
  executor.waiting.release(count);
}

}  // namespace task
