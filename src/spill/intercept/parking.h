// Parking: how threads wait for mutexes, conditions and the like that lie in spilled memory. The kernel could only
// wait on a frame, whose page may leave it; so a waiter sleeps on a word of its own stack, in a queue keyed by the
// object's address. The object itself holds no queue.
//
//   park                                        unpark
//   1 lock the bucket of the address            1 change the object's state
//   2 still necessary? (reads the object)       2 lock the bucket
//   3 queue up, unlock                          3 take waiters of this address off the queue, unlock
//   4 sleep on the waiter's word                4 set their words, wake them
//   5 timeout, signal: take itself off the
//     queue, unless step 3 was faster
//
// Invariants
//  1 step 2 sees the change of step 1 or step 3 sees the waiter: both happen under the bucket's lock
//  2 the object is not touched after its state has let others go on: they may free it
//  3 no slot is held when a bucket is locked or while asleep; under a bucket's lock the object may be read, which
//    may do I/O; signal handlers are deferred while it is held (they may unpark)
#pragma once
#include <time.h>

#include <atomic>
#include <cstdint>

#include "spill/intercept/intercept.h"

namespace spill {

// The words of an object in spilled memory, aligned to 4 bytes, which may lie on two pages.
// Takes kHoldA and kHoldB.
class Words {
 public:
  Words(const void* object, size_t bytes) : first_bytes_(bytes_to_page_end(object)) {
    first_ = hold(object, kHoldA);
    if (bytes > first_bytes_) second_ = hold(static_cast<const char*>(object) + first_bytes_, kHoldB);
  }
  ~Words() {
    release(kHoldA);
    if (second_ != nullptr) release(kHoldB);
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  std::atomic<uint32_t>& operator[](size_t offset) const {
    char* at = offset < first_bytes_ ? first_ + offset : second_ + (offset - first_bytes_);
    return *reinterpret_cast<std::atomic<uint32_t>*>(at);
  }

 private:
  size_t first_bytes_;
  char* first_;
  char* second_ = nullptr;
};

// When to stop waiting: never, or at a time of a clock.
struct Deadline {
  bool is_set = false;
  clockid_t clock = CLOCK_REALTIME;
  timespec time = {};

  static Deadline never() { return {}; }
  static Deadline at(clockid_t clock, timespec time) { return {true, clock, time}; }
  // False for a time that no clock shows, or a clock that futexes do not support.
  bool is_valid() const {
    return !is_set || (time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000 &&
                       (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC));
  }
};

enum class Parked { kWoken, kChanged, kTimedOut, kInterrupted };

class Waiter;
bool leave_queue(Waiter& waiter);

// Parking in separate steps, for callers that have to release something between queueing up and sleeping.
// `mask`: unpark() with a mask wakes only waiters that share a bit with it.
bool queue_waiter(Waiter& waiter, const void* object, uint32_t mask, bool (*must_wait)(void*), void* context);
// `interruptible`: a signal handler that ran ends the wait. `cancellable`: pthread_cancel takes effect here;
// the caller's cleanup handler calls abandon_waiter().
Parked sleep_waiter(Waiter& waiter, const Deadline& deadline, bool interruptible, bool cancellable = false);
// The sleep was cancelled: leaves the queue. A waiter that had been woken already wakes the next instead.
void abandon_waiter(Waiter& waiter);

// Wakes up to `count` of the object's waiters, in order of arrival. Returns how many.
uint32_t unpark(const void* object, uint32_t count, uint32_t mask = ~uint32_t{0});

// Whether anyone may wait for the object, as seen by a thread that synchronised with the waiter.
bool may_have_waiters(const void* object);

// In a child of fork: nobody waits.
void forget_waiters();
// How many forks led to this process from the first one.
uint32_t fork_depth();

class Waiter {
 private:
  friend bool queue_waiter(Waiter&, const void*, uint32_t, bool (*)(void*), void*);
  friend Parked sleep_waiter(Waiter&, const Deadline&, bool, bool);
  friend void abandon_waiter(Waiter&);
  friend bool leave_queue(Waiter&);
  friend uint32_t unpark(const void*, uint32_t, uint32_t);
  friend struct Bucket;
  const void* object = nullptr;
  uint32_t mask = 0;
  std::atomic<uint32_t> word{0};  // 1: off the queue, woken
  Waiter* next = nullptr;
};

// Waits until woken, as long as must_wait() says so at the start.
template <class MustWait>
Parked park(const void* object, MustWait must_wait, const Deadline& deadline = Deadline::never(),
            bool interruptible = false, uint32_t mask = ~uint32_t{0}) {
  Waiter waiter;
  if (!queue_waiter(
          waiter, object, mask, [](void* context) { return (*static_cast<MustWait*>(context))(); },
          &must_wait))
    return Parked::kChanged;
  return sleep_waiter(waiter, deadline, interruptible);
}

}  // namespace spill
