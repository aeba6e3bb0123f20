// Reader-writer locks. One in spilled memory has two words; all zeros, as its static initialiser says, is free:
//
//   offset 0  state   bit 31  a writer has it        bit 30  somebody may be parked        bits 0..29  readers
//         24  writer  kernel thread id of the writer that has it, else 0
//
// Readers do not wait for waiting writers, like the C library's default. A writer that locks again gets EDEADLK, as there.
#include <errno.h>
#include <pthread.h>

#include "spill/intercept/mutex.h"
#include "spill/intercept/parking.h"
#include "spill/next.h"

namespace spill {
namespace {

constexpr uint32_t kWriter = 1u << 31, kParked = 1u << 30, kReaders = kParked - 1;
constexpr size_t kStateBytes = 4, kWriterAt = 24, kWordsBytes = 28;
static_assert(offsetof(pthread_rwlock_t, __data.__cur_writer) == kWriterAt);

bool admits_reader(uint32_t state) { return (state & kWriter) == 0; }
bool admits_writer(uint32_t state) { return (state & ~kParked) == 0; }

// Acquire: pairs with the releases in unlock_spilled(). 0, EBUSY or EAGAIN.
template <bool kWrites>
int try_spilled(pthread_rwlock_t* lock) {
  const Words words(lock, kWordsBytes);
  uint32_t state = words[0].load(std::memory_order_relaxed);
  for (;;) {
    if (!(kWrites ? admits_writer(state) : admits_reader(state))) return EBUSY;
    if (!kWrites && (state & kReaders) == kReaders) return EAGAIN;
    const uint32_t next = kWrites ? state | kWriter : state + 1;
    if (!words[0].compare_exchange_weak(state, next, std::memory_order_acquire, std::memory_order_relaxed))
      continue;
    if (kWrites) words[kWriterAt].store(own_thread_id(), std::memory_order_relaxed);
    return 0;
  }
}

// Only the writer itself can find its own id there.
bool is_writer(pthread_rwlock_t* lock) {
  return Words(lock, kWordsBytes)[kWriterAt].load(std::memory_order_relaxed) == own_thread_id();
}

// Called under the bucket's lock: marks that somebody parks, unless there is nothing to wait for.
template <bool kWrites>
bool must_wait(pthread_rwlock_t* lock) {
  const Words words(lock, kStateBytes);
  uint32_t state = words[0].load(std::memory_order_relaxed);
  for (;;) {
    if (kWrites ? admits_writer(state) : admits_reader(state)) return false;
    if (words[0].compare_exchange_weak(state, state | kParked, std::memory_order_relaxed)) return true;
  }
}

template <bool kWrites>
int lock_spilled(pthread_rwlock_t* lock, const Deadline& deadline) {
  for (;;) {
    const int result = try_spilled<kWrites>(lock);
    if (result != EBUSY) return result;
    if (is_writer(lock)) return EDEADLK;
    if (!deadline.is_valid()) return EINVAL;
    if (park(lock, [lock] { return must_wait<kWrites>(lock); }, deadline) == Parked::kTimedOut)
      return ETIMEDOUT;
  }
}

int unlock_spilled(pthread_rwlock_t* lock) {
  uint32_t state, next;
  {
    const Words words(lock, kWordsBytes);
    state = words[0].load(std::memory_order_relaxed);
    if ((state & kWriter) != 0) words[kWriterAt].store(0, std::memory_order_relaxed);
    do {
      next = (state & kWriter) != 0 || (state & kReaders) <= 1 ? 0 : state - 1;
    } while (
        !words[0].compare_exchange_weak(state, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  }
  // Wakes all, since the mark that some are parked is gone.
  if (next == 0 && (state & kParked) != 0) unpark(lock, ~uint32_t{0});
  return 0;
}

}  // namespace

#define SPILL_RWLOCK_WAIT(kind, writes)                                                                      \
  SPILL_EXPORT int __spill_pthread_rwlock_try##kind(pthread_rwlock_t* lock) {                                \
    return noted_lock(is_c_library_object(lock) ? LIBC_VERSION(pthread_rwlock_try##kind, "GLIBC_2.34")(lock) \
                                                : try_spilled<writes>(lock));                                \
  }                                                                                                          \
  SPILL_EXPORT int __spill_pthread_rwlock_##kind(pthread_rwlock_t* lock) {                                   \
    if (!is_c_library_object(lock)) return noted_lock(lock_spilled<writes>(lock, Deadline::never()));        \
    return noted_lock(lock_or_wait(LIBC_VERSION(pthread_rwlock_try##kind, "GLIBC_2.34"),                     \
                                   LIBC_VERSION(pthread_rwlock_##kind, "GLIBC_2.34"), lock));                \
  }                                                                                                          \
  SPILL_EXPORT int __spill_pthread_rwlock_timed##kind(pthread_rwlock_t* lock, const timespec* time) {        \
    if (!is_c_library_object(lock))                                                                          \
      return noted_lock(lock_spilled<writes>(lock, Deadline::at(CLOCK_REALTIME, load(time))));               \
    const PlainIn<timespec> plain_time(time);                                                                \
    clear_slots();                                                                                           \
    return noted_lock(LIBC_VERSION(pthread_rwlock_timed##kind, "GLIBC_2.34")(lock, plain_time));             \
  }                                                                                                          \
  SPILL_EXPORT int __spill_pthread_rwlock_clock##kind(pthread_rwlock_t* lock, clockid_t clock,               \
                                                      const timespec* time) {                                \
    if (!is_c_library_object(lock))                                                                          \
      return noted_lock(lock_spilled<writes>(lock, Deadline::at(clock, load(time))));                        \
    const PlainIn<timespec> plain_time(time);                                                                \
    clear_slots();                                                                                           \
    return noted_lock(LIBC_VERSION(pthread_rwlock_clock##kind, "GLIBC_2.34")(lock, clock, plain_time));      \
  }

SPILL_RWLOCK_WAIT(rdlock, false)
SPILL_RWLOCK_WAIT(wrlock, true)

SPILL_EXPORT int __spill_pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  return noted_unlock(is_c_library_object(lock) ? LIBC_VERSION(pthread_rwlock_unlock, "GLIBC_2.34")(lock)
                                                : unlock_spilled(lock));
}
SPILL_EXPORT int __spill_pthread_rwlock_destroy(pthread_rwlock_t* lock) {
  return is_c_library_object(lock) ? LIBC_VERSION(pthread_rwlock_destroy, "GLIBC_2.34")(lock) : 0;
}

SPILL_EXPORT int __spill_pthread_rwlock_init(pthread_rwlock_t* lock, const pthread_rwlockattr_t* attributes) {
  if (is_c_library_object(lock))
    return LIBC_VERSION(pthread_rwlock_init, "GLIBC_2.34")(lock, PlainIn<pthread_rwlockattr_t>(attributes));
  const pthread_rwlock_t fresh = {};
  copy(lock, &fresh, sizeof fresh);
  return 0;
}

}  // namespace spill
