// FlushGroup: flushes of a medium, which calls share. One flush is under way at a time; calls that come meanwhile share the next one.
//
//  1 a call that finds no flush under way leads: it takes all waiting calls into its group, flushes, and tells them the result
//  2 a call that finds one under way waits, since that flush may have begun before the call's data was written
//  3 a leader that is done makes the first of the calls that have come meanwhile the next leader
//  4 what a failed flush has lost is unknown, and the next flush would not report it: all later calls fail with the first error
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
  // Returns 0 when everything that was written before the call is durable on the medium, or an errno value. flush() flushes the medium, and
  // returns 0 or an errno value; only a leading call makes it, once. Blocks.
  template <class Flush>
  int run(const Flush& flush) {
    Call own;
    if (begin(own)) end(own, error() != 0 ? error() : flush());
    return own.error;
  }
  // The error of the first flush that has failed; 0: none has.
  int error() const { return error_.load(std::memory_order_relaxed); }

 private:
  struct Call final : CallWaiter {
    Call() : CallWaiter("a flush that others share") {}
    bool leads = false;
    int error = 0;
    CallWaiters group;  // of a leader: the other calls that share its flush
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
