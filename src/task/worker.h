// Worker: a thread that runs the tasks of a scheduler that are its own, and what it polls for them.
//
// One turn of the loop (run)
//  1 messages: tasks that other threads woke become runnable, cancellations are carried out
//  2 timers that are due
//  3 up to kTasksPerTurn runnable tasks, first in, first out, each until it blocks, yields or ends; one is switched to
//    the next directly
//  4 every poller
//  5 what has happened to sockets. If nothing ran and nothing came for some turns (base/idle.h), it sleeps until it does: until a socket has
//    changed, a message comes, a poller's descriptor becomes readable, or the first of the timers and of the pollers' own times is due.
//    Who has sockets and expects nothing soon asks and sleeps with one system call, as soon as no task is to run: a request that
//    comes in the meantime costs less than the looking
//
// Sleep and wake, without a lost wake-up
//  worker: asleep_ = 1; fence; looks at the inbox; sleeps on an event among others; asleep_ = 0
//  other:  puts its message into the inbox; fence; if asleep_ was 1 and it is who makes that 0, sets the event
//
// Thread contract: post() by anyone; everything else by the worker's own thread.
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
  static constexpr uint32_t kMostPollers = 16;

  // Errors: EMFILE, ENOMEM.
  base::Expected<void> open(Scheduler& scheduler, uint32_t index);
  // Waits for those who post: what they have posted may have been done, and they not be back.
  void close();

  // Runs tasks on the calling thread until the scheduler stops.
  void run();

  // The worker whose loop or task the calling thread runs, or null.
  static Worker* current();
  static void set_current(Worker* worker);

  uint32_t index() const { return index_; }
  Scheduler& scheduler() const { return *scheduler_; }
  Task* running() const { return running_; }

  // It is polled once a turn; stays as long as the worker runs. Errors: ENOSPC when there are kMostPollers.
  base::Expected<void> add_poller(base::Poller& poller);
  // REQUIRES: it was added; its descriptor is still open.
  void remove_poller(base::Poller& poller);

  // Sockets: what tells tasks of this worker what peers do. REQUIRES: the worker runs.
  sys::EventSet& peers() { return events_; }

  // Blocks the running task (waiting.h).
  Woken block(Waiting& waiting, const Limit& limit);
  // Lets the other runnable tasks run first.
  void yield();
  // The first thing that a task does, and the last.
  void begin();
  [[noreturn]] void end();
  // A task of its own becomes runnable.
  void make_runnable(Task& task);
  // From anywhere: it looks at the message soon. The message is its own again when it has been delivered.
  void post(Message& message);
  // The loop looks whether it should end.
  void rouse();

 private:
  size_t take_messages();
  size_t fire_timers();
  size_t run_tasks();
  size_t poll_all();
  void sleep(uint64_t until_ns);
  // The kernel's share of it (worker_sleep.cc), or the simulation's: sleeps until then, or until somebody calls end_sleep
  // or has called it since the last sleep, or for no reason.
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
  // Ends a task's wait, unless somebody else has.
  void end_wait(Task& task, Woken how);

  Scheduler* scheduler_ = nullptr;
  uint32_t index_ = 0;
  Task* running_ = nullptr;
  Task* ended_ = nullptr;  // whose stack may be given back
  Task* runnable_ = nullptr;
  Task* last_runnable_ = nullptr;
  uint32_t runnable_count_ = 0;
  uint32_t left_in_turn_ = 0;
  base::Idle idle_;
  sys::Fiber loop_;
  Timers timers_;
  base::Poller* pollers_[kMostPollers] = {};
  uint32_t poller_count_ = 0;
  sys::EventSet events_;  // it sleeps on; sockets among them
  sys::Event woken_;      // of these, by other threads
  // What others write.
  alignas(64) std::atomic<Message*> inbox_{nullptr};  // last in, first
  std::atomic<uint32_t> posting_{0};                  // those in post()
  std::atomic<uint32_t> asleep_{0};
};

}  // namespace task
