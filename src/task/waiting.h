// How tasks wait: what a wait is limited by, how it ended, and the list that primitives keep of who waits.
//
// The protocol of a wait in a primitive whose state a lock guards
//  1 the task, with the lock: finds that it must wait, and appends its Waiter to the list
//  2 it gives the lock back and blocks: its worker runs others
//  3 whoever makes what it waits for happen takes its Waiter out of the list, with the lock, and wakes it
//  4 or: the deadline comes, or the task is cancelled. The task's worker calls Waiting::abandon, which takes the Waiter out of
//    the list, with the lock, unless step 3 has; then the wake of step 3 is on its way, and it counts
// Nothing is lost between 2 and 3, since a wake from elsewhere is read by the worker only when the task is switched out.
#pragma once
#include <cstdint>

#include "task/choice.h"
#include "task/timers.h"

namespace task {

struct Task;

enum class Woken : uint8_t { kNotified, kTimedOut, kCancelled };

// What ends a wait besides that which is waited for.
struct Limit {
  uint64_t deadline_ns = kNever;  // by the monotonic clock; 0: do not wait
  uint64_t within_ns = kNever;    // of when the task blocks, each time: no clock is asked before
  bool cancellable = true;
};

// What a blocked task waits in.
class Waiting {
 public:
  // For the dump of all tasks: "a mutex". A text that stays.
  virtual const char* what() const = 0;
  // Takes the task out, so that nobody else will wake it. False: somebody has, and will. On the task's worker.
  virtual bool abandon() = 0;

 protected:
  ~Waiting() = default;
};

// The task that runs blocks until it is woken. REQUIRES: `waiting` is where somebody finds it; no IntraLock nor InterLock is
// held. Cost: a switch to another task.
Woken block(Waiting& waiting, const Limit& limit = {});
// Makes a blocked task runnable; its wait ends with kNotified. REQUIRES: the caller took it out of what it waits in. Any
// thread. Cost: a few stores on its own worker; from elsewhere an atomic exchange, and a system call if that worker sleeps.
void wake(Task& task);
// The task that runs. REQUIRES: one does.
Task& self();
// Are we in a task?
bool in_task();

struct Waiter {
  Task* task = nullptr;
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
  bool is_queued = false;
};

// A doubly linked list of who waits for a primitive, first in, first out; the primitive's, under its lock.
class WaitList {
 public:
  bool empty() const { return head_ == nullptr; }
  void append(Waiter& waiter) {
    waiter.next = nullptr;
    waiter.previous = tail_;
    (tail_ == nullptr ? head_ : tail_->next) = &waiter;
    tail_ = &waiter;
    waiter.is_queued = true;
  }
  // REQUIRES: queued here.
  void remove(Waiter& waiter) {
    (waiter.previous == nullptr ? head_ : waiter.previous->next) = waiter.next;
    (waiter.next == nullptr ? tail_ : waiter.next->previous) = waiter.previous;
    waiter.is_queued = false;
  }
  // REQUIRES: not empty.
  Waiter& take_first() {
    Waiter& first = *head_;
    remove(first);
    return first;
  }

 private:
  Waiter* head_ = nullptr;
  Waiter* tail_ = nullptr;
};

// A task's place in a WaitList that `Lock` guards.
template <class Lock>
class ListedWaiter final : public Waiting {
 public:
  // REQUIRES: the lock is held.
  ListedWaiter(Lock& lock, WaitList& list, const char* what) : lock_(lock), list_(list), what_(what) {
    waiter_.task = &self();
    list_.append(waiter_);
  }
  const char* what() const override { return what_; }
  bool abandon() override {
    sys::LockGuard scope(lock_);
    if (!waiter_.is_queued) return false;
    list_.remove(waiter_);
    return true;
  }
  // Steps 2 to 4. REQUIRES: the lock is held; it is not any more afterwards.
  Woken wait(const Limit& limit) {
    lock_.unlock();
    choice_point();
    return block(*this, limit);
  }

 private:
  Lock& lock_;
  WaitList& list_;
  const char* what_;
  Waiter waiter_;
};

}  // namespace task
