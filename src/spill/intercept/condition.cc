// Condition variables. If the condition or the mutex is spilled, waiters park (parking.h), and the condition's own
// memory only says which clock it uses:
//
//   wait    1 queue up   2 unlock the mutex   3 sleep   4 lock the mutex
//   signal  take the first off the queue and wake it
//
// A signal that follows step 2 finds the waiter queued. Signals look at the queue without its lock first:
// whoever changed what a waiter waits for has held the mutex after the waiter's step 2, and so sees step 1.
// A thread that is cancelled while it sleeps has the mutex again when its cleanup handlers run.
#include <errno.h>
#include <threads.h>

#include "spill/intercept/mutex.h"
#include "spill/intercept/parking.h"
#include "spill/next.h"

namespace spill {
namespace {

// In the C library's layout: bit 1 means that times are CLOCK_MONOTONIC's.
constexpr size_t kReferences = 36;
constexpr uint32_t kMonotonic = 2;

// Waiters that are parked on conditions in plain memory, because their mutex is spilled.
constinit std::atomic<uint32_t> plain_condition_waiters{0};

clockid_t clock_of(const pthread_cond_t* condition) {
  const uint32_t references =
      load(reinterpret_cast<const uint32_t*>(reinterpret_cast<const char*>(condition) + kReferences));
  return (references & kMonotonic) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

// What cancellation needs to know of a wait.
struct Wait {
  pthread_mutex_t* mutex;
  bool counts;
  Waiter waiter;
};

void abandon_wait(void* memory) {
  auto* wait = static_cast<Wait*>(memory);
  abandon_waiter(wait->waiter);
  if (wait->counts) plain_condition_waiters.fetch_sub(1, std::memory_order_relaxed);
  lock_mutex(wait->mutex);
}

int wait_parked(pthread_cond_t* condition, pthread_mutex_t* mutex, const Deadline& deadline) {
  if (!deadline.is_valid()) return EINVAL;
  Wait wait = {mutex, is_c_library_object(condition), {}};
  if (wait.counts) plain_condition_waiters.fetch_add(1, std::memory_order_relaxed);
  queue_waiter(wait.waiter, condition, ~uint32_t{0}, [](void*) { return true; }, nullptr);
  int result = unlock_mutex(mutex);
  Parked parked = Parked::kWoken;
  if (result == 0) {
    pthread_cleanup_push(abandon_wait, &wait);
    parked = sleep_waiter(wait.waiter, deadline, false, true);
    pthread_cleanup_pop(0);
    result = lock_mutex(mutex);
  } else {
    // The mutex is not this thread's: leave the queue again.
    leave_queue(wait.waiter);
  }
  if (wait.counts) plain_condition_waiters.fetch_sub(1, std::memory_order_relaxed);
  if (result != 0) return result;
  return parked == Parked::kTimedOut ? ETIMEDOUT : 0;
}

// Wakes parked waiters. Returns whether there were any.
bool wake(pthread_cond_t* condition, uint32_t count) {
  if (is_c_library_object(condition) && plain_condition_waiters.load(std::memory_order_relaxed) == 0)
    return false;
  return may_have_waiters(condition) && unpark(condition, count) != 0;
}

}  // namespace

SPILL_EXPORT int __spill_pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  clear_slots();
  if (is_c_library_object(condition, mutex))
    return LIBC_VERSION(pthread_cond_wait, "GLIBC_2.3.2")(condition, mutex);
  return wait_parked(condition, mutex, Deadline::never());
}

SPILL_EXPORT int __spill_pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                                const timespec* time) {
  const PlainIn<timespec> plain_time(time);
  clear_slots();
  if (is_c_library_object(condition, mutex))
    return LIBC_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2")(condition, mutex, plain_time);
  return wait_parked(condition, mutex, Deadline::at(clock_of(condition), *plain_time));
}

SPILL_EXPORT int __spill_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                                clockid_t clock, const timespec* time) {
  const PlainIn<timespec> plain_time(time);
  clear_slots();
  if (is_c_library_object(condition, mutex))
    return LIBC_VERSION(pthread_cond_clockwait, "GLIBC_2.34")(condition, mutex, clock, plain_time);
  return wait_parked(condition, mutex, Deadline::at(clock, *plain_time));
}

SPILL_EXPORT int __spill_pthread_cond_signal(pthread_cond_t* condition) {
  if (wake(condition, 1) || !is_c_library_object(condition)) return 0;
  return LIBC_VERSION(pthread_cond_signal, "GLIBC_2.3.2")(condition);
}

SPILL_EXPORT int __spill_pthread_cond_broadcast(pthread_cond_t* condition) {
  if (wake(condition, ~uint32_t{0}) || !is_c_library_object(condition)) return 0;
  return LIBC_VERSION(pthread_cond_broadcast, "GLIBC_2.3.2")(condition);
}

SPILL_EXPORT int __spill_pthread_cond_init(pthread_cond_t* condition, const pthread_condattr_t* attributes) {
  const PlainIn<pthread_condattr_t> plain_attributes(attributes);
  const auto init = LIBC_VERSION(pthread_cond_init, "GLIBC_2.3.2");
  if (is_c_library_object(condition)) return init(condition, plain_attributes);
  pthread_cond_t fresh;
  const int result = init(&fresh, plain_attributes);
  if (result == 0) copy(condition, &fresh, sizeof fresh);
  return result;
}

SPILL_EXPORT int __spill_pthread_cond_destroy(pthread_cond_t* condition) {
  // A woken waiter does not look at a spilled condition again.
  if (!is_c_library_object(condition)) return 0;
  return LIBC_VERSION(pthread_cond_destroy, "GLIBC_2.3.2")(condition);
}

// The C standard's names.
SPILL_EXPORT int __spill_cnd_init(cnd_t* condition) {
  return __spill_pthread_cond_init(reinterpret_cast<pthread_cond_t*>(condition), nullptr) == 0 ? thrd_success
                                                                                               : thrd_error;
}
SPILL_EXPORT int __spill_cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return __spill_pthread_cond_wait(reinterpret_cast<pthread_cond_t*>(condition),
                                   reinterpret_cast<pthread_mutex_t*>(mutex)) == 0
             ? thrd_success
             : thrd_error;
}
SPILL_EXPORT int __spill_cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* time) {
  const int result = __spill_pthread_cond_timedwait(reinterpret_cast<pthread_cond_t*>(condition),
                                                    reinterpret_cast<pthread_mutex_t*>(mutex), time);
  return result == 0 ? thrd_success : result == ETIMEDOUT ? thrd_timedout : thrd_error;
}
SPILL_EXPORT int __spill_cnd_signal(cnd_t* condition) {
  return __spill_pthread_cond_signal(reinterpret_cast<pthread_cond_t*>(condition)) == 0 ? thrd_success
                                                                                        : thrd_error;
}
SPILL_EXPORT int __spill_cnd_broadcast(cnd_t* condition) {
  return __spill_pthread_cond_broadcast(reinterpret_cast<pthread_cond_t*>(condition)) == 0 ? thrd_success
                                                                                           : thrd_error;
}
SPILL_EXPORT void __spill_cnd_destroy(cnd_t* condition) {
  __spill_pthread_cond_destroy(reinterpret_cast<pthread_cond_t*>(condition));
}

}  // namespace spill
