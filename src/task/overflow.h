// What happens when a task overflows its stack: one line names the task, before the fault ends the process.
//
// A stack frame that reaches into the guard below the stack (stack_pool.h) faults. A handler of SIGSEGV on another stack, either that of
// report_overflows() or the program's own, calls explain_overflow() with the address.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace task {

// If the address is in a guard of the calling worker's scheduler, logs which task has overflowed its stack, and returns true.
// Async-signal-safe.
bool explain_overflow(uint64_t fault_address);

// Installs a handler of SIGSEGV that explains overflows and ends the process; other faults go to the previous handler. To be called once, in
// processes in which nobody else handles SIGSEGV (in those that spill, the runtime does).
void report_overflows();

// A stack for signal handlers on the thread that opens it, from open() to close(), unless the thread has one already. Errors: ENOMEM.
class SignalStack {
 public:
  base::Expected<void> open();
  void close();

 private:
  char* memory_ = nullptr;
};

}  // namespace task
