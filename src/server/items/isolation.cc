#include "server/items/isolation.h"

#include <utility>

#include "base/check.h"
#include "base/linked.h"

namespace server {
namespace {

struct Waiter final : task::CallWaiter {
  explicit Waiter(const char* what) : CallWaiter(what) {}
};

}  // namespace

void Isolation::add(Place& place) {
  sys::LockGuard scope(lock_);
  base::link(first_, place);
}

void Isolation::remove(Place& place) {
  sys::LockGuard scope(lock_);
  CHECK_EQ(place.calls.load(std::memory_order_relaxed), 0u);
  base::unlink(first_, place);
}

// Relaxed: only a task that has written its own address there finds it.
bool Isolation::is_alone() const {
  return task::in_task() && alone_.load(std::memory_order_relaxed) == &task::self();
}

// For a counted call that has found the gate shut: returns, when it may begin, where it is counted; null: it was admitted.
Isolation::Place* Isolation::wait(Place& place) {
  if (is_alone()) return &place;
  Waiter waiter("a transaction");
  task::CallWaiter* drains = nullptr;
  {
    sys::LockGuard scope(lock_);
    // Open again. Whoever shuts it next takes this lock later, and so finds the call counted.
    if (!is_shut_.load(std::memory_order_relaxed)) return &place;
    uncount(place);
    waiting_.append(waiter);
    ++waiting_count_;
    drains = take_who_drains();
  }
  if (drains != nullptr) drains->wake();
  waiter.wait();
  return nullptr;
}

// A call has ended: it is no longer counted, or is one of those that were admitted.
void Isolation::tell_end(uint64_t admitted_count) {
  if (is_alone()) return;
  task::CallWaiter* drains = nullptr;
  {
    sys::LockGuard scope(lock_);
    admitted_ -= admitted_count;
    drains = take_who_drains();
  }
  if (drains != nullptr) drains->wake();
}

bool Isolation::is_drained() const {
  if (admitted_ != 0) return false;
  for (const Place* place = first_; place != nullptr; place = place->next)
    if (place->calls.load(std::memory_order_acquire) != 0) return false;
  return true;
}

// Null: nobody waits, or not all calls have ended.
task::CallWaiter* Isolation::take_who_drains() {
  return !draining_.empty() && is_drained() ? &draining_.take_first() : nullptr;
}

// Returns when no call is under way. None begins any more, though some may be counted for a moment, until they find the gate shut.
void Isolation::drain() {
  Waiter waiter("calls that others have under way");
  {
    sys::LockGuard scope(lock_);
    if (is_drained()) return;
    draining_.append(waiter);
  }
  waiter.wait();
}

Isolation::Alone::Alone(Isolation& isolation) : isolation_(isolation) {
  isolation.turn_.lock();
  {
    sys::LockGuard scope(isolation.lock_);
    isolation.is_shut_.store(true, std::memory_order_relaxed);
  }
  sys::pass_seldom(isolation.has_barrier_);
  isolation.drain();
  isolation.alone_.store(&task::self(), std::memory_order_relaxed);
}

Isolation::Alone::~Alone() {
  task::CallWaiters admitted;
  {
    sys::LockGuard scope(isolation_.lock_);
    isolation_.alone_.store(nullptr, std::memory_order_relaxed);
    // Pairs with the acquire in Call().
    isolation_.is_shut_.store(false, std::memory_order_release);
    admitted = isolation_.waiting_.take_all();
    isolation_.admitted_ = std::exchange(isolation_.waiting_count_, 0);
  }
  admitted.wake_all();
  isolation_.turn_.unlock();
}

}  // namespace server
