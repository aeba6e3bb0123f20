// Future: an event that happens once, and has a value. WaitSet: several futures; a task waits for whichever is fulfilled first.
//
// Protocol of a WaitSet
//  1 add() puts a Link into the future's list, with the future's lock; if the future is already fulfilled, the link goes into the set's ready
//    list instead
//  2 fulfil() removes all links from the future's list, and puts each into its set's ready list, with the set's lock. If the set's task
//    waits, whoever puts in the first link takes the task out of the set and wakes it
//  3 wait() takes the first ready link, or blocks
//  4 clear() removes the set's links from the futures that are not fulfilled, each with the future's lock. It waits for links that fulfil()
//    has removed but not yet put into the ready list: arrived_count_ is less than count_ until then
//
// Lock order: a future's, then a set's.
// Thread contract: any thread may fulfil a future; a set is used by one task. A Future outlives all tasks that wait for it, and all sets
// that it is in.
#pragma once
#include <cstdint>

#include "task/waiting.h"

namespace task {

class WaitSet;

class Future {
 public:
  // The membership of a future in a set. The set's owner keeps it until the set is destroyed or cleared.
  struct Link {
    Future* future = nullptr;
    WaitSet* set = nullptr;
    Link* next = nullptr;      // in the future's list, or in the set's ready list
    Link* previous = nullptr;  // in the future's list
    Link* next_in_set = nullptr;
    bool is_listed = false;  // in the future's list
  };

  // Sets the value and wakes all waiting tasks. Any thread. REQUIRES: it is called once.
  void fulfil(uint64_t value = 0);
  bool is_fulfilled();  // any thread
  // REQUIRES: it is fulfilled.
  uint64_t value() const { return value_; }

  // Called by tasks. kNotified: it is fulfilled.
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
  // Returns the set's futures, each once, in the order in which they are fulfilled. Null: the wait has ended otherwise, and `woken` says how;
  // or all have been returned.
  Future* wait(const Limit& limit = {}, Woken* woken = nullptr);
  // Removes all links, which may then be used again. May wait for a moment.
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
  uint32_t arrived_count_ = 0;  // links that have been put into the ready list
  // Used by the set's task alone, without the lock.
  Future::Link* all_ = nullptr;
  uint32_t taken_count_ = 0;  // links that wait() has returned
  uint32_t count_ = 0;        // links of the set
};

}  // namespace task
