#include "kv/log/flush_group.h"

namespace kv {

int FlushGroup::flush(Channel& channel, SharedTimes* times) {
  Call own;
  lock_.lock();
  if (under_way_) {
    waiting_.append(own);
    lock_.unlock();
    own.wait();
    if (!own.leads) return own.error;
    lock_.lock();
  }
  under_way_ = true;
  task::CallWaiters group = waiting_.take_all();
  lock_.unlock();

  const uint64_t began_ns = now_ns();
  const int error = this->error() != 0 ? this->error() : channel.flush();

  lock_.lock();
  error_.store(error, std::memory_order_relaxed);
  if (times != nullptr) times->add(now_ns() - began_ns);
  under_way_ = !waiting_.empty();
  Call* const heir = under_way_ ? &static_cast<Call&>(waiting_.take_first()) : nullptr;
  if (heir != nullptr) heir->leads = true;
  lock_.unlock();
  if (heir != nullptr) heir->wake();
  while (!group.empty()) {
    auto& call = static_cast<Call&>(group.take_first());
    call.error = error;
    call.wake();
  }
  return error;
}

}  // namespace kv
