// Scheduler: some workers and the tasks that run on them. (uDepot, section 3)
//
//   Scheduler scheduler;
//   scheduler.open({.worker_count = 2});
//   scheduler.run({.name = "main", .entry = entry, .argument = argument});     returns when all tasks have ended
//   scheduler.close();
//
// Memory: a task that does little takes one OS page, of which its record is part, and its share of page tables.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "sys/threads.h"
#include "task/overflow.h"
#include "task/stack_pool.h"
#include "task/task.h"
#include "task/worker.h"

namespace task {

struct SchedulerParameters {
  uint32_t worker_count = 1;  // the first is the thread that calls run
  size_t stack_bytes = 64 << 10;
  size_t guard_bytes = base::kOsPageBytes;  // below each stack: larger frames may step over it
  bool pinned = false;                      // each worker to a CPU of its own
  // Of each worker, on its thread: before its first task, and after the last task of all.
  void (*worker_begins)(Worker& worker, void* context) = nullptr;
  void (*worker_ends)(Worker& worker, void* context) = nullptr;
  void* context = nullptr;  // of both
};

struct TaskParameters {
  const char* name = "";  // copied, to Task::kNameBytes - 1 bytes
  void (*entry)(void* argument) = nullptr;
  void* argument = nullptr;
  Worker* worker = nullptr;       // null: that of the task that spawns it
  const void* closure = nullptr;  // if not null, `argument` is a copy of this on the new task's stack
  size_t closure_bytes = 0;
};

class Scheduler {
 public:
  static constexpr uint32_t kMostWorkers = 256;

  // Errors: EINVAL, ENOMEM, EMFILE.
  base::Expected<void> open(const SchedulerParameters& parameters);
  void close();

  // Runs the task and all that it spawns; the calling thread is worker 0 meanwhile. Errors: those of spawn, and
  // EAGAIN when threads cannot be started; then nothing has run.
  base::Expected<void> run(const TaskParameters& parameters);

  // A new task, runnable, with one reference for the caller: join() or detach() ends it. By tasks; from a
  // thread without one, `worker` says where. Errors: ENOMEM, EAGAIN.
  base::Expected<Task*> spawn(const TaskParameters& parameters);
  // The reference is given up; the task goes on alone.
  void release(Task& task);

  Worker& worker(uint32_t index) { return workers_[index]; }
  uint32_t worker_count() const { return worker_count_; }
  const StackPool& stacks() const { return stacks_; }
  bool has_ended() const { return live_count_.load(std::memory_order_acquire) == 0; }

  // Calls f for every task that is there, now or a moment ago; others go on meanwhile, so what it sees may be old.
  void for_each_task(void (*f)(void* context, const Task& task), void* context);
  // One line for each task to standard error: worker, name, state, what it waits for, where.
  void dump();

  // The record of the task that has the slot, or had it. Async-signal-safe.
  const Task& task_of(uint32_t slot) const { return *record_of(slot); }

  // Of workers: the task has ended, and nobody runs on its stack.
  void ended(Task& task);
  // Of workers: ends the process with a line that names the task, if it has used more stack than it has.
  void check_stack(const Task& task) {
    if (__builtin_expect(!is_on_its_stack(task), 0)) report_overflow(task);
  }
  // Whether the caller, which the task runs, stands on the task's stack.
  bool is_on_its_stack(const Task& task) const {
    const auto at = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
    return at - reinterpret_cast<uint64_t>(stacks_.stack_of(task.slot)) < stacks_.stack_bytes();
  }
  [[noreturn]] void report_overflow(const Task& task);
  void say_overflow(const Task& task) const;

 private:
  Task* record_of(uint32_t slot) const;
  // Worker 1 and those after it, on threads of their own (threads.cc) or simulated. Errors: EAGAIN; then the first
  // started_count workers are there.
  base::Expected<void> start_workers(uint32_t& started_count);
  void join_workers(uint32_t started_count);
  void run_worker(Worker& worker);
  // One reason less for workers to go on.
  void let_go();

  StackPool stacks_;
  Worker* workers_ = nullptr;
  uint32_t worker_count_ = 0;
  SchedulerParameters parameters_;
  std::atomic<uint64_t> live_count_{0};  // tasks, and run() until the first is there
  sys::Thread* threads_ = nullptr;
  SignalStack signal_stack_;  // of the thread in run()
  uint64_t signal_mask_ = 0;  // and its mask, which the workers' threads take
};

// What the running task may do.
// A task that takes a copy of `closure` with it and calls it, on the worker of the task that calls this, or on `worker`.
base::Expected<Task*> spawn(const TaskParameters& parameters);
// Waits until it has returned, and gives the reference up; kCancelled, kTimedOut: not, and keeps it.
Woken join(Task& task, const Limit& limit = {.cancellable = false});
void detach(Task& task);
// Its present or next cancellable wait ends with kCancelled, and so do those after it. REQUIRES: a reference. Any thread.
void cancel(Task& task);
bool is_cancelled();
void yield();
// kTimedOut is what it ends with, or kCancelled.
Woken sleep_until(uint64_t deadline_ns);

}  // namespace task
