// FlushGroup: all flushes of a store's device, which calls share. One is under way at a time; who comes meanwhile shares the next.
//
//  1 who finds none under way leads: takes all that wait into its group, flushes, and tells them how it ended
//  2 who finds one under way waits: what it wrote may have come too late for that one
//  3 a leader that is done makes the first of those that have come meanwhile the next leader
//  4 nobody knows what a flush that failed has lost, and the next one says nothing of it: all later ones fail with the first error
// All that a group's calls had written, when they came, was written before its flush began, and no flush has failed since.
#pragma once
#include <atomic>

#include "kv/media/channel.h"
#include "kv/media/clock.h"
#include "sys/lock.h"
#include "task/call_waiter.h"

namespace kv {

class FlushGroup {
 public:
  // What was written before the call is on the medium for good when it returns 0; else an errno value. `times`, of calls alone that use the
  // same: how long the flush took, if this one led it. Any thread or task.
  int flush(Channel& channel, SharedTimes* times = nullptr);
  // The first one's; 0: none has failed. Any thread.
  int error() const { return error_.load(std::memory_order_relaxed); }

 private:
  struct Call final : task::CallWaiter {
    Call() : CallWaiter("a flush of the store") {}
    bool leads = false;
    int error = 0;
  };

  sys::Mutex lock_;
  bool under_way_ = false;
  task::CallWaiters waiting_;  // for the next one
  std::atomic<int> error_{0};  // set before who leads next is woken
};

}  // namespace kv
