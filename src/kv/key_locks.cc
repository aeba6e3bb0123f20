#include "kv/key_locks.h"

namespace kv {

KeyLocks::Hold::Hold(KeyLocks& locks, uint64_t hash) : locks_(locks), hash_(hash) {
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
  wait();  // the holder before us has put us into the list
}

KeyLocks::Hold::~Hold() {
  List& list = locks_.list_of(hash_);
  Hold* heir = nullptr;
  {
    sys::LockGuard scope(list.lock);
    Hold** at = &list.first;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
    if (!waiting_.empty()) {
      heir = &static_cast<Hold&>(waiting_.take_first());
      heir->waiting_ = waiting_;
      heir->next_ = list.first;
      list.first = heir;
    }
  }
  if (heir != nullptr) heir->wake();
}

}  // namespace kv
