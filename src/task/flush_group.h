// FlushGroup: the flushes of a medium, which calls share. One flush is under way at a time; calls that come meanwhile share the next one.
//
//  1 a call that finds no flush under way leads: it takes all that wait into its group, flushes, and tells them how the flush ended
//  2 a call that finds one under way waits, since that flush may have begun before what the call is about was written
//  3 a leader that is done makes the first of the calls that have come meanwhile the next leader
//  4 nobody knows what a flush that failed has lost, and the next one would say nothing of it: all later calls fail with the first error
// So when a call succeeds, everything that was written before the call was written before its flush began, and no flush has failed before.
//
// Thread contract: any thread or task.
#pragma once
#include <atomic>

#include "sys/lock.h"
#include "task/call_waiter.h"

namespace task {

class FlushGroup {
 public:
  // Returns 0 when what was written before the call is on the medium for good, or an errno value. flush() flushes the medium, and returns 0
  // or an errno value; a call that leads makes it, once. Blocks.
  template <class Flush>
  int run(const Flush& flush) {
    Call own;
    if (begin(own)) end(own, error() != 0 ? error() : flush());
    return own.error;
  }
  // That of the first flush that has failed; 0: none has.
  int error() const { return error_.load(std::memory_order_relaxed); }

 private:
  struct Call final : CallWaiter {
    Call() : CallWaiter("a flush that others share") {}
    bool leads = false;
    int error = 0;
    CallWaiters group;  // of a leader: the others that share its flush
  };

  // True: the call leads. False: another one has led, and own.error is the result.
  bool begin(Call& own);
  void end(Call& own, int error);

  sys::Mutex lock_;
  bool under_way_ = false;
  CallWaiters waiting_;        // for the next flush
  std::atomic<int> error_{0};  // set before the next leader is woken
};

}  // namespace task
