#include "task/flush_group.h"

namespace task {

bool FlushGroup::begin(Call& own) {
  lock_.lock();
  if (under_way_) {
    waiting_.append(own);
    lock_.unlock();
    own.wait();
    if (!own.leads) return false;
    lock_.lock();
  }
  under_way_ = true;
  own.group = waiting_.take_all();
  lock_.unlock();
  return true;
}

void FlushGroup::end(Call& own, int error) {
  own.error = error;
  lock_.lock();
  error_.store(error, std::memory_order_relaxed);
  under_way_ = !waiting_.empty();
  Call* const heir = under_way_ ? &static_cast<Call&>(waiting_.take_first()) : nullptr;
  if (heir != nullptr) heir->leads = true;
  lock_.unlock();
  if (heir != nullptr) heir->wake();
  while (!own.group.empty()) {
    auto& call = static_cast<Call&>(own.group.take_first());
    call.error = error;
    call.wake();
  }
}

}  // namespace task
