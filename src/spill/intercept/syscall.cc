// syscall(2): who does what is asked for by number.
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#include "spill/intercept/intercept.h"

namespace spill {

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

}  // namespace spill
