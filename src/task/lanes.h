// Lanes: threads that carry out work for others, many pieces at a time each, by tasks. (uDepot, section 3)
//
//   give ──► a lane's list ──► one of the lane's tasks: LaneUser::perform()
//
// Invariants
//  1 a lane is one worker of a scheduler that all lanes share
//  2 the tasks of a lane take pieces of work in the order in which the lane was given them
//  3 each permit of a lane's semaphore stands for a piece of work in its list; while the lane is being closed, for a task that is to end
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

// What lanes do. All functions are called by tasks of the lane, on its thread.
class LaneUser {
 public:
  // Called first. After an error close_lane() is not called.
  virtual base::Expected<void> open_lane(uint32_t lane) = 0;
  // Carries the work out. May block the task. The lane does not touch the work afterwards, so it may be gone.
  virtual void perform(uint32_t lane, Work& work) = 0;
  // Called after all tasks that perform work have ended.
  virtual void close_lane(uint32_t lane) = 0;

 protected:
  ~LaneUser() = default;
};

struct LanesParameters {
  const char* name = "";     // of the first thread, to 15 bytes
  uint32_t lane_count = 1;   // 1 to Scheduler::kMaxWorkers
  uint32_t tasks_each = 64;  // at least 1
  size_t stack_bytes = 64 << 10;
};

class Lanes {
 public:
  // Returns when all lanes are open, or, with an error, when none is. Errors: those of Scheduler::open and of `user`; EAGAIN, ENOMEM.
  base::Expected<void> open(const LanesParameters& parameters, LaneUser& user);
  // Blocks until the threads have ended. REQUIRES: all work that was given to lanes has been carried out.
  void close();
  uint32_t count() const { return lane_count_; }

  // Any thread. Cost: two short locks, the second one for each piece; a system call if the lane's thread sleeps.
  void give(uint32_t lane, Work& work);
  // Gives all of the list, in its order; the list is empty afterwards.
  void give(uint32_t lane, WorkList& works);
  // For the lane's own tasks: is there work in the lane's list that a task will take as soon as it runs?
  bool is_to_begin(uint32_t lane);

 private:
  struct alignas(64) Lane {
    Lanes* lanes = nullptr;
    InterSemaphore waiting{0};
    sys::Mutex lock;  // of the list
    WorkList works;
    Task** tasks = nullptr;  // those that take work
    uint32_t task_count = 0;
    uint32_t busy_count = 0;  // how many of them are carrying out work
  };

  static void run_thread(void* self);
  static void run_main(void* self);
  static void run_lane(void* lane);
  static void run_task(void* lane);
  // Of the lanes, and of the pointers to their tasks.
  size_t memory_bytes() const { return lane_count_ * (sizeof(Lane) + tasks_each_ * sizeof(Task*)); }
  uint32_t index_of(const Lane& lane) const { return static_cast<uint32_t>(&lane - lanes_); }
  // Called once for each lane, with the result of opening it.
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
  base::Expected<void> opened_;  // the first error of a lane; guarded by opening_lock_
};

}  // namespace task
