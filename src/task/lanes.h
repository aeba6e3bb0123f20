// Lanes: threads, on each of which tasks carry out what it is given, many at a time, while whoever gave it does something else.
// (uDepot, section 3)
//
//   give ──► a lane's list ──► one of its tasks: LaneUser::perform()
//
// Invariants
//  1 a lane is one worker of a scheduler of their own
//  2 its tasks take what it is given in the order in which it came
//  3 a permit of a lane's semaphore is a piece of work in its list, or, when it is being closed, a task that is to end
#pragma once
#include "sys/latch.h"
#include "sys/threads.h"
#include "task/scheduler.h"
#include "task/sync.h"

namespace task {

// Something to be done: the part of it that lists need. In one list at a time.
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

// What lanes do. Each is called by a task of the lane, on its thread.
class LaneUser {
 public:
  // Before all else. After an error the lane is not closed.
  virtual base::Expected<void> open_lane(uint32_t lane) = 0;
  // May block the task. The work may be gone when it returns.
  virtual void perform(uint32_t lane, Work& work) = 0;
  // When all its tasks have ended.
  virtual void close_lane(uint32_t lane) = 0;

 protected:
  ~LaneUser() = default;
};

struct LanesParameters {
  const char* name = "";     // of the first thread, to 15 bytes
  uint32_t lane_count = 1;   // 1 to Scheduler::kMostWorkers
  uint32_t tasks_each = 64;  // at least 1
  size_t stack_bytes = 64 << 10;
};

class Lanes {
 public:
  // Returns when all lanes are open, or one is not: then none is. Errors: those of Scheduler::open and of `user`, EAGAIN, ENOMEM.
  base::Expected<void> open(const LanesParameters& parameters, LaneUser& user);
  // REQUIRES: all that was given has been carried out. Blocks until the threads have ended.
  void close();
  uint32_t count() const { return lane_count_; }

  // Any thread. Cost: two short locks, the second for each piece; a system call if the lane's thread sleeps.
  void give(uint32_t lane, Work& work);
  // All of them, in their order. The list is empty afterwards.
  void give(uint32_t lane, WorkList& works);
  // Of a lane, by its own tasks: has it been given something that a task takes as soon as it runs?
  bool is_to_begin(uint32_t lane);

 private:
  struct alignas(64) Lane {
    Lanes* lanes = nullptr;
    InterSemaphore waiting{0};
    sys::Mutex lock;  // of the list
    WorkList works;
    Task** tasks = nullptr;  // those that take work
    uint32_t task_count = 0;
    uint32_t busy_count = 0;  // of them, that carry some out
  };

  static void run_thread(void* self);
  static void run_main(void* self);
  static void run_lane(void* lane);
  static void run_task(void* lane);
  // Of lanes, and of the pointers to their tasks.
  size_t memory_bytes() const { return lane_count_ * (sizeof(Lane) + tasks_each_ * sizeof(Task*)); }
  uint32_t index_of(const Lane& lane) const { return static_cast<uint32_t>(&lane - lanes_); }
  // A lane has opened, or not.
  void opened(const base::Expected<void>& result);
  void free_lanes();

  LaneUser* user_ = nullptr;
  uint32_t lane_count_ = 0;
  uint32_t tasks_each_ = 0;
  Lane* lanes_ = nullptr;
  Scheduler scheduler_;
  sys::Thread thread_;  // the first worker's
  sys::Latch* opening_ = nullptr;
  sys::Mutex opening_lock_;
  base::Expected<void> opened_;  // the first error of those that open
};

}  // namespace task
