// FlushGroup: flushes of the device that calls share. One is under way at a time; who comes meanwhile shares the next.
//
//  1 who finds none under way leads: takes all that wait into its group, flushes, and tells them how it ended
//  2 who finds one under way waits: what it wrote may have come too late for that one
//  3 a leader that is done makes the first of those that have come meanwhile the next leader
// All that a group's calls had written, when they came, was written before its flush began.
#pragma once
#include "kv/calls.h"
#include "kv/media/channel.h"
#include "task/call_waiter.h"

namespace kv {

class FlushGroup {
 public:
  // What was written before the call is on the medium for good when it returns 0; else an errno value. Any thread or task.
  int flush(Channel& channel);
  // What the flushes took. Any thread.
  const SharedTimes& times() const { return times_; }

 private:
  struct Call final : task::CallWaiter {
    Call() : CallWaiter("a flush of the store") {}
    bool leads = false;
    int error = 0;
  };

  sys::Mutex lock_;
  bool under_way_ = false;
  task::CallWaiters waiting_;  // for the next one
  SharedTimes times_;          // under the lock
};

}  // namespace kv
