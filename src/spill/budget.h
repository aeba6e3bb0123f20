// The budget while the program runs: who changes it, and when it changes by itself.
//
//   the program          spill_set_memory (include/spillway/spill.h)
//   spillway budget      by what the published page says below
//   pressure on memory   with --pressure: down in steps and up again (pressure_plan.h), at most to what one of the others asked for
//
// A request from outside is written to the published page by another process of the user (process_vm_writev); the background thread
// looks there each time that it goes round:
//   1 the bytes, and then the number, another than before      the other process
//   2 number seen, bytes read, the budget changed or not       the background thread
//   3 the answer, and then its number                          the background thread
// Of two who ask at a time one may get no answer: it says so, and asks again if its user does.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace spill {

// As the published page has it.
struct BudgetRequest {
  uint64_t bytes;
  uint64_t number;
};
struct BudgetAnswer {
  uint64_t number;
  int64_t error;       // 0, or an errno, and why not
  uint64_t bytes;      // the budget now
  uint64_t was_bytes;  // before
  char message[256];
};

// Any thread, within InRuntime. Errors: as cache::Cache::set_memory; EINVAL also below base::kMinMemoryBytes and above the machine's memory.
base::Expected<void> set_memory(uint64_t bytes);

// Of the background thread: when it begins, in each process; and when it goes round. Cost: a load; with --pressure a system call or two.
void begin_budget();
void budget_step();

// Fork. Between the two nobody changes it.
void freeze_budget();
void thaw_budget();

}  // namespace spill
