// Signal masks (signals.h): the kernel never blocks what the fault path needs, and the program sees the mask that it asked for.
#include <errno.h>
#include <signal.h>

#include "spill/intercept/intercept.h"
#include "spill/signals.h"
#include "spill/thread.h"
#include "sys/kernel.h"
#include "sys/signals.h"

namespace spill {

void set_blocked_faults(Thread& thread, uint64_t blocked_faults) {
  thread.blocked_faults = blocked_faults;
  auto* kept = reinterpret_cast<siginfo_t*>(thread.kept_fault);
  if (kept->si_signo == 0 || (signal_bit(kept->si_signo) & blocked_faults) != 0) return;
  siginfo_t sent = *kept;
  kept->si_signo = 0;
  sys::syscall(SYS_rt_tgsigqueueinfo, sys::syscall(SYS_getpid), sys::syscall(SYS_gettid), sent.si_signo,
               &sent);
}

bool take_kept_fault(uint64_t signals, siginfo_t& info) {
  auto* kept = reinterpret_cast<siginfo_t*>(this_thread().kept_fault);
  if (kept->si_signo == 0 || (signal_bit(kept->si_signo) & signals) == 0) return false;
  info = *kept;
  kept->si_signo = 0;
  return true;
}

void adopt_signal_mask() {
  Thread& thread = this_thread();
  // Stored first, since a pending signal is delivered as soon as it is unblocked.
  thread.blocked_faults = sys::signal_mask() & kFaultSignals;
  if (thread.blocked_faults != 0) sys::unblock_signals(kFaultSignals);
}

int change_program_mask(int how, const sigset_t* set, sigset_t* old) {
  const uint64_t asked = set != nullptr ? mask_of(*set) : 0;
  const uint64_t real = asked & ~(kFaultSignals | kLibrarySignals);
  uint64_t before = 0;
  Thread& thread = this_thread();
  const uint64_t blocked_faults = thread.blocked_faults;
  const long result =
      sys::syscall(SYS_rt_sigprocmask, how, set != nullptr ? &real : nullptr, &before, sizeof real);
  if (result != 0) return static_cast<int>(-result);
  if (set != nullptr) {
    const uint64_t faults = asked & kFaultSignals;
    if (old != nullptr) *reinterpret_cast<uint64_t*>(old) = before | blocked_faults;
    const auto changed = [how](uint64_t mask, uint64_t by) {
      return how == SIG_BLOCK ? mask | by : how == SIG_UNBLOCK ? mask & ~by : by;
    };
    set_blocked_faults(thread, changed(blocked_faults, faults));
    if (thread.task != nullptr)
      thread.has_other_mask = (changed(before, real) | thread.blocked_faults) != thread.task_mask;
  } else if (old != nullptr) {
    *reinterpret_cast<uint64_t*>(old) = before | blocked_faults;
  }
  return 0;
}

namespace {

int change_mask(int how, const sigset_t* set, sigset_t* old) {
  return change_program_mask(how, PlainIn<sigset_t>(set), PlainObject<sigset_t>(old));
}

}  // namespace

SPILL_EXPORT int __spill_pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
  return change_mask(how, set, old);
}
SPILL_EXPORT int __spill_sigprocmask(int how, const sigset_t* set, sigset_t* old) {
  const int error = change_mask(how, set, old);
  return error == 0 ? 0 : fail(error);
}

// The older functions: one signal, or a set of the first 32.
namespace {

int change_one(int how, int number) {
  if (!is_signal(number)) return fail(EINVAL);
  sigset_t set = {};
  *reinterpret_cast<uint64_t*>(&set) = signal_bit(number);
  return change_program_mask(how, &set, nullptr) == 0 ? 0 : -1;
}

int change_first(int how, int mask) {
  sigset_t set = {}, old = {};
  *reinterpret_cast<uint64_t*>(&set) = static_cast<uint32_t>(mask);
  change_program_mask(how, &set, &old);
  return static_cast<int>(mask_of(old));
}

}  // namespace

SPILL_EXPORT int __spill_sighold(int number) { return change_one(SIG_BLOCK, number); }
SPILL_EXPORT int __spill_sigrelse(int number) { return change_one(SIG_UNBLOCK, number); }
SPILL_EXPORT int __spill_sigblock(int mask) { return change_first(SIG_BLOCK, mask); }
SPILL_EXPORT int __spill_sigsetmask(int mask) { return change_first(SIG_SETMASK, mask); }
SPILL_EXPORT int __spill_siggetmask() { return change_first(SIG_BLOCK, 0); }

SPILL_EXPORT int __spill_sigpending(sigset_t* set) {
  const int result = sigpending(PlainObject<sigset_t>(set));
  const int kept = reinterpret_cast<const siginfo_t*>(this_thread().kept_fault)->si_signo;
  if (result == 0 && kept != 0) {
    auto* mask = reinterpret_cast<uint64_t*>(set);
    store(mask, load(mask) | signal_bit(kept));
  }
  return result;
}

}  // namespace spill
