// Task: a fiber with a name, and what a scheduler knows of it. (uDepot, section 3)
//
//            spawn                 switched to
//   UNUSED ---------> RUNNABLE ------------------> RUNNING --returns--> ENDED --join or detach--> UNUSED
//                        ^  ^------yield-------------|
//                        `---wake--- BLOCKED <--block'
//
// Invariants
//  1 a task belongs to one worker for its life, and only that worker's thread changes its state: tasks do not migrate.
//    (Compiled code keeps the addresses of thread-local data across calls, so a stack cannot change threads safely; and I/O
//    under way is completed by the worker that began it.)
//  2 whoever takes a blocked task out of what it waits in, under that thing's lock, and nobody else, wakes it, once
//  3 its memory is given back when it has ended, its worker runs on another stack, and nobody holds a reference
//  4 a wake by another thread is a message in the worker's inbox, which the worker reads between two tasks: a task that has
//    queued itself and not yet been switched out cannot be resumed
//
// The record lies at the top of the task's stack, so that a task that does little touches one page.
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

// What another thread tells a worker of a task. A link in its inbox.
struct Message {
  Message* next = nullptr;
  Task* task = nullptr;
  bool is_cancel = false;  // else: it may run
};

struct Task {
  static constexpr size_t kNameBytes = 24;

  sys::Fiber fiber;
  Task* next = nullptr;  // in the queue of runnable ones
  Worker* worker = nullptr;
  Message wake_message;
  Message cancel_message;
  std::atomic<const char*> waits_for{nullptr};  // while BLOCKED; relaxed, as `state`
  Waiting* waiting = nullptr;                   // while BLOCKED
  bool waiting_is_cancellable = false;
  std::atomic<State> state{State::kUnused};  // relaxed: others look at it to show it
  Woken woken = Woken::kNotified;            // how the last wait ended
  std::atomic<bool> cancelled{false};        // relaxed: the message behind it orders it
  std::atomic<uint32_t> references{0};       // the running task itself, and who will join it
  uint32_t slot = 0;                         // of the pool of stacks
  char name[kNameBytes] = {};                // ends with 0
  void (*entry)(void* argument) = nullptr;
  void* argument = nullptr;
  Future ended;  // fulfilled when it returns
};

}  // namespace task
