#include "kv/flush_group.h"

namespace kv {

int FlushGroup::flush(Channel& channel) {
  Call own;
  lock_.lock();
  if (under_way_) {
    (first_ == nullptr ? first_ : last_->next) = &own;
    last_ = &own;
    lock_.unlock();
    own.waiter.wait();
    if (!own.leads) return own.error;
    lock_.lock();
  }
  under_way_ = true;
  Call* group = first_;
  first_ = nullptr;
  lock_.unlock();

  const int error = channel.flush();

  lock_.lock();
  Call* const heir = first_;
  if (heir == nullptr) {
    under_way_ = false;
  } else {
    first_ = heir->next;
    heir->leads = true;
  }
  lock_.unlock();
  if (heir != nullptr) heir->waiter.wake();
  while (group != nullptr) {
    Call& call = *group;
    group = call.next;  // before it is woken, and may be gone
    call.error = error;
    call.waiter.wake();
  }
  return error;
}

}  // namespace kv
