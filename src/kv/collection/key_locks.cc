#include "kv/collection/key_locks.h"

namespace kv {

KeyLocks::Hold::Hold(KeyLocks& locks, uint64_t hash, std::string_view key, bool replaces)
    : CallWaiter("a key of the store"), locks_(locks), hash_(hash), key_(key), replaces_(replaces) {
  List& list = locks_.list_of(hash_);
  {
    sys::LockGuard scope(list.lock);
    Hold* holder = list.first;
    while (holder != nullptr && holder->hash_ != hash_) holder = holder->next_;
    if (holder == nullptr) {
      next_ = list.first;
      list.first = this;
      return;
    }
    holder->waiting_.append(*this);
  }
  wait();  // until the holder before this one has put it into the list, or one that supersedes it is done
}

KeyLocks::Hold::Hold(KeyLocks& locks, uint64_t hash, std::string_view key, std::try_to_lock_t)
    : CallWaiter("a key of the store"), locks_(locks), hash_(hash), key_(key), replaces_(false) {
  List& list = locks_.list_of(hash_);
  sys::LockGuard scope(list.lock);
  for (Hold* other = list.first; other != nullptr && is_held_; other = other->next_)
    is_held_ = other->hash_ != hash_;
  if (!is_held_) return;
  next_ = list.first;
  list.first = this;
}

KeyLocks::Hold::~Hold() {
  if (is_superseded_ || !is_held_) return;
  List& list = locks_.list_of(hash_);
  Hold* heir = nullptr;
  task::CallWaiters done;
  {
    sys::LockGuard scope(list.lock);
    Hold** at = &list.first;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
    if (has_succeeded_) {
      done = superseded_.take_all();
      done.for_each([](task::CallWaiter& waiter) { static_cast<Hold&>(waiter).is_superseded_ = true; });
    }
    if (heir = choose_heir(); heir != nullptr) {
      heir->next_ = list.first;
      list.first = heir;
    }
  }
  if (heir != nullptr) heir->wake();
  done.wake_all();
}

// Chooses who gets the lock next, and hands over all others that wait. Null: nobody waits. REQUIRES: the list's lock.
KeyLocks::Hold* KeyLocks::Hold::choose_heir() {
  // This call has failed, maybe for a reason of its own: each call that it superseded is made by itself.
  superseded_.for_each([](task::CallWaiter& waiter) { static_cast<Hold&>(waiter).replaces_ = false; });
  superseded_.append_all(waiting_);
  if (superseded_.empty()) return nullptr;
  task::CallWaiters rest = superseded_.take_all(), superseded;
  auto* heir = &static_cast<Hold&>(rest.take_first());
  while (!rest.empty() && heir->is_replaced_by(static_cast<Hold&>(rest.first()))) {
    superseded.append(*heir);
    heir = &static_cast<Hold&>(rest.take_first());
  }
  heir->superseded_ = superseded;
  heir->waiting_ = rest;
  return heir;
}

}  // namespace kv
