// FlushGroup: all flushes of a medium, which calls share. One is under way at a time; who comes meanwhile shares the next.
//
//  1 who finds none under way leads: takes all that wait into its group, flushes, and tells them how it ended
//  2 who finds one under way waits: what it wrote may have come too late for that one
//  3 a leader that is done makes the first of those that have come meanwhile the next leader
//  4 nobody knows what a flush that failed has lost, and the next one says nothing of it: all later ones fail with the first error
// All that a group's calls had written, when they came, was written before its flush began, and no flush has failed since.
//
// Thread contract: any thread or task.
#pragma once
#include <atomic>

#include "sys/lock.h"
#include "task/call_waiter.h"

namespace task {

class FlushGroup {
 public:
  // What was written before the call is on the medium for good when it returns 0; else an errno value. flush() returns the same of one flush; the caller makes it if it leads.
  template <class Flush>
  int run(const Flush& flush) {
    Call own;
    if (begin(own)) end(own, error() != 0 ? error() : flush());
    return own.error;
  }
  // The first one's; 0: none has failed.
  int error() const { return error_.load(std::memory_order_relaxed); }

 private:
  struct Call final : CallWaiter {
    Call() : CallWaiter("a flush that others share") {}
    bool leads = false;
    int error = 0;
    CallWaiters group;  // of who leads: the others
  };

  // False: another one has led it.
  bool begin(Call& own);
  void end(Call& own, int error);

  sys::Mutex lock_;
  bool under_way_ = false;
  CallWaiters waiting_;        // for the next one
  std::atomic<int> error_{0};  // set before who leads next is woken
};

}  // namespace task
