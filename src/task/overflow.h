// What happens when a task overflows its stack: one line names the task, before the fault ends the process.
//
// A frame that reaches into the guard below a stack (stack_pool.h) faults. A handler of SIGSEGV that runs on another stack, that of
// report_overflows() or the program's own, calls explain_overflow() with the address.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace task {

// If the address is in a guard of the calling worker's scheduler, logs which task has used more than its stack, and returns true.
// Async-signal-safe.
bool explain_overflow(uint64_t fault_address);

// Installs a handler of SIGSEGV that explains overflows and ends the process; other faults go to the handler that was there before. To be
// called once, in processes in which nobody else handles SIGSEGV (in those that spill the runtime does).
void report_overflows();

// A stack for signal handlers of the thread that opens it, from open() to close(), unless that has one already. Errors: ENOMEM.
class SignalStack {
 public:
  base::Expected<void> open();
  void close();

 private:
  char* memory_ = nullptr;
};

}  // namespace task
