// Future: something that happens once, with a value. WaitSet: several of them, of which a task waits for the first.
//
// Protocol of a WaitSet
//  1 add() hangs a Link into the future's list, with the future's lock; if the future is fulfilled already, the link goes to the
//    set's list of ready ones instead
//  2 fulfil() takes all links off the future's list, and puts each into its set's ready list, with the set's lock; whoever
//    puts in the first one while the task waits takes it out of the set and wakes it
//  3 wait() takes the first ready link, or blocks
//  4 the end of a set takes its links off the futures that are not fulfilled, each with the future's lock. A link that
//    fulfil() has taken off and not yet put in is waited for: it holds `arriving`
//
// Lock order: a future's, then a set's.
// Thread contract: a future is fulfilled by any thread; a set is its task's. A Future outlives all that wait for it.
#pragma once
#include <cstdint>

#include "task/waiting.h"

namespace task {

class WaitSet;

class Future {
 public:
  // Hangs a future into a set; the set's owner keeps it until the set ends.
  struct Link {
    Future* future = nullptr;
    WaitSet* set = nullptr;
    Link* next = nullptr;      // in the future's list, or in the set's ready list
    Link* previous = nullptr;  // in the future's list
    Link* next_in_set = nullptr;
    bool is_listed = false;  // in the future's list
  };

  // Once. Wakes all that wait.
  void fulfil(uint64_t value = 0);
  bool is_fulfilled();
  // The value. REQUIRES: fulfilled.
  uint64_t value() const { return value_; }

  // kNotified: it is fulfilled.
  Woken wait(const Limit& limit = {});

 private:
  friend class WaitSet;

  InterLock lock_;
  bool fulfilled_ = false;
  uint64_t value_ = 0;
  WaitList waiters_;
  Link* links_ = nullptr;
};

class WaitSet final : public Waiting {
 public:
  WaitSet() = default;
  ~WaitSet() { clear(); }
  WaitSet(const WaitSet&) = delete;
  WaitSet& operator=(const WaitSet&) = delete;

  // REQUIRES: the link is in no set.
  void add(Future& future, Future::Link& link);
  // The next future of the set that is fulfilled, each once, in the order of their fulfilment; null when the wait
  // ended otherwise (`woken` says how) or all have been returned.
  Future* wait(const Limit& limit = {}, Woken* woken = nullptr);
  // Takes all links out; they may be used again.
  void clear();

 private:
  friend class Future;
  const char* what() const override { return "any of several futures"; }
  bool abandon() override;
  void arrive(Future::Link& link);

  InterLock lock_;
  Task* waiting_ = nullptr;        // the task that is blocked
  Future::Link* ready_ = nullptr;  // first in, first out
  Future::Link* last_ready_ = nullptr;
  Future::Link* all_ = nullptr;  // the owner's
  uint32_t arrived_count_ = 0;   // links that were put in
  uint32_t taken_count_ = 0;     // and returned by wait(): the owner's
  uint32_t count_ = 0;           // links of the set: the owner's
};

}  // namespace task
