// CallWaiter: how a call waits for another one, whether its caller is a task or a thread; and CallWaiters, a list of them.
//
// The waiting call appends its CallWaiter to a list, with the list's lock, releases the lock and calls wait(). The call that brings about what it
// waits for removes it from the list, with the lock, and calls wake(), once; after that the CallWaiter may be gone.
#pragma once
#include "base/check.h"
#include "sys/lock.h"
#include "task/choice.h"
#include "task/waiting.h"

namespace task {

class CallWaiter : public Waiting {
 public:
  // `what`: what is waited for, for the dump of all tasks; must outlive this.
  explicit CallWaiter(const char* what) : task_(in_task() ? &self() : nullptr), what_(what) {}

  // Returns when it has been woken. REQUIRES: it is in a list; no lock is held.
  void wait() {
    if (task_ != nullptr) {
      static_cast<void>(block(*this, {.cancellable = false}));
      return;
    }
    // Pairs with the release in wake().
    while (woken_.load(std::memory_order_acquire) == 0) sys::futex_wait(woken_, 0);
  }
  // The same with a deadline of the monotonic clock. False: the deadline came first, and abandon() has removed this from its list.
  bool wait_until(uint64_t deadline_ns) {
    if (task_ != nullptr)
      return block(*this, {.deadline_ns = deadline_ns, .cancellable = false}) == Woken::kNotified;
    // As in wait().
    while (woken_.load(std::memory_order_acquire) == 0) {
      const uint64_t now = now_ns();
      if (now >= deadline_ns && abandon()) return false;
      sys::futex_wait(woken_, 0, now < deadline_ns ? deadline_ns - now : 0);
    }
    return true;
  }
  void wake() {
    if (task_ != nullptr) {
      task::wake(*task_);
      return;
    }
    woken_.store(1, std::memory_order_release);
    // By now the address may be in use for something else; spurious wakeups of a futex are harmless.
    sys::futex_wake(woken_, 1);
  }

  const char* what() const final { return what_; }
  // For wait_until(): removes this from its list, with the list's lock. False: somebody else has removed it, and will wake it.
  bool abandon() override { return false; }

 protected:
  ~CallWaiter() { CHECK(!is_listed_); }

 private:
  friend class CallWaiters;
  Task* task_;
  const char* what_;
  std::atomic<uint32_t> woken_{0};
  bool is_listed_ = false;
  CallWaiter* next_ = nullptr;
};

// First in, first out. Used with its owner's lock.
class CallWaiters {
 public:
  bool empty() const { return first_ == nullptr; }
  void append(CallWaiter& waiter) {
    waiter.is_listed_ = true;
    waiter.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &waiter;
    last_ = &waiter;
  }
  // Moves all of another list to the end of this one.
  void append_all(CallWaiters& others) {
    if (others.empty()) return;
    (first_ == nullptr ? first_ : last_->next_) = others.first_;
    last_ = others.last_;
    others.first_ = nullptr;
  }
  // REQUIRES: not empty.
  CallWaiter& first() const { return *first_; }
  // REQUIRES: not empty.
  CallWaiter& take_first() {
    CallWaiter& first = *first_;
    first_ = first.next_;
    first.is_listed_ = false;
    return first;
  }
  // Empties the list and returns its waiters, so that they can be woken without the lock. They cannot be abandoned any more.
  CallWaiters take_all() {
    CallWaiters all = *this;
    first_ = nullptr;
    return all;
  }
  // False: it is not in the list.
  bool remove(CallWaiter& waiter) {
    CallWaiter* before = nullptr;
    for (CallWaiter* at = first_; at != nullptr; before = at, at = at->next_) {
      if (at != &waiter) continue;
      (before == nullptr ? first_ : before->next_) = at->next_;
      if (last_ == at) last_ = before;
      waiter.is_listed_ = false;
      return true;
    }
    return false;
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (CallWaiter* waiter = first_; waiter != nullptr; waiter = waiter->next_) visit(*waiter);
  }
  void wake_all() {
    while (!empty()) take_first().wake();
  }

 private:
  CallWaiter* first_ = nullptr;
  CallWaiter* last_ = nullptr;
};

}  // namespace task
