// syscall(SYS_futex) on spilled words: what std::atomic::wait, std::counting_semaphore and their like are
// made of. Other system calls made by number: by_number.cc.
// Also the functions of threads that take small objects.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "spill/intercept/parking.h"

namespace spill {
namespace {

int fail(int error) {
  errno = error;
  return -1;
}

Deadline deadline_of(int command, bool realtime, const timespec* timeout) {
  if (timeout == nullptr) return Deadline::never();
  const timespec time = load(timeout);
  if (command == FUTEX_WAIT_BITSET) return Deadline::at(realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC, time);
  // FUTEX_WAIT says how long, not until when.
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (time.tv_nsec < 0 || time.tv_nsec >= 1'000'000'000) return Deadline::at(CLOCK_MONOTONIC, time);
  const long nanoseconds = now.tv_nsec + time.tv_nsec;
  now.tv_sec += time.tv_sec + nanoseconds / 1'000'000'000;
  now.tv_nsec = nanoseconds % 1'000'000'000;
  return Deadline::at(CLOCK_MONOTONIC, now);
}

long wait_futex(const uint32_t* word, uint32_t expected, const Deadline& deadline, uint32_t mask) {
  if (!deadline.is_valid() || mask == 0) return fail(EINVAL);
  const Parked parked = park(
      word, [=] { return Words(word, 4)[0].load(std::memory_order_relaxed) == expected; }, deadline, true,
      mask);
  switch (parked) {
    case Parked::kWoken: return 0;
    case Parked::kChanged: return fail(EAGAIN);
    case Parked::kTimedOut: return fail(ETIMEDOUT);
    case Parked::kInterrupted: return fail(EINTR);
  }
  return fail(EINVAL);
}

// `value3` as in futex(2): a bit set, or for FUTEX_CMP_REQUEUE the expected value.
long call_futex(const uint32_t* word, int operation, uint32_t value, const timespec* timeout,
                uint32_t value3) {
  const bool realtime = (operation & FUTEX_CLOCK_REALTIME) != 0;
  switch (const int command = operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT: return wait_futex(word, value, deadline_of(command, realtime, timeout), ~uint32_t{0});
    case FUTEX_WAIT_BITSET: return wait_futex(word, value, deadline_of(command, realtime, timeout), value3);
    case FUTEX_WAKE: return unpark(word, value);
    case FUTEX_WAKE_BITSET: return unpark(word, value, value3);
    case FUTEX_CMP_REQUEUE:
      if (Words(word, 4)[0].load(std::memory_order_relaxed) != value3) return fail(EAGAIN);
      [[fallthrough]];
    // Waiters may be woken for no reason: all, instead of moving some to another word.
    case FUTEX_REQUEUE: return unpark(word, ~uint32_t{0});
    default: return fail(ENOSYS);
  }
}

}  // namespace

SPILL_EXPORT long __spill_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && !is_c_library_object(reinterpret_cast<const void*>(a[0]))) {
    return call_futex(reinterpret_cast<uint32_t*>(a[0]), static_cast<int>(a[1]), static_cast<uint32_t>(a[2]),
                      reinterpret_cast<const timespec*>(a[3]), static_cast<uint32_t>(a[5]));
  }
  clear_slots();
  // As where the kernel has no such call: the caller takes the older one.
  if (number == SYS_clone3) return fail(ENOSYS);
  if (number == SYS_clone && (a[0] & CLONE_VFORK) != 0 && (a[0] & CLONE_VM) == 0) return fail(ENOTSUP);
  // With a stack of its own the child would not return here.
  if (number == SYS_fork || (number == SYS_clone && (a[0] & CLONE_VM) == 0 && a[1] == 0))
    return copy_process_by_number(number, a);
  return call_by_number(number, a);
}

SPILL_EXPORT int __spill_pthread_join(pthread_t thread, void** result) {
  PlainObject<void*> plain_result(result);
  clear_slots();
  return pthread_join(thread, plain_result);
}
SPILL_EXPORT int __spill_pthread_setname_np(pthread_t thread, const char* name) {
  return pthread_setname_np(thread, PlainString(name));
}
SPILL_EXPORT int __spill_pthread_getname_np(pthread_t thread, char* name, size_t n) {
  return pthread_getname_np(thread, PlainBytes(name, n, PlainBytes::kInOut).data(), n);
}
SPILL_EXPORT int __spill_pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  return pthread_key_create(PlainObject<pthread_key_t>(key), destroy);
}

// Attributes.
#define SPILL_ATTRIBUTE(T, name, parameters, arguments) \
  SPILL_EXPORT int __spill_##name parameters {          \
    PlainObject<T> attribute(attributes);               \
    return name arguments;                              \
  }
SPILL_ATTRIBUTE(pthread_attr_t, pthread_attr_init, (pthread_attr_t * attributes), (attribute))
SPILL_ATTRIBUTE(pthread_attr_t, pthread_attr_destroy, (pthread_attr_t * attributes), (attribute))
SPILL_ATTRIBUTE(pthread_attr_t, pthread_attr_setdetachstate, (pthread_attr_t * attributes, int state),
                (attribute, state))
SPILL_ATTRIBUTE(pthread_attr_t, pthread_attr_setstacksize, (pthread_attr_t * attributes, size_t bytes),
                (attribute, bytes))
SPILL_ATTRIBUTE(pthread_mutexattr_t, pthread_mutexattr_init, (pthread_mutexattr_t * attributes), (attribute))
SPILL_ATTRIBUTE(pthread_mutexattr_t, pthread_mutexattr_destroy, (pthread_mutexattr_t * attributes),
                (attribute))
SPILL_ATTRIBUTE(pthread_mutexattr_t, pthread_mutexattr_settype, (pthread_mutexattr_t * attributes, int type),
                (attribute, type))
SPILL_ATTRIBUTE(pthread_condattr_t, pthread_condattr_init, (pthread_condattr_t * attributes), (attribute))
SPILL_ATTRIBUTE(pthread_condattr_t, pthread_condattr_destroy, (pthread_condattr_t * attributes), (attribute))
SPILL_ATTRIBUTE(pthread_condattr_t, pthread_condattr_setclock,
                (pthread_condattr_t * attributes, clockid_t clock), (attribute, clock))

}  // namespace spill
