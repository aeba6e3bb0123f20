// Scheduler: a number of workers and the tasks that run on them. (uDepot, section 3)
//
//   Scheduler scheduler;
//   scheduler.open({.worker_count = 2});
//   scheduler.run({.name = "main", .entry = entry, .argument = argument});     returns when all tasks have ended
//   scheduler.close();
//
// Memory: a task that does little takes one OS page, which also contains its record, and its share of page tables.
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
  // Below each stack; a stack frame larger than the guard may step over it.
  size_t guard_bytes = base::kOsPageBytes;
  bool pinned = false;  // each worker but the first stays on a CPU of its own
  // Called for each worker, on its thread: before its first task, and after all tasks of all workers have ended.
  void (*worker_begins)(Worker& worker, void* context) = nullptr;
  void (*worker_ends)(Worker& worker, void* context) = nullptr;
  void* context = nullptr;  // of both
};

struct TaskParameters {
  const char* name = "";  // copied, to Task::kNameBytes - 1 bytes
  void (*entry)(void* argument) = nullptr;
  void* argument = nullptr;
  Worker* worker = nullptr;       // null: that of the task that spawns it
  const void* closure = nullptr;  // if not null, `argument` is a copy of this, on the new task's stack
  size_t closure_bytes = 0;       // a quarter of a stack at most
};

class Scheduler {
 public:
  static constexpr uint32_t kMaxWorkers = 256;

  // Errors: EINVAL, ENOMEM, EMFILE.
  base::Expected<void> open(const SchedulerParameters& parameters);
  void close();

  // Runs the task and all that it spawns, and returns when all have ended; the calling thread is worker 0 meanwhile. Errors: those of
  // spawn, and EAGAIN if threads cannot be started; nothing has run then.
  base::Expected<void> run(const TaskParameters& parameters);

  // Creates a runnable task, with one reference for the caller, which join() or detach() gives up. Called by tasks; a thread that runs none
  // has to name a worker. Errors: ENOMEM, EAGAIN.
  base::Expected<Task*> spawn(const TaskParameters& parameters);
  // Gives up a reference; the task continues.
  void release(Task& task);

  Worker& worker(uint32_t index) { return workers_[index]; }
  uint32_t worker_count() const { return worker_count_; }
  const StackPool& stacks() const { return stacks_; }
  bool has_ended() const { return live_count_.load(std::memory_order_acquire) == 0; }

  // Calls f for every task. Tasks run on meanwhile, so what f sees may be outdated.
  void for_each_task(void (*f)(void* context, const Task& task), void* context);
  // One line for each task to standard error: its name, its worker, its state, and what it waits for.
  void dump();

  // The record of the task that has the slot or had it last. Async-signal-safe.
  const Task& task_of(uint32_t slot) const { return *record_of(slot); }

  // For workers: the task has ended, and nothing runs on its stack any more.
  void ended(Task& task);
  // For workers, on the task's stack: if the task has overflowed it, ends the process with a line that names the task.
  void check_stack(const Task& task) {
    if (__builtin_expect(!is_on_its_stack(task), 0)) report_overflow(task);
  }
  // Is the caller, which the task runs, on the task's stack?
  bool is_on_its_stack(const Task& task) const {
    const auto at = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
    return at - reinterpret_cast<uint64_t>(stacks_.stack_of(task.slot)) < stacks_.stack_bytes();
  }
  [[noreturn]] void report_overflow(const Task& task);
  void say_overflow(const Task& task) const;

 private:
  Task* record_of(uint32_t slot) const;
  // Starts worker 1 and those after it, on threads of their own (threads.cc) or simulated. Errors: EAGAIN; only the first started_count
  // workers run then.
  base::Expected<void> start_workers(uint32_t& started_count);
  void join_workers(uint32_t started_count);
  void run_worker(Worker& worker);
  // Lowers live_count_; when it is 0, workers end.
  void let_go();

  StackPool stacks_;
  Worker* workers_ = nullptr;
  uint32_t worker_count_ = 0;
  SchedulerParameters parameters_;
  // Of tasks that have not ended; run() counts until it has spawned the first one.
  std::atomic<uint64_t> live_count_{0};
  sys::Thread* threads_ = nullptr;
  SignalStack signal_stack_;  // of the thread in run()
  uint64_t signal_mask_ = 0;  // and its mask, which the workers' threads get, too
};

// --- What a running task may do ---

// As Scheduler::spawn().
base::Expected<Task*> spawn(const TaskParameters& parameters);
// Waits until the task has ended, and gives up the reference. After kCancelled and kTimedOut it has not ended, and the reference stays.
Woken join(Task& task, const Limit& limit = {.cancellable = false});
// Gives up the reference.
void detach(Task& task);
// Ends the task's present or next cancellable wait with kCancelled, and all later ones. Any thread. REQUIRES: the caller has a reference.
void cancel(Task& task);
// Has the running task been cancelled?
bool is_cancelled();
// Lets the other runnable tasks of the worker run first.
void yield();
// Ends with kTimedOut or kCancelled.
Woken sleep_until(uint64_t deadline_ns);

}  // namespace task
