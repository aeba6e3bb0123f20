// Worker: a thread that runs those tasks of a scheduler that belong to it, and polls for them.
//
// One turn of the loop (run)
//  1 messages: tasks that other threads have woken become runnable, and cancellations are carried out
//  2 timers: waits whose deadline has come end
//  3 tasks: up to kTasksPerTurn runnable ones, first in, first out, each until it blocks, yields or ends. The worker switches from one
//    directly to the next
//  4 pollers: each is polled
//  5 sockets and sleep. When nothing has run and nothing has come for some turns (base/idle.h), the worker sleeps until a socket changes, a
//    message comes, a poller's descriptor becomes readable, or the first timer or the earliest time named by a poller is due. A worker with
//    sockets whose pollers expect nothing soon does not keep polling for some turns: as soon as no task is runnable, it asks for changes of
//    sockets and sleeps with one system call, which costs less than polling again
//
// Sleep and wake, without lost wakeups
//  worker: asleep_ = 1; fence; looks at the inbox; sleeps on its events, woken_ among them; asleep_ = 0
//  other:  puts its message into the inbox; fence; if asleep_ is 1, and this thread is the one that changes it to 0, sets woken_
//
// Thread contract: post() and rouse() by any thread; everything else by the worker's own thread.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "base/idle.h"
#include "base/poller.h"
#include "sys/events.h"
#include "task/task.h"

namespace task {

// The deadline of a wait.
struct TaskTimer : Timers::Node {
  Task* task = nullptr;
};

class Worker {
 public:
  static constexpr uint32_t kMaxPollers = 16;

  // Errors: EMFILE, ENOMEM.
  base::Expected<void> open(Scheduler& scheduler, uint32_t index);
  // Waits for threads that are still inside post(), even if their messages have been processed already.
  void close();

  // Runs tasks on the calling thread until the scheduler stops.
  void run();

  // The worker whose loop or task the calling thread runs, or null.
  static Worker* current();
  static void set_current(Worker* worker);

  uint32_t index() const { return index_; }
  Scheduler& scheduler() const { return *scheduler_; }
  Task* running() const { return running_; }

  // Polls the poller once a turn until it is removed. Errors: ENOSPC if there are kMaxPollers; those of watching its descriptor.
  base::Expected<void> add_poller(base::Poller& poller);
  // REQUIRES: it was added; its descriptor is still open.
  void remove_poller(base::Poller& poller);

  // Where sockets of this worker's tasks are registered, so that the worker reports their changes to them. REQUIRES: the worker runs.
  sys::EventSet& peers() { return events_; }

  // Blocks the running task (waiting.h).
  Woken block(Waiting& waiting, const Limit& limit);
  // Lets the other runnable tasks run first.
  void yield();
  // The first and the last call of a task.
  void begin();
  [[noreturn]] void end();
  // REQUIRES: the task is the worker's own, and is not runnable already.
  void make_runnable(Task& task);
  // Any thread: the worker will process the message soon. The message may be posted again when it has been delivered.
  void post(Message& message);
  // Any thread: ends the worker's sleep, so that it checks again whether there is something to do, or whether it is to end.
  void rouse();

 private:
  size_t take_messages();
  size_t fire_timers();
  size_t run_tasks();
  size_t poll_all();
  void sleep(uint64_t until_ns);
  // The kernel's part of sleeping (worker_sleep.cc), or the simulation's. sleep_until_woken() returns at that time, when somebody calls
  // end_sleep() or has called it since the last sleep, and sometimes spuriously.
  base::Expected<void> open_sleep();
  void close_sleep();
  base::Expected<void> watch(int descriptor);
  void end_watch(int descriptor);
  void look_for_peers();
  void sleep_until_woken(uint64_t until_ns);
  void end_sleep();
  bool should_sleep(bool was_idle);
  bool is_idle() const { return runnable_ == nullptr && inbox_.load(std::memory_order_acquire) == nullptr; }
  Task* take_runnable();
  void switch_away(bool ends);
  void switched_in();
  void deliver_cancel(Task& task);
  // Ends a task's wait, unless somebody else has ended it or is about to.
  void end_wait(Task& task, Woken how);

  Scheduler* scheduler_ = nullptr;
  uint32_t index_ = 0;
  Task* running_ = nullptr;
  Task* ended_ = nullptr;  // its stack is given back by whatever runs next on another stack
  Task* runnable_ = nullptr;
  Task* last_runnable_ = nullptr;
  uint32_t runnable_count_ = 0;
  uint32_t left_in_turn_ = 0;
  base::Idle idle_;
  sys::Fiber loop_;
  Timers timers_;
  base::Poller* pollers_[kMaxPollers] = {};
  uint32_t poller_count_ = 0;
  sys::EventSet events_;  // on which the worker sleeps: woken_, descriptors of pollers, sockets
  sys::Event woken_;      // set by other threads
  // Written by other threads.
  alignas(64) std::atomic<Message*> inbox_{nullptr};  // last in, first out
  std::atomic<uint32_t> posting_{0};                  // how many threads are inside post()
  std::atomic<uint32_t> asleep_{0};
};

}  // namespace task
