// Loops of many tasks (spillway/task.h), and the misses of their tasks. (TriCache, "Threads or Fibers")
//
//   worker     an ordinary thread of the program, the first of them the one that called; runs its tasks (task/worker.h)
//   task       takes some indices at a time until none are left, and runs the program's code for them on a stack of its own
//   a miss of a task, in code that spillcc compiled
//     1 the load is begun (cache/partition/load_queue.h)   2 the slots that are live go to the task's bank (banks.h)
//     3 its worker runs other tasks              4 whoever finds the read done ends the load, and wakes the task
//     5 the slots are the task's again; it goes on as if it had waited
//
// Invariants
//  1 a worker is inside the runtime (InRuntime) except while a task runs the program's code: so a handler of the program interrupts
//    either such code or the worker's poll, where no state is half changed; steps 1 to 3 are not interrupted
//  2 a task is not suspended while its worker has something that the worker's other tasks must not meet: a lock, a handler's level of
//    slots, a call of the C library under way (Thread::busy_count), a signal mask of its own; nor on a stack of the program's, nor in
//    a child of vfork. Then its thread waits as any does
//  3 a load that a task has begun can be ended by anyone who waits for anything in the cache: its worker may be waiting for them
#pragma once
#include <cstdint>

#include "base/ids.h"

namespace spill {

struct Thread;

// Loads the page that the thread's task needs, while other tasks run. The page is in memory afterwards, unless the load failed.
// `live`: the slots whose addresses must stay protected. False if it did nothing: then the thread must wait itself. REQUIRES: thread.task.
bool miss_in_task(Thread& thread, base::PageId page, uint64_t live);

// In a child of fork: the task that forked, if one did, goes on without its loop.
void leave_loop_in_child();

}  // namespace spill
