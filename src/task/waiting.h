// How tasks wait: what limits a wait, how it ended, and a primitive's list of the tasks that wait for it.
//
// The protocol of a wait in a primitive whose state is guarded by a lock
//  1 the task, with the lock, finds that it must wait, and appends its Waiter to the list
//  2 it releases the lock and blocks: its worker runs other tasks
//  3 whoever brings about what it waits for removes its Waiter from the list, with the lock, and wakes it
//  4 or the deadline comes, or the task is cancelled: the task's worker calls Waiting::abandon, which removes the Waiter from the list, with
//    the lock. If step 3 has done so already, its wake is on its way, and counts
// A wake that comes before the task has blocked is not lost: the worker reads other threads' messages only after the task has been switched
// out.
#pragma once
#include <cstdint>

#include "task/choice.h"
#include "task/timers.h"

namespace task {

struct Task;

enum class Woken : uint8_t { kNotified, kTimedOut, kCancelled };

// What may end a wait early.
struct Limit {
  uint64_t deadline_ns = kNever;  // of the monotonic clock; 0: do not wait
  // Counted from when the task blocks, each time; a call that need not block does not read the clock.
  uint64_t within_ns = kNever;
  bool cancellable = true;
};

// What a blocked task waits for.
class Waiting {
 public:
  // What the task waits for, for the dump of all tasks: "a mutex". The text must stay valid.
  virtual const char* what() const = 0;
  // Removes the task, so that nobody else will wake it. False: somebody else has removed it, and will wake it. Called on the task's worker.
  virtual bool abandon() = 0;

 protected:
  ~Waiting() = default;
};

// Blocks the running task until it is woken. REQUIRES: `waiting` can be found by whoever is to wake the task; neither an IntraLock nor an
// InterLock is held. Cost: a switch to another task.
Woken block(Waiting& waiting, const Limit& limit = {});
// Makes a blocked task runnable; its wait ends with kNotified. Any thread. REQUIRES: the caller has removed the task from what it waits in.
// Cost: a few stores on the task's own worker; from other threads an atomic exchange, and a system call if that worker sleeps.
void wake(Task& task);
// The running task. REQUIRES: the caller is one.
Task& self();
// Is the caller a task?
bool in_task();

struct Waiter {
  Task* task = nullptr;
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
  bool is_queued = false;
};

// A primitive's list of the tasks that wait for it, first in, first out. Used with the primitive's lock.
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

// A task's place in a WaitList that is guarded by `Lock`.
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
  // Steps 2 to 4. REQUIRES: the lock is held; this releases it.
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
