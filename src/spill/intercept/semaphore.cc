// Semaphores, barriers, once and spin locks in spilled memory. All waiting is parking (parking.h).
//
//   semaphore  word 0: bit 31 somebody parked here once, bits 0..30 the value. The bit stays: whoever posts must
//              not touch the semaphore after changing the value, since the waiter may free it
//   barrier    word 0: how many arrived, word 4: how many it takes
//   once       0 to do, 1 + 4 * fork_depth() being done by this process, 2 done (as with the C library)
//   spin lock  0 locked, 1 free (as with the C library)
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <threads.h>

#include "spill/intercept/mutex.h"
#include "spill/intercept/once.h"
#include "spill/intercept/parking.h"
#include "spill/next.h"

namespace spill {
namespace {

constexpr uint32_t kHadWaiters = 1u << 31;

bool take_semaphore(sem_t* semaphore) {
  const Words words(semaphore, 4);
  uint32_t state = words[0].load(std::memory_order_relaxed);
  while ((state & ~kHadWaiters) != 0)
    if (words[0].compare_exchange_weak(state, state - 1, std::memory_order_acquire,
                                       std::memory_order_relaxed))
      return true;
  return false;
}

void abandon_wait(void* waiter) { abandon_waiter(*static_cast<Waiter*>(waiter)); }

// Must the caller wait? If so, marks the semaphore for whoever posts.
bool finds_none(void* semaphore) {
  const Words words(semaphore, 4);
  return (words[0].fetch_or(kHadWaiters, std::memory_order_relaxed) & ~kHadWaiters) == 0;
}

int wait_semaphore(sem_t* semaphore, const Deadline& deadline) {
  pthread_testcancel();
  while (!take_semaphore(semaphore)) {
    if (!deadline.is_valid()) return fail(EINVAL);
    Waiter waiter;
    if (!queue_waiter(waiter, semaphore, ~uint32_t{0}, finds_none, semaphore)) continue;
    Parked parked;
    pthread_cleanup_push(abandon_wait, &waiter);
    parked = sleep_waiter(waiter, deadline, true, true);
    pthread_cleanup_pop(0);
    if (parked == Parked::kTimedOut) return fail(ETIMEDOUT);
    if (parked == Parked::kInterrupted) return fail(EINTR);
  }
  return 0;
}

}  // namespace

SPILL_EXPORT int __spill_sem_init(sem_t* semaphore, int shared, unsigned value) {
  if (is_c_library_object(semaphore)) return LIBC(sem_init)(semaphore, shared, value);
  if (value > SEM_VALUE_MAX) return fail(EINVAL);
  Words(semaphore, 4)[0].store(value, std::memory_order_relaxed);
  return 0;
}
SPILL_EXPORT int __spill_sem_destroy(sem_t* semaphore) {
  return is_c_library_object(semaphore) ? LIBC(sem_destroy)(semaphore) : 0;
}
SPILL_EXPORT int __spill_sem_wait(sem_t* semaphore) {
  if (!is_c_library_object(semaphore)) return wait_semaphore(semaphore, Deadline::never());
  clear_slots();
  return LIBC(sem_wait)(semaphore);
}
SPILL_EXPORT int __spill_sem_trywait(sem_t* semaphore) {
  if (is_c_library_object(semaphore)) return LIBC(sem_trywait)(semaphore);
  return take_semaphore(semaphore) ? 0 : fail(EAGAIN);
}
SPILL_EXPORT int __spill_sem_timedwait(sem_t* semaphore, const timespec* time) {
  if (!is_c_library_object(semaphore))
    return wait_semaphore(semaphore, Deadline::at(CLOCK_REALTIME, load(time)));
  const PlainIn<timespec> plain_time(time);
  clear_slots();
  return LIBC(sem_timedwait)(semaphore, plain_time);
}
SPILL_EXPORT int __spill_sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) {
  if (!is_c_library_object(semaphore)) return wait_semaphore(semaphore, Deadline::at(clock, load(time)));
  const PlainIn<timespec> plain_time(time);
  clear_slots();
  return LIBC(sem_clockwait)(semaphore, clock, plain_time);
}
SPILL_EXPORT int __spill_sem_post(sem_t* semaphore) {
  if (is_c_library_object(semaphore)) return LIBC(sem_post)(semaphore);
  uint32_t state;
  {
    const Words words(semaphore, 4);
    state = words[0].load(std::memory_order_relaxed);
    do {
      if ((state & ~kHadWaiters) == SEM_VALUE_MAX) return fail(EOVERFLOW);
    } while (!words[0].compare_exchange_weak(state, state + 1, std::memory_order_release,
                                             std::memory_order_relaxed));
  }
  if ((state & kHadWaiters) != 0) unpark(semaphore, 1);
  return 0;
}
SPILL_EXPORT int __spill_sem_getvalue(sem_t* semaphore, int* value) {
  if (is_c_library_object(semaphore)) return LIBC(sem_getvalue)(semaphore, PlainObject<int>(value));
  store(value, static_cast<int>(Words(semaphore, 4)[0].load(std::memory_order_relaxed) & ~kHadWaiters));
  return 0;
}

// Barriers.
SPILL_EXPORT int __spill_pthread_barrier_init(pthread_barrier_t* barrier,
                                              const pthread_barrierattr_t* attributes, unsigned count) {
  if (is_c_library_object(barrier))
    return LIBC(pthread_barrier_init)(barrier, PlainIn<pthread_barrierattr_t>(attributes), count);
  if (count == 0 || count > INT_MAX) return EINVAL;
  const Words words(barrier, 8);
  words[0].store(0, std::memory_order_relaxed);
  words[4].store(count, std::memory_order_relaxed);
  return 0;
}
SPILL_EXPORT int __spill_pthread_barrier_destroy(pthread_barrier_t* barrier) {
  return is_c_library_object(barrier) ? LIBC(pthread_barrier_destroy)(barrier) : 0;
}
SPILL_EXPORT int __spill_pthread_barrier_wait(pthread_barrier_t* barrier) {
  if (is_c_library_object(barrier)) {
    clear_slots();
    return LIBC(pthread_barrier_wait)(barrier);
  }
  uint32_t others = 0;
  // Arrival is counted under the bucket's lock, so the last one finds all others queued.
  const Parked parked = park(barrier, [&] {
    const Words words(barrier, 8);
    const uint32_t arrived = words[0].load(std::memory_order_relaxed) + 1;
    const bool is_last = arrived == words[4].load(std::memory_order_relaxed);
    words[0].store(is_last ? 0 : arrived, std::memory_order_relaxed);
    others = arrived - 1;
    return !is_last;
  });
  if (parked == Parked::kWoken) return 0;
  // The oldest: a thread that comes back for the next round queues up behind them.
  if (others > 0) unpark(barrier, others);
  return PTHREAD_BARRIER_SERIAL_THREAD;
}

// Once.
namespace {

constexpr uint32_t kToDo = 0, kBeingDone = 1, kDone = 2, kForkStep = 4;

// A call of the routine. A loop's task is not suspended in it: other tasks of its worker may wait for its end.
struct OnceCall {
  pthread_once_t* control;
  void (*routine)();
  int result;
};

void finish_busy(void*, int) { end_busy(); }

void finish_once(void* memory, int returned) {
  pthread_once_t* const control = static_cast<OnceCall*>(memory)->control;
  end_busy();
  Words(control, 4)[0].store(returned != 0 ? kDone : kToDo, std::memory_order_release);
  unpark(control, ~uint32_t{0});
}

}  // namespace

SPILL_EXPORT int __spill_pthread_once(pthread_once_t* control, void (*routine)()) {
  OnceCall call = {control, routine, 0};
  if (is_c_library_object(control)) {
    clear_slots();
    begin_busy();
    spillway_call_guarded(
        [](void* memory) {
          auto& once = *static_cast<OnceCall*>(memory);
          once.result = LIBC_VERSION(pthread_once, "GLIBC_2.34")(once.control, once.routine);
        },
        finish_busy, &call);
    return call.result;
  }
  for (;;) {
    const uint32_t being_done = kBeingDone + kForkStep * fork_depth();
    // Acquire: what the routine wrote is seen by those that find it done.
    uint32_t state = Words(control, 4)[0].load(std::memory_order_acquire);
    if (state == kDone) return 0;
    if (state != being_done) {
      // To do; or another thread was doing it when an ancestor of this process forked, and does not exist here.
      if (!Words(control, 4)[0].compare_exchange_strong(state, being_done, std::memory_order_acquire))
        continue;
      clear_slots();
      begin_busy();
      spillway_call_guarded([](void* memory) { static_cast<OnceCall*>(memory)->routine(); }, finish_once,
                            &call);
      return 0;
    }
    park(control, [=] { return Words(control, 4)[0].load(std::memory_order_relaxed) == being_done; });
  }
}
SPILL_EXPORT void __spill_call_once(once_flag* flag, void (*routine)()) {
  __spill_pthread_once(reinterpret_cast<pthread_once_t*>(flag), routine);
}

// Spin locks.
namespace {

// As pthread_spin_init() leaves them.
constexpr uint32_t kSpinFree = 1, kSpinLocked = 0;
uint32_t* spin_word(pthread_spinlock_t* lock) { return reinterpret_cast<uint32_t*>(const_cast<int*>(lock)); }

bool take_spin_lock(uint32_t* lock) {
  return Words(lock, 4)[0].exchange(kSpinLocked, std::memory_order_acquire) == kSpinFree;
}

}  // namespace

SPILL_EXPORT int __spill_pthread_spin_init(pthread_spinlock_t* lock, int shared) {
  if (is_c_library_object(spin_word(lock))) return pthread_spin_init(lock, shared);
  Words(spin_word(lock), 4)[0].store(kSpinFree, std::memory_order_relaxed);
  return 0;
}
SPILL_EXPORT int __spill_pthread_spin_destroy(pthread_spinlock_t* lock) {
  return is_c_library_object(spin_word(lock)) ? pthread_spin_destroy(lock) : 0;
}
SPILL_EXPORT int __spill_pthread_spin_lock(pthread_spinlock_t* lock) {
  if (is_c_library_object(spin_word(lock)))
    return noted_lock(lock_or_wait(pthread_spin_trylock, pthread_spin_lock, lock));
  for (int spins = 0; !take_spin_lock(spin_word(lock)); ++spins) {
    __builtin_ia32_pause();
    if (spins % 64 == 63) sched_yield();
  }
  return noted_lock(0);
}
SPILL_EXPORT int __spill_pthread_spin_trylock(pthread_spinlock_t* lock) {
  if (is_c_library_object(spin_word(lock))) return noted_lock(pthread_spin_trylock(lock));
  return noted_lock(take_spin_lock(spin_word(lock)) ? 0 : EBUSY);
}
SPILL_EXPORT int __spill_pthread_spin_unlock(pthread_spinlock_t* lock) {
  if (is_c_library_object(spin_word(lock))) return noted_unlock(pthread_spin_unlock(lock));
  Words(spin_word(lock), 4)[0].store(kSpinFree, std::memory_order_release);
  return noted_unlock(0);
}

}  // namespace spill
