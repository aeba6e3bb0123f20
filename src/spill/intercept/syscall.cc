// syscall(2): how calls by number are carried out. Those of code that was not compiled by spillcc go to the kernel,
// except futexes on spilled words, which the C++ library's futures use in functions of its own, and calls that libraries
// make in this way with the program's memory: libuv reads, sends and asks about files by number (exports.S).
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#include "spill/intercept/intercept.h"
#include "sys/kernel.h"

namespace spill {
namespace {

bool is_spilled_word(long address) { return !is_c_library_object(reinterpret_cast<const void*>(address)); }
bool is_spilled_futex(const long* a) {
  return is_spilled_word(a[0]) || ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE_OP && is_spilled_word(a[4]));
}
long call_spilled_futex(const long* a) {
  return call_futex(reinterpret_cast<uint32_t*>(a[0]), static_cast<int>(a[1]), static_cast<uint32_t>(a[2]),
                    reinterpret_cast<const timespec*>(a[3]), reinterpret_cast<uint32_t*>(a[4]),
                    static_cast<uint32_t>(a[5]));
}

// Waiters for a plain word are to be moved to a spilled one: the kernel would keep them there, and nobody would wake them.
bool moves_to_spilled(const long* a) {
  const long command = a[1] & FUTEX_CMD_MASK;
  return (command == FUTEX_REQUEUE || command == FUTEX_CMP_REQUEUE) && is_spilled_word(a[4]);
}
// Wakes all of them instead: spurious wake-ups are allowed.
long wake_all(const long* a) {
  if ((a[1] & FUTEX_CMD_MASK) == FUTEX_CMP_REQUEUE &&
      __atomic_load_n(reinterpret_cast<const uint32_t*>(a[0]), __ATOMIC_SEQ_CST) !=
          static_cast<uint32_t>(a[5]))
    return fail(EAGAIN);
  const long woken = sys::syscall(SYS_futex, a[0], FUTEX_WAKE | (a[1] & FUTEX_PRIVATE_FLAG), INT_MAX);
  return sys::failed(woken) ? fail(static_cast<int>(-woken)) : woken;
}

}  // namespace

SPILL_EXPORT long __spill_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && is_spilled_futex(a)) return call_spilled_futex(a);
  clear_slots();
  if (number == SYS_futex && moves_to_spilled(a)) return wake_all(a);
  // As if the kernel had no such call: the caller falls back to the older one.
  if (number == SYS_clone3) return fail(ENOSYS);
  if (number == SYS_clone && !can_clone(a[0], reinterpret_cast<const void*>(a[3]))) return fail(ENOTSUP);
  // With a stack of its own the child would not return here.
  if (number == SYS_fork || (number == SYS_clone && (a[0] & CLONE_VM) == 0 && a[1] == 0))
    return copy_process_by_number(number, a);
  return call_by_number(number, a);
}

// Takes the parameters of syscall().
extern "C" long spillway_foreign_call(long number, long a0, long a1, long a2, long a3, long a4, long a5) {
  clear_slots();
  const long a[] = {a0, a1, a2, a3, a4, a5};
  return call_by_number(number, a);
}
extern "C" long spillway_foreign_futex(long, long word, long operation, long value, long timeout, long word2,
                                       long value3) {
  const long a[] = {word, operation, value, timeout, word2, value3};
  if (is_spilled_futex(a)) return call_spilled_futex(a);
  clear_slots();
  if (moves_to_spilled(a)) return wake_all(a);
  const long result = sys::syscall(SYS_futex, word, operation, value, timeout, word2, value3);
  return sys::failed(result) ? fail(static_cast<int>(-result)) : result;
}

}  // namespace spill
