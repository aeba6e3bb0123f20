// The budget while the program runs: who changes it, and when it changes by itself.
//
//   the program          spill_set_memory (include/spillway/spill.h)
//   spillway budget      by what the published page says below
//   pressure on memory   with --pressure: down in steps and up again (pressure_plan.h), at most to what one of the others asked for
//
// A request from outside is written to the published page by another process of the user (process_vm_writev); the background thread
// looks there on each round:
//   1 stores the bytes, and then the number, different from the last    the other process
//   2 sees the number, reads the bytes, changes the budget or not       the background thread
//   3 stores the answer, and then its number                            the background thread
// If two processes ask at the same time, one of them may get no answer: it reports so, and its user may try again.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace spill {

// As laid out in the published page.
struct BudgetRequest {
  uint64_t bytes;
  uint64_t number;
};
struct BudgetAnswer {
  uint64_t number;
  int64_t error;       // 0, or an errno, explained by `message`
  uint64_t bytes;      // the budget now
  uint64_t was_bytes;  // before
  char message[256];
};

// Any thread, within InRuntime. Errors: as cache::Cache::set_memory; EINVAL also below base::kMinMemoryBytes and above the machine's memory.
base::Expected<void> set_memory(uint64_t bytes);

// Called by the background thread: when it starts, in each process; and on each round. Cost: a load; with --pressure a system call or two.
void begin_budget();
void budget_step();

// Between the two nobody changes the budget: for fork, and for whoever counts pages that stay in memory (standing_pins.h, mapped_pages.h), and takes
// the lock of these after the first call.
void freeze_budget();
void thaw_budget();

}  // namespace spill
