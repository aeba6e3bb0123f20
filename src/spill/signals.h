// Signals: the program's handlers run between two of its own instructions, never inside the runtime, and
// with hazard slots of their own.
//
//   1 sigaction and its kin are interposed: the kernel gets enter_handler, the program's choice is kept
//   2 a signal that arrives inside the runtime is put aside, all signals are blocked, and it is queued
//     again when the runtime is left (InRuntime)
//   3 else the thread moves to its next level of slots for the time of the program's handler
//   4 a handler may also be left by longjmp, which is intercepted (leave_handlers)
//   5 SIGSEGV and SIGBUS raised by an access go to the fault path first, at any time
#pragma once
#include <signal.h>

#include <cstdint>

namespace spill {

// Makes the kernel call the runtime for `number`, whatever the program sets.
void install_runtime_handler(int number);

// What the program asked to happen on `number`, for a fault that is the program's.
void pass_to_program(int number, siginfo_t* info, void* context);

// The program is about to longjmp to a frame with this stack pointer: handlers that the jump leaves give
// their level of slots back, so that all frames that survive use the level they began with.
void leave_handlers(uint64_t stack_pointer);

// sigaction(2) as the program sees it. Plain pointers. Returns 0 or -1 with errno set.
int set_program_action(int number, const struct sigaction* action, struct sigaction* old);

}  // namespace spill
