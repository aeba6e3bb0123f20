// Setting signal handlers (signals.h): all functions that lead to sigaction(2).
#include <errno.h>
#include <setjmp.h>
#include <signal.h>

#include <atomic>

#include "spill/intercept/intercept.h"
#include "spill/signals.h"

extern "C" [[noreturn]] void __longjmp_chk(sigjmp_buf environment, int value);

namespace spill {
namespace {

sighandler_t refuse() {
  errno = EINVAL;
  return SIG_ERR;
}

// Signals that siginterrupt() allows to interrupt system calls; signal() honours this too.
constinit std::atomic<uint64_t> interrupting{0};

sighandler_t set_handler(int number, sighandler_t handler, int flags, bool block_itself) {
  struct sigaction action = {}, old;
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (block_itself) *reinterpret_cast<uint64_t*>(&action.sa_mask) = uint64_t{1} << (number - 1 & 63);
  return set_program_action(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

// signal() by the rules of BSD.
sighandler_t set_bsd_handler(int number, sighandler_t handler) {
  if (handler == SIG_ERR || !is_signal(number)) return refuse();
  const bool interrupts = (interrupting.load(std::memory_order_relaxed) & signal_bit(number)) != 0;
  return set_handler(number, handler, interrupts ? 0 : SA_RESTART, true);
}

// The stack pointer in a jmp_buf of glibc on x86-64: the seventh word, mangled with the thread's guard.
uint64_t stack_pointer_in(const void* environment) {
  uint64_t words[8];
  copy(words, environment, sizeof words);
  uint64_t guard;
  asm("movq %%fs:0x30, %0" : "=r"(guard));
  const uint64_t mangled = words[6];
  return (mangled >> 17 | mangled << 47) ^ guard;
}

// Jumps with a plain copy of the environment.
template <class Jump>
[[noreturn]] void jump(Jump next, const void* environment, int value) {
  sigjmp_buf plain_environment;
  copy(plain_environment, environment, sizeof plain_environment);
  leave_handlers(stack_pointer_in(plain_environment), plain_environment[0].__mask_was_saved != 0);
  next(plain_environment, value);
  __builtin_unreachable();
}

}  // namespace

SPILL_EXPORT void __spill_longjmp(sigjmp_buf environment, int value) { jump(longjmp, environment, value); }
SPILL_EXPORT void __spill__longjmp(sigjmp_buf environment, int value) { jump(_longjmp, environment, value); }
// longjmp() in programs compiled with -D_FORTIFY_SOURCE.
SPILL_EXPORT void __spill___longjmp_chk(sigjmp_buf environment, int value) {
  jump(__longjmp_chk, environment, value);
}
SPILL_EXPORT void __spill_siglongjmp(sigjmp_buf environment, int value) {
  jump(siglongjmp, environment, value);
}

// Called by compiled code before an inline jump (__builtin_longjmp).
SPILL_EXPORT void __spillway_leave_handlers(void* const* buffer);
SPILL_EXPORT void __spillway_leave_handlers(void* const* buffer) {
  leave_handlers(reinterpret_cast<uint64_t>(load(&buffer[2])), false);
}

SPILL_EXPORT int __spill_sigaction(int number, const struct sigaction* action, struct sigaction* old) {
  struct sigaction plain_action, plain_old;
  if (action != nullptr) copy(&plain_action, action, sizeof plain_action);
  const int result = set_program_action(number, action != nullptr ? &plain_action : nullptr, &plain_old);
  if (result == 0 && old != nullptr) copy(old, &plain_old, sizeof plain_old);
  return result;
}

SPILL_EXPORT sighandler_t __spill_signal(int number, sighandler_t handler) {
  return set_bsd_handler(number, handler);
}
SPILL_EXPORT sighandler_t __spill_bsd_signal(int number, sighandler_t handler) {
  return set_bsd_handler(number, handler);
}
SPILL_EXPORT sighandler_t __spill_ssignal(int number, sighandler_t handler) {
  return set_bsd_handler(number, handler);
}
SPILL_EXPORT sighandler_t __spill_sysv_signal(int number, sighandler_t handler) {
  if (handler == SIG_ERR) return refuse();
  return set_handler(number, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER), false);
}
SPILL_EXPORT sighandler_t __spill___sysv_signal(int number, sighandler_t handler) {
  return __spill_sysv_signal(number, handler);
}
SPILL_EXPORT sighandler_t __spill_sigset(int number, sighandler_t handler) {
  sigset_t set = {}, before;
  if (!is_signal(number)) return refuse();
  *reinterpret_cast<uint64_t*>(&set) = signal_bit(number);
  if (handler == SIG_HOLD) {
    struct sigaction old;
    if (set_program_action(number, nullptr, &old) != 0) return SIG_ERR;
    change_program_mask(SIG_BLOCK, &set, &before);
    return (mask_of(before) & signal_bit(number)) != 0 ? SIG_HOLD : old.sa_handler;
  }
  const sighandler_t old = set_handler(number, handler, 0, true);
  if (old == SIG_ERR) return old;
  change_program_mask(SIG_UNBLOCK, &set, &before);
  return (mask_of(before) & signal_bit(number)) != 0 ? SIG_HOLD : old;
}
SPILL_EXPORT int __spill_sigignore(int number) {
  return set_handler(number, SIG_IGN, 0, false) == SIG_ERR ? -1 : 0;
}
SPILL_EXPORT int __spill_siginterrupt(int number, int interrupt) {
  struct sigaction action;
  if (set_program_action(number, nullptr, &action) != 0) return -1;
  if (interrupt != 0)
    interrupting.fetch_or(signal_bit(number), std::memory_order_relaxed);
  else
    interrupting.fetch_and(~signal_bit(number), std::memory_order_relaxed);
  action.sa_flags = interrupt != 0 ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
  return set_program_action(number, &action, nullptr);
}

}  // namespace spill
