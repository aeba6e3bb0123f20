#include "server/items/update_locks.h"

namespace server {
namespace {

struct Waiter final : task::CallWaiter {
  Waiter() : CallWaiter("an item that others change") {}
};

}  // namespace

void UpdateLocks::Lock::take() {
  Waiter waiter;
  {
    sys::LockGuard scope(mutex_);
    if (!is_taken_) {
      is_taken_ = true;
      return;
    }
    waiting_.append(waiter);
  }
  waiter.wait();  // it is handed over
}

void UpdateLocks::Lock::give() {
  task::CallWaiter* next = nullptr;
  {
    sys::LockGuard scope(mutex_);
    if (waiting_.empty())
      is_taken_ = false;
    else
      next = &waiting_.take_first();
  }
  if (next != nullptr) next->wake();
}

}  // namespace server
