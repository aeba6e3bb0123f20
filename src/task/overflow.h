// Stack overflow of a task: one line that names it, instead of a fault without a word.
//
// A frame that reaches into the guard below a stack (stack_pool.h) faults. A handler of SIGSEGV that runs on another stack,
// report_overflows' or the program's own, calls explain_overflow with the address.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace task {

// If the address is in a guard of the calling worker's scheduler, says which task has used more than its stack; false if not.
// Async-signal-safe.
bool explain_overflow(uint64_t fault_address);

// Handles SIGSEGV for the process: explains overflows and ends it; other faults go to the handler that was there before.
// Once; for processes in which nobody else does.
void report_overflows();

// Gives the calling thread a stack for signal handlers as long as it lives, unless it has one.
class SignalStack {
 public:
  base::Expected<void> open();
  void close();

 private:
  char* memory_ = nullptr;
};

}  // namespace task
