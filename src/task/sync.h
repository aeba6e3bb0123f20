// Mutex, Condition, Semaphore: for tasks. Each in two variants that are the same code: Intra, for tasks of one worker, has no
// atomic operation; Inter is for tasks of any worker. (papers/udepot.txt, section 3: intra- and inter-core)
//
// All are fair: first come, first served. A mutex and a permit are handed to who waits longest, not left to be fought for.
//
// Cost without waiting: Intra a few instructions; Inter two uncontended atomic exchanges. With: a switch, and a wake.
// Thread contract: called by tasks; of Intra variants, all of one worker. release and notify of Inter variants also by threads
// that run no task. Each outlives the calls that are under way in it.
#pragma once
#include "base/check.h"
#include "task/waiting.h"

namespace task {

// Held by one task at a time; not recursive.
template <class Lock>
class BasicMutex {
 public:
  // Ends by being given the mutex; is not cancelled.
  void lock() { static_cast<void>(lock_until({.cancellable = false})); }
  // kNotified: it is held.
  [[nodiscard]] Woken lock_until(const Limit& limit) {
    lock_.lock();
    if (owner_ == nullptr) {
      owner_ = &self();
      lock_.unlock();
      return Woken::kNotified;
    }
    CHECK(owner_ != &self());
    return ListedWaiter<Lock>(lock_, waiters_, "a mutex").wait(limit);
  }
  bool try_lock() {
    sys::LockGuard scope(lock_);
    if (owner_ != nullptr) return false;
    owner_ = &self();
    return true;
  }
  // REQUIRES: the calling task holds it.
  void unlock() {
    Task* next = nullptr;
    {
      sys::LockGuard scope(lock_);
      CHECK(owner_ == &self());
      if (!waiters_.empty()) next = waiters_.take_first().task;
      owner_ = next;
    }
    choice_point();
    if (next != nullptr) wake(*next);
  }
  bool is_held_by_self() const { return owner_ == &self(); }

 private:
  Lock lock_;
  Task* owner_ = nullptr;
  WaitList waiters_;
};

template <class Lock>
class BasicCondition {
 public:
  // Gives the mutex back, waits for a notify that comes after that, and takes the mutex again, whatever ended the wait.
  // REQUIRES: the task holds the mutex.
  Woken wait(BasicMutex<Lock>& mutex, const Limit& limit = {}) {
    lock_.lock();
    ListedWaiter<Lock> waiter(lock_, waiters_, "a condition");
    lock_.unlock();
    mutex.unlock();
    const Woken woken = block(waiter, limit);
    mutex.lock();
    return woken;
  }
  void notify_one() { notify(1); }
  void notify_all() { notify(~uint32_t{0}); }

 private:
  void notify(uint32_t count) {
    for (; count > 0; --count) {
      Task* woken = nullptr;
      {
        sys::LockGuard scope(lock_);
        if (waiters_.empty()) return;
        woken = waiters_.take_first().task;
      }
      choice_point();
      wake(*woken);
    }
  }

  Lock lock_;
  WaitList waiters_;
};

template <class Lock>
class BasicSemaphore {
 public:
  explicit BasicSemaphore(uint32_t permits) : permits_(permits) {}
  // kNotified: a permit was taken.
  [[nodiscard]] Woken acquire(const Limit& limit = {}) {
    lock_.lock();
    if (permits_ > 0 && waiters_.empty()) {
      --permits_;
      lock_.unlock();
      return Woken::kNotified;
    }
    return ListedWaiter<Lock>(lock_, waiters_, "a semaphore").wait(limit);
  }
  bool try_acquire() {
    sys::LockGuard scope(lock_);
    if (permits_ == 0 || !waiters_.empty()) return false;
    --permits_;
    return true;
  }
  void release(uint32_t count = 1) {
    for (; count > 0; --count) {
      Task* next = nullptr;
      {
        sys::LockGuard scope(lock_);
        if (waiters_.empty())
          ++permits_;
        else
          next = waiters_.take_first().task;
      }
      choice_point();
      if (next != nullptr) wake(*next);
    }
  }

 private:
  Lock lock_;
  uint32_t permits_;
  WaitList waiters_;
};

using IntraMutex = BasicMutex<IntraLock>;
using InterMutex = BasicMutex<InterLock>;
using IntraCondition = BasicCondition<IntraLock>;
using InterCondition = BasicCondition<InterLock>;
using IntraSemaphore = BasicSemaphore<IntraLock>;
using InterSemaphore = BasicSemaphore<InterLock>;

}  // namespace task
