// Mutex, Condition, Semaphore, for tasks. Each has two variants with the same code: Intra, for tasks of one worker, has no atomic
// operations; Inter is for tasks of any workers. (uDepot, section 3: intra- and inter-core)
//
// All are fair: first come, first served. A mutex or a permit is handed directly to the task that has waited longest.
//
// Cost without waiting: Intra a few instructions; Inter an uncontended atomic exchange for a mutex, two for a semaphore. With waiting: a
// switch and a wake.
// Thread contract: called by tasks; Intra variants by tasks of one worker. Threads that run no task may also call release and notify of
// Inter variants. Each object outlives the calls that are under way in it.
#pragma once
#include "base/check.h"
#include "task/waiting.h"

namespace task {

// Held by one task at a time; not recursive.
//
// Its word is 0 while nobody holds it, otherwise its owner, with kWaited if somebody waits, or has waited and given up.
//  lock    1 changes 0 to the owner, atomically
//          2 if that fails, with the lock, adds kWaited: from then on the owner's unlock gets to step 4. If the word was 0, sets the owner;
//            else the task lists itself and waits
//  unlock  3 changes the owner without kWaited to 0, atomically
//          4 if that fails, with the lock, sets the task that has waited longest, or 0
template <class Lock>
class BasicMutex {
 public:
  // Waits until it is held; cannot be cancelled.
  void lock() { static_cast<void>(lock_until({.cancellable = false})); }
  // kNotified: it is held; otherwise it is not.
  [[nodiscard]] Woken lock_until(const Limit& limit) { return try_lock() ? Woken::kNotified : wait(limit); }
  bool try_lock() {
    choice_point();
    return word_.replace(0, word_of(&self()));
  }
  // REQUIRES: the calling task holds it.
  void unlock() {
    choice_point();
    if (!word_.replace(word_of(&self()), 0)) hand_over();
  }
  bool is_held_by_self() const { return (word_.get() & ~kWaited) == word_of(&self()); }

 private:
  static constexpr uintptr_t kWaited = 1;
  static uintptr_t word_of(Task* task) { return reinterpret_cast<uintptr_t>(task); }

  [[gnu::noinline]] Woken wait(const Limit& limit) {
    CHECK(!is_held_by_self());
    lock_.lock();
    if (word_.mark(kWaited) == 0) {
      choice_point();
      word_.set(word_of(&self()));
      lock_.unlock();
      return Woken::kNotified;
    }
    return ListedWaiter<Lock>(lock_, waiters_, "a mutex").wait(limit);
  }
  [[gnu::noinline]] void hand_over() {
    CHECK(is_held_by_self());
    Task* next = nullptr;
    {
      sys::LockGuard scope(lock_);
      if (!waiters_.empty()) next = waiters_.take_first().task;
      word_.set(word_of(next) | (waiters_.empty() ? 0 : kWaited));
    }
    choice_point();
    if (next != nullptr) wake(*next);
  }

  WordBeside<Lock> word_;
  Lock lock_;  // of the list
  WaitList waiters_;
};

template <class Lock>
class BasicCondition {
 public:
  // Releases the mutex, waits for a later notify, and takes the mutex again, however the wait has ended. REQUIRES: the task holds the mutex.
  Woken wait(BasicMutex<Lock>& mutex, const Limit& limit = {}) {
    lock_.lock();
    ListedWaiter<Lock> waiter(lock_, waiters_, "a condition");
    lock_.unlock();
    mutex.unlock();
    const Woken woken = block(waiter, limit);
    mutex.lock();
    return woken;
  }
  // Wake the task that has waited longest, if any; or all waiting tasks. With or without the mutex.
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
  // kNotified: a permit was taken; otherwise none.
  [[nodiscard]] Woken acquire(const Limit& limit = {}) {
    lock_.lock();
    if (permits_ > 0 && waiters_.empty()) {
      --permits_;
      lock_.unlock();
      return Woken::kNotified;
    }
    return ListedWaiter<Lock>(lock_, waiters_, "a semaphore").wait(limit);
  }
  // Never waits. For tests.
  bool try_acquire() {
    sys::LockGuard scope(lock_);
    if (permits_ == 0 || !waiters_.empty()) return false;
    --permits_;
    return true;
  }
  // Gives permits to the tasks that have waited longest, and keeps the rest. Never waits.
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
