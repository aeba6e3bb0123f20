#include "task/future.h"

#include "base/check.h"

namespace task {

void Future::fulfil(uint64_t value) {
  WaitList waiters;
  Link* links = nullptr;
  {
    sys::LockGuard scope(lock_);
    CHECK(!fulfilled_);
    fulfilled_ = true;
    value_ = value;
    // Not queued any more, so that nobody abandons them: they exist until they are woken.
    while (!waiters_.empty()) {
      Waiter& waiter = waiters_.take_first();
      waiters.append(waiter);
      waiter.is_queued = false;
    }
    links = links_;
    for (Link* link = links; link != nullptr; link = link->next) link->is_listed = false;
    links_ = nullptr;
  }
  // By now a thread that has seen that it is fulfilled may have destroyed this object.
  choice_point();
  while (!waiters.empty()) wake(*waiters.take_first().task);
  while (links != nullptr) {
    Link& link = *links;
    links = link.next;
    choice_point();
    link.set->arrive(link);
  }
}

bool Future::is_fulfilled() {
  sys::LockGuard scope(lock_);
  return fulfilled_;
}

Woken Future::wait(const Limit& limit) {
  lock_.lock();
  if (fulfilled_) {
    lock_.unlock();
    return Woken::kNotified;
  }
  return ListedWaiter<InterLock>(lock_, waiters_, "a future").wait(limit);
}

void WaitSet::add(Future& future, Future::Link& link) {
  link = {.future = &future, .set = this, .next_in_set = all_};
  all_ = &link;
  ++count_;
  {
    sys::LockGuard scope(future.lock_);
    if (!future.fulfilled_) {
      link.next = future.links_;
      if (link.next != nullptr) link.next->previous = &link;
      future.links_ = &link;
      link.is_listed = true;
      return;
    }
  }
  arrive(link);
}

// Step 2. The set may be gone as soon as its lock is released.
void WaitSet::arrive(Future::Link& link) {
  Task* woken = nullptr;
  {
    sys::LockGuard scope(lock_);
    link.next = nullptr;
    (last_ready_ == nullptr ? ready_ : last_ready_->next) = &link;
    last_ready_ = &link;
    ++arrived_count_;
    woken = waiting_;
    waiting_ = nullptr;
  }
  choice_point();
  if (woken != nullptr) wake(*woken);
}

Future* WaitSet::wait(const Limit& limit, Woken* how) {
  Woken woken = Woken::kNotified;
  Future* taken = nullptr;
  while (woken == Woken::kNotified) {
    lock_.lock();
    if (ready_ != nullptr) {
      taken = ready_->future;
      ready_ = ready_->next;
      if (ready_ == nullptr) last_ready_ = nullptr;
      ++taken_count_;
      lock_.unlock();
      break;
    }
    if (taken_count_ == count_) {
      lock_.unlock();
      break;
    }
    waiting_ = &self();
    lock_.unlock();
    choice_point();
    woken = block(*this, limit);
  }
  if (how != nullptr) *how = woken;
  return taken;
}

bool WaitSet::abandon() {
  sys::LockGuard scope(lock_);
  if (waiting_ == nullptr) return false;
  waiting_ = nullptr;
  return true;
}

void WaitSet::clear() {
  for (Future::Link* link = all_; link != nullptr; link = link->next_in_set) {
    sys::LockGuard scope(link->future->lock_);
    if (!link->is_listed) continue;
    (link->previous == nullptr ? link->future->links_ : link->previous->next) = link->next;
    if (link->next != nullptr) link->next->previous = link->previous;
    link->is_listed = false;
    --count_;
  }
  // Step 4: waits for links that fulfil() has removed and not yet put into the ready list.
  for (;;) {
    lock_.lock();
    if (arrived_count_ == count_) break;
    waiting_ = &self();
    lock_.unlock();
    choice_point();
    static_cast<void>(block(*this, {.cancellable = false}));
  }
  ready_ = last_ready_ = all_ = nullptr;
  arrived_count_ = taken_count_ = count_ = 0;
  lock_.unlock();
}

}  // namespace task
