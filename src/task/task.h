// Task: a fiber with a name, and what a scheduler knows about it. (uDepot, section 3)
//
//            spawn                 switched to
//   UNUSED ---------> RUNNABLE ------------------> RUNNING --returns--> ENDED --join or detach--> UNUSED
//                        ^  ^------yield-------------|
//                        `---wake--- BLOCKED <--block'
//
// Invariants
//  1 a task belongs to one worker for its life, and only that worker's thread changes its state: tasks do not migrate. (Compiled code keeps
//    addresses of thread-local data across calls, so a stack cannot change threads safely; and the worker that began an Io completes it.)
//  2 whoever removes a blocked task from what it waits in, with the lock of that, wakes it, once; nobody else does
//  3 a task's memory is given back when the task has ended, its worker runs on another stack, and nobody holds a reference
//  4 a wake by another thread is a message in the worker's inbox, which the worker reads only between two tasks: so a task that has put
//    itself into a list but has not been switched out yet is not resumed too early
//
// The record lies at the top of the task's stack, so that a task that does little touches one OS page.
#pragma once
#include <atomic>
#include <cstdint>

#include "sys/fiber.h"
#include "task/future.h"
#include "task/timers.h"

namespace task {

class Scheduler;
class Worker;
struct Task;

enum class State : uint8_t { kUnused, kRunnable, kRunning, kBlocked, kEnded };

// What another thread tells a worker about a task; a link in the worker's inbox.
struct Message {
  Message* next = nullptr;
  Task* task = nullptr;
  bool is_cancel = false;  // otherwise: the task may run
};

struct Task {
  static constexpr size_t kNameBytes = 24;

  sys::Fiber fiber;
  Task* next = nullptr;  // in the queue of runnable tasks
  Worker* worker = nullptr;
  Message wake_message;
  Message cancel_message;
  std::atomic<const char*> waits_for{nullptr};  // while BLOCKED; relaxed, as `state`
  Waiting* waiting = nullptr;                   // while BLOCKED, until its wait has ended
  bool waiting_is_cancellable = false;
  std::atomic<State> state{State::kUnused};  // relaxed: other threads only show it
  Woken woken = Woken::kNotified;            // how the last wait ended
  std::atomic<bool> cancelled{false};        // relaxed: ordered by the cancel message that follows
  // The task's own until it ends, its joiner's, a cancel message's.
  std::atomic<uint32_t> references{0};
  uint32_t slot = 0;           // in the pool of stacks
  char name[kNameBytes] = {};  // null-terminated
  void (*entry)(void* argument) = nullptr;
  void* argument = nullptr;
  Future ended;  // fulfilled when it returns
};

}  // namespace task
