// fork, for instrumented code and libraries. fork.h says what the child sees.
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "spill/fork.h"
#include "spill/intercept/intercept.h"
#include "spill/next.h"
#include "spill/runtime.h"
#include "sys/memory.h"

namespace spill {

SPILL_EXPORT pid_t __spill_fork() {
  clear_slots();
  InRuntime inside;  // no handler runs in the child before its frames are its own
  return static_cast<pid_t>(fork_on_plain_stack(
      [](void*) { return static_cast<long>(LIBC_VERSION(fork, "GLIBC_2.2.5")()); }, nullptr));
}

namespace {

// Whether the kernel stores a child's number, or its descriptor, where its parent says.
bool is_told(long flags) { return (flags & (CLONE_PARENT_SETTID | CLONE_PIDFD)) != 0; }

// Calls `make`, which copies the process as fork does but without its handlers. Returns what it returns.
template <class Make>
long copy_process(Make make) {
  clear_slots();
  InRuntime inside;
  return fork_on_plain_stack(
      [](void* context) {
        before_fork();
        const long result = (*static_cast<Make*>(context))();
        if (result == 0)
          after_fork_in_child();
        else
          after_fork_in_parent();
        return result;
      },
      &make);
}

struct CloneStart {
  int (*function)(void*);
  void* argument;
};

int start_clone(void* memory) {
  const CloneStart start = *static_cast<CloneStart*>(memory);
  after_fork_in_child();
  {
    InRuntime inside;
    --inside.thread().runtime_depth;  // which copy_process incremented, in the parent's frame
  }
  return start.function(start.argument);
}

// A child of clone() cannot begin on a stack in spilled memory, where nothing is mapped, and clone() does not say how large
// the stack is. Such a child gets another stack, of this size.
constexpr uint64_t kStackBytes = uint64_t{8} << 20;

// Whether a stack that grows down from `end` is plain memory. The last bytes of a spilled static array may be plain, so a whole
// cache page below `end` must be plain too.
bool is_plain_stack(const void* end) {
  const auto address = reinterpret_cast<uint64_t>(end);
  const uint64_t bytes = std::min<uint64_t>(address, runtime.cache->page_bytes());
  return !in_range(address - 1) && !reaches_range(reinterpret_cast<const void*>(address - bytes), bytes);
}

// Calls clone(stack) with a new stack, which the child no longer needs when the call has returned.
template <class Clone>
int clone_on_plain_stack(Clone clone) {
  auto memory = sys::map_anonymous(kStackBytes, "a stack of a child");
  if (!memory) return fail(ENOMEM);
  const int child = clone(*memory + kStackBytes);
  const int error = errno;
  sys::unmap(*memory, kStackBytes);
  errno = error;
  return child;
}

}  // namespace

// A child that shares the memory would share its parent's slots and workspace, too: the parent must be suspended meanwhile. A child that
// copies the memory must not suspend the parent: what fork holds would stay held until the child ends. The word that the kernel stores to
// when the child begins or ends cannot be spilled: the kernel reports to nobody if it cannot store.
bool can_clone(long flags, const void* child_word) {
  const bool stores = (flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)) != 0;
  if (stores && !all_plain(child_word, sizeof(int))) return false;
  return ((flags & CLONE_VM) != 0) == ((flags & CLONE_VFORK) != 0);
}

SPILL_EXPORT pid_t __spill__Fork() {
  const auto fork = LIBC_VERSION(_Fork, "GLIBC_2.34");
  return static_cast<pid_t>(copy_process([fork] { return static_cast<long>(fork()); }));
}

SPILL_EXPORT int __spill_clone(int (*function)(void*), void* stack, int flags, void* argument, ...) {
  va_list list;
  va_start(list, argument);
  void* more[3];
  for (void*& word : more) word = va_arg(list, void*);
  va_end(list);
  if (!can_clone(flags, more[2])) return fail(ENOTSUP);
  PlainObject<int> told(is_told(flags) ? static_cast<int*>(more[0]) : nullptr);
  if (is_told(flags)) more[0] = static_cast<int*>(told);
  const auto clone = LIBC_VERSION(clone, "GLIBC_2.2.5");
  if ((flags & CLONE_VM) != 0) {
    clear_slots();
    const auto sharing = [=](void* its_stack) {
      return clone(function, its_stack, flags, argument, more[0], more[1], more[2]);
    };
    return is_plain_stack(stack) ? sharing(stack) : clone_on_plain_stack(sharing);
  }
  // The child does not return here: it does its half of the work when it starts, before any handler runs.
  CloneStart start = {function, argument};
  const auto copying = [&](void* its_stack) {
    return static_cast<int>(copy_process([&] {
      return static_cast<long>(clone(start_clone, its_stack, flags, &start, more[0], more[1], more[2]));
    }));
  };
  // The child's stack is a copy of the parent's.
  return is_plain_stack(stack) ? copying(stack) : clone_on_plain_stack(copying);
}

// syscall(2) with a number that copies the process.
long copy_process_by_number(long number, const long* arguments) {
  long a[5];
  memcpy(a, arguments, sizeof a);
  const bool told_here = number == SYS_clone && is_told(a[0]);
  PlainObject<int> told(told_here ? reinterpret_cast<int*>(a[2]) : nullptr);
  if (told_here) a[2] = reinterpret_cast<long>(static_cast<int*>(told));
  return copy_process([&] { return syscall(number, a[0], a[1], a[2], a[3], a[4]); });
}

}  // namespace spill
