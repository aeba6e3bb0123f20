// Executors: threads that carry out work for others, many pieces at a time each, by tasks. (uDepot, section 3)
//
//   give ──► an executor's list ──► one of the executor's tasks: ExecutorUser::perform()
//
// Invariants
//  1 an executor is one worker of a scheduler that all executors share
//  2 the tasks of an executor take pieces of work in the order in which the executor was given them
//  3 each permit of an executor's semaphore stands for a piece of work in its list; while the executor is being closed, for a task that is to end
#pragma once
#include "sys/latch.h"
#include "sys/threads.h"
#include "task/scheduler.h"
#include "task/sync.h"

namespace task {

// The base class of a piece of work: what lists need. It is in at most one list at a time.
struct Work {
  Work* next_work = nullptr;
};

// First in, first out.
class WorkList {
 public:
  bool empty() const { return first_ == nullptr; }
  uint32_t count() const { return count_; }
  void append(Work& work) {
    work.next_work = nullptr;
    append(work, work, 1);
  }
  // `works` is empty afterwards.
  void append(WorkList& works) {
    if (!works.empty()) append(*works.first_, *works.last_, works.count_);
    works = {};
  }
  // REQUIRES: not empty.
  Work& take_first() {
    Work& work = *first_;
    first_ = work.next_work;
    --count_;
    return work;
  }

 private:
  void append(Work& first, Work& last, uint32_t count) {
    (empty() ? first_ : last_->next_work) = &first;
    last_ = &last;
    count_ += count;
  }

  Work* first_ = nullptr;
  Work* last_ = nullptr;
  uint32_t count_ = 0;
};

// What executors do. All functions are called by tasks of the executor, on its thread.
class ExecutorUser {
 public:
  // Called first. After an error close_executor() is not called.
  virtual base::Expected<void> open_executor(uint32_t executor) = 0;
  // Carries the work out. May block the task. The executor does not touch the work afterwards, so it may be gone.
  virtual void perform(uint32_t executor, Work& work) = 0;
  // Called after all tasks that perform work have ended.
  virtual void close_executor(uint32_t executor) = 0;

 protected:
  ~ExecutorUser() = default;
};

struct ExecutorsParameters {
  const char* name = "";        // of the first thread, to 15 bytes
  uint32_t executor_count = 1;  // 1 to Scheduler::kMaxWorkers
  uint32_t tasks_each = 64;     // at least 1
  size_t stack_bytes = 64 << 10;
};

class Executors {
 public:
  // Returns when all executors are open, or, with an error, when none is. Errors: those of Scheduler::open and of `user`; EAGAIN, ENOMEM.
  base::Expected<void> open(const ExecutorsParameters& parameters, ExecutorUser& user);
  // Blocks until the threads have ended. REQUIRES: all work that was given to executors has been carried out.
  void close();
  uint32_t count() const { return executor_count_; }

  // Any thread. Cost: two short locks, the second one for each piece; a system call if the executor's thread sleeps.
  void give(uint32_t executor, Work& work);
  // Gives all of the list, in its order; the list is empty afterwards.
  void give(uint32_t executor, WorkList& works);
  // For the executor's own tasks: is there work in the executor's list that a task will take as soon as it runs?
  bool is_to_begin(uint32_t executor);

 private:
  struct alignas(64) Executor {
    Executors* executors = nullptr;
    InterSemaphore waiting{0};
    sys::Mutex lock;  // of the list
    WorkList works;
    Task** tasks = nullptr;  // those that take work
    uint32_t task_count = 0;
    uint32_t busy_count = 0;  // how many of them are carrying out work
  };

  static void run_thread(void* self);
  static void run_main(void* self);
  static void run_executor(void* executor);
  static void run_task(void* executor);
  // Of the executors, and of the pointers to their tasks.
  size_t memory_bytes() const { return executor_count_ * (sizeof(Executor) + tasks_each_ * sizeof(Task*)); }
  uint32_t index_of(const Executor& executor) const { return static_cast<uint32_t>(&executor - executors_); }
  // Called once for each executor, with the result of opening it.
  void opened(const base::Expected<void>& result);
  void free_executors();

  ExecutorUser* user_ = nullptr;
  uint32_t executor_count_ = 0;
  uint32_t tasks_each_ = 0;
  Executor* executors_ = nullptr;
  Scheduler scheduler_;
  sys::Thread thread_;  // the first worker's
  sys::Latch* opening_ = nullptr;
  sys::Mutex opening_lock_;
  base::Expected<void> opened_;  // the first error of an executor; guarded by opening_lock_
};

}  // namespace task
