// Signals: the program's handlers run between two of its own instructions, never inside the runtime, and
// with hazard slots of their own.
//
//   1 sigaction and its kin are interposed: the kernel gets enter_handler, the program's choice is kept
//   2 a signal that arrives inside the runtime is queued again, and all signals are blocked until the runtime
//     is left (InRuntime)
//   3 else the thread moves to its next level of slots for the time of the program's handler
//   4 a handler may also be left by longjmp or setcontext, which are intercepted, or by __builtin_longjmp, before which compiled code calls
//     the runtime (leave_handlers)
//   5 SIGSEGV and SIGBUS raised by an access go to the fault path first, at any time: the kernel never blocks
//     them. The program sees the mask that it asked for, and a fault of its own while it believes them blocked ends the process, as
//     natively
//   6 a child of vfork runs in its parent's memory, but its actions are its own: the kernel has those that are not handlers, child_actions
//     has all of them
#pragma once
#include <signal.h>

#include <cstdint>

#include "spill/abi.h"
#include "sys/signals.h"

namespace spill {

struct Thread;

using sys::kLibrarySignals;
using sys::signal_bit;

// Signals that the runtime needs at any time.
inline constexpr uint64_t kFaultSignals = signal_bit(SIGSEGV) | signal_bit(SIGBUS);

// Is it a signal number that the C library's functions accept?
constexpr bool is_signal(int number) {
  return number >= 1 && number <= 64 && (kLibrarySignals & signal_bit(number)) == 0;
}

// The kernel's part of the C library's set.
inline uint64_t mask_of(const sigset_t& set) { return *reinterpret_cast<const uint64_t*>(&set); }

// The action names the function through which its handler returns (sa_restorer).
inline constexpr unsigned long kFlagRestorer = 0x04000000;

// An action as the kernel knows it (rt_sigaction), which differs from the C library's struct.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};

// Makes the kernel call the runtime for `number`, whatever the program sets.
void install_runtime_handler(int number);

// Does what the program asked to happen on `number`, for a signal that is the program's.
void pass_to_program(int number, siginfo_t* info, void* context);

// The program is about to longjmp to a frame with this stack pointer: handlers that the jump leaves give
// their level of slots back, so that all frames that survive use the level they began with.
// `restores_mask`: the jump sets a signal mask too.
void leave_handlers(uint64_t stack_pointer, bool restores_mask);
// The same, down to the level that has these slots, for a jump that sets a signal mask. REQUIRES: a level of the calling thread's.
void leave_handlers_for(const Slot* slots);

// A signal that is not a fault came while the thread is inside the runtime: step 2.
void defer_signal(siginfo_t* info, void* context);

// Sets which fault signals the calling thread believes blocked; one that was kept meanwhile may be delivered now.
void set_blocked_faults(Thread& thread, uint64_t blocked_faults);
// Takes the fault signal that was kept for the calling thread, if there is one and it is among these.
bool take_kept_fault(uint64_t signals, siginfo_t& info);

// Registers the calling thread, which begins to run the program's code. If it began with signals blocked that the fault
// path needs (the mask is inherited over exec, and pthread_attr_setsigmask_np gives one), they are unblocked from now on,
// while the program sees them as blocked (intercept/mask.cc). Cost: a system call.
void adopt_signal_mask();

// sigprocmask(2) as the program sees it (intercept/mask.cc). Plain pointers. Returns 0 or an error number.
int change_program_mask(int how, const sigset_t* set, sigset_t* old);

// sigaction(2) as the program sees it. Plain pointers. Returns 0 or -1 with errno set.
int set_program_action(int number, const struct sigaction* action, struct sigaction* old);

// Between the two no handler is set. For fork.
void freeze_actions();
void thaw_actions();

}  // namespace spill
