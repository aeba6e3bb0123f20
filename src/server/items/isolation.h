// Isolation: calls of Items, on all workers, beside tasks that have all items to themselves for a while (Redis's transactions).
//
//   Isolation::Call call(isolation, place);      in each call of Items
//   Isolation::Alone alone(isolation);           in a transaction: its task's calls go on, all others wait
//
//  1 a call counts itself among those of its Items, and then looks whether the gate is shut. If it is, the call takes itself out of the count again,
//    and waits
//  2 a task that wants to be alone waits for its turn, shuts the gate, makes all threads pass a barrier (sys/barrier.h), and waits until no call is
//    counted. Because of the barrier either the call sees in 1 that the gate is shut, or it is seen here
//  3 a call that ends takes itself out of the count, and looks at the gate once more: the last one wakes the task that waits in 2
//  4 the task that was alone opens the gate, and admits all calls that wait by then: they begin even if the gate is shut again, and the next task
//    that wants to be alone waits for them, too. So neither calls nor transactions wait for ever, however many of the others come
//  5 a call waits for nothing that others do between their calls, least of all for a client, and a task has one call at a time. So calls end while
//    the gate is shut. Locks of updates (update_locks.h) and of the store are taken within calls
//
// Thread contract: a Call is made and ended by one task or thread, those of one Place by one thread at a time; Alone by tasks.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/single_writer.h"
#include "sys/barrier.h"
#include "sys/lock.h"
#include "task/call_waiter.h"
#include "task/sync.h"

namespace server {

class Isolation {
 public:
  Isolation() : Isolation(sys::register_barrier().has_value()) {}
  // `has_barrier`: the kernel has barriers for this process. Without them each call has two fences.
  explicit Isolation(bool has_barrier) : has_barrier_(has_barrier) {}
  Isolation(const Isolation&) = delete;
  Isolation& operator=(const Isolation&) = delete;

  // The calls of one Items that are under way, except those that were admitted.
  struct Place {
    std::atomic<uint32_t> calls{0};
    Place* next = nullptr;
  };
  void add(Place& place);
  // REQUIRES: no call of it is under way.
  void remove(Place& place);

  // A call, for its lifetime; it may wait before it begins. REQUIRES: its task has no other one. Cost while no task is, or wants to be, alone: two
  // stores and a few loads, of lines in the CPU's cache.
  class Call {
   public:
    Call(Isolation& isolation, Place& place) : isolation_(isolation), place_(&place) {
      base::increase(place.calls, uint32_t{1});
      sys::pass_often(isolation.has_barrier_);
      // Pairs with the release in ~Alone().
      if (isolation.is_shut_.load(std::memory_order_acquire)) [[unlikely]]
        place_ = isolation.wait(place);
    }
    ~Call() {
      if (place_ != nullptr) [[likely]] {
        uncount(*place_);
        sys::pass_often(isolation_.has_barrier_);
        if (isolation_.is_shut_.load(std::memory_order_relaxed)) [[unlikely]]
          isolation_.tell_end(0);
      } else {
        isolation_.tell_end(1);
      }
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Isolation& isolation_;
    Place* place_;  // where it is counted; null: it was admitted
  };

  // As long as it lives no call is under way but those of the task that has made it. REQUIRES: that task has no call under way, and ends it itself.
  // Cost: a barrier, 5 us if other threads run, and the rest of the calls under way; meanwhile others wait.
  class Alone {
   public:
    explicit Alone(Isolation& isolation);
    ~Alone();
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    Isolation& isolation_;
  };

 private:
  static void uncount(Place& place) {
    // Pairs with the acquire in is_drained().
    place.calls.store(place.calls.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  bool is_alone() const;
  Place* wait(Place& place);
  void tell_end(uint64_t admitted_count);
  void drain();
  // These REQUIRE lock_.
  bool is_drained() const;
  task::CallWaiter* take_who_drains();

  // Read by each call, and changed by transactions only.
  alignas(64) std::atomic<bool> is_shut_{false};  // changed under lock_
  const bool has_barrier_;
  std::atomic<const task::Task*> alone_{nullptr};
  // Used by transactions, and by calls beside them.
  alignas(64) task::InterMutex turn_;  // of the tasks that want to be alone
  sys::Mutex lock_;                    // guards what follows
  Place* first_ = nullptr;
  task::CallWaiters draining_;  // the task that waits until no call is under way: one at most
  task::CallWaiters waiting_;   // calls
  uint64_t waiting_count_ = 0;
  uint64_t admitted_ = 0;  // calls that were admitted and have not ended
};

}  // namespace server
