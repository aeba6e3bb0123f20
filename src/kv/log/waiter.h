// Waiter: how a call of the store waits for another one, be its caller a task or a thread; and a list of them.
//
// Whoever waits appends its Waiter to a list, under the list's lock, gives the lock back and calls wait(). Whoever makes happen
// what it waits for takes it out, under the lock, and calls wake(), once; the Waiter may be gone from then on.
#pragma once
#include "sys/lock.h"
#include "task/waiting.h"

namespace kv {

class Waiter : public task::Waiting {
 public:
  Waiter() : task_(task::in_task() ? &task::self() : nullptr) {}

  // REQUIRES: somebody finds it; no lock is held.
  void wait() {
    if (task_ != nullptr) {
      static_cast<void>(task::block(*this, {.cancellable = false}));
      return;
    }
    // Pairs with the release in wake().
    while (woken_.load(std::memory_order_acquire) == 0) sys::futex_wait(woken_, 0);
  }
  void wake() {
    if (task_ != nullptr) {
      task::wake(*task_);
      return;
    }
    woken_.store(1, std::memory_order_release);
    sys::futex_wake(
        woken_,
        1);  // of an address that may be somebody else's by now, whom a wake for nothing does not harm
  }

  const char* what() const final { return "the store"; }
  bool abandon() final { return false; }

 protected:
  ~Waiter() = default;

 private:
  friend class Waiters;
  task::Task* task_;
  std::atomic<uint32_t> woken_{0};
  Waiter* next_ = nullptr;
};

// First in, first out; under its owner's lock.
class Waiters {
 public:
  bool empty() const { return first_ == nullptr; }
  void append(Waiter& waiter) {
    waiter.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &waiter;
    last_ = &waiter;
  }
  // All of another list, after those of this one.
  void append_all(Waiters& others) {
    if (others.empty()) return;
    (first_ == nullptr ? first_ : last_->next_) = others.first_;
    last_ = others.last_;
    others.first_ = nullptr;
  }
  // REQUIRES: not empty.
  Waiter& first() const { return *first_; }
  // REQUIRES: not empty.
  Waiter& take_first() {
    Waiter& first = *first_;
    first_ = first.next_;
    return first;
  }
  // For who wakes them without the lock.
  Waiters take_all() {
    Waiters all = *this;
    first_ = nullptr;
    return all;
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next_) visit(*waiter);
  }
  void wake_all() {
    while (!empty()) take_first().wake();
  }

 private:
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace kv
