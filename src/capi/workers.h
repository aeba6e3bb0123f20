// Workers: threads on which tasks carry out requests, many at a time, while whoever submitted them does something else.
// (papers/udepot.txt, section 3)
//
//   submit ──► a lane, by the key ──► one of its tasks: perform() ──► Request::ended
//
// Invariants
//  1 a lane is one worker of the scheduler, with a session that its tasks share
//  2 requests of a key go to one lane, and its tasks take them in the order in which they came; from there to the key's lock, which
//    is fair (kv/key_locks.h), a task does not wait: who has the lock waits for room. So changes of a key are made in the order in which
//    one thread submits them, but for large values, whose pieces are written before
//  3 a permit of a lane's semaphore is a request in its list, or, when it is being closed, a task that is to end
#pragma once
#include "capi/request.h"
#include "sys/threads.h"
#include "task/scheduler.h"
#include "task/sync.h"

namespace capi {

// Something that several do, and one thread waits for.
class Latch {
 public:
  explicit Latch(uint32_t count) : left_(count) {}
  // The latch may be gone when the last one returns.
  void count_down() {
    // Pairs with the acquire in wait().
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) sys::futex_wake(left_, 1);
  }
  void wait() {
    for (uint32_t left; (left = left_.load(std::memory_order_acquire)) != 0;) sys::futex_wait(left_, left);
  }

 private:
  std::atomic<uint32_t> left_;
};

class Workers {
 public:
  static constexpr uint32_t kThreadsMax = 64;
  static constexpr uint32_t kTasksMax = 4096;

  // `task_count` in all. Errors: those of Scheduler::open and Session::open, EAGAIN. REQUIRES: 1 to kThreadsMax, 1 to kTasksMax.
  base::Expected<void> open(kv::Store& store, uint32_t thread_count, uint32_t task_count);
  // REQUIRES: all requests have ended. Blocks until the threads have.
  void close();

  // `request.ended` is called when it has been carried out, on a thread of these. The request and what it refers to stay until then.
  // Any thread. Cost: two short locks; a system call if the lane's thread sleeps.
  void submit(Request& request);

 private:
  struct alignas(64) Lane {
    Workers* workers = nullptr;
    task::InterSemaphore waiting{0};
    sys::Mutex lock;  // of the list
    Request* first = nullptr;
    Request* last = nullptr;
    kv::Session session;
    task::Task** tasks = nullptr;  // those that take requests
    uint32_t task_count = 0;
  };

  static void run_thread(void* self);
  static void run_main(void* self);
  static void run_lane(void* lane);
  static void run_task(void* lane);
  // A lane has opened, or not.
  void opened(const base::Expected<void>& result);
  static Request* take(Lane& lane);

  kv::Store* store_ = nullptr;
  uint32_t lane_count_ = 0;
  uint32_t tasks_per_lane_ = 0;
  Lane* lanes_ = nullptr;
  task::Scheduler scheduler_;
  sys::Thread thread_;  // the first worker's
  Latch* opening_ = nullptr;
  sys::Mutex opening_lock_;
  base::Expected<void> opened_;  // the first error of those that open
};

}  // namespace capi
