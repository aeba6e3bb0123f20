// The thread that serves the page faults of preload mode, and what others may ask of it.
//
// One thread owns all that is known about pages (pager.h): nobody else locks, reads or changes it. It needs nothing
// that a faulting thread could hold: no lock, no heap, no spilled memory. Others ask for what changes pages by a fault,
// too, since that is what it waits for:
//
//   1 who asks blocks its signals (a handler would wait for the locks of what it interrupted) and takes the line's lock
//   2 writes the question, makes the doorbell page missing, and touches it: the kernel puts it to sleep
//   3 the thread finds the doorbell's address among the faults, does what is asked, notes that, and supplies the page
//   4 who asked wakes up: the load of step 2 is done. It lets go of the lock, and of its signals
//
// A fault may be told of twice, the doorbell's too: a question that is done is not done again.
//
// The thread has a table of descriptors of its own, which holds the runtime's descriptors and no others: a program that closes
// what it did not open cannot close those. Without userfaultfd's, missing pages would read as zeros.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace spill::preload {

// Reserves the spilled range and starts the thread. To be called once. Errors: those of sys::UserFaults, ENOMEM, those of
// Pager::open. REQUIRES: runtime.options and runtime.device are set; signals are blocked; not in a child of vfork.
base::Expected<void> start_service();

// In a child of fork, which has none of its parent's spilled memory: makes the range such that touching it ends the
// process with one line. Errors: those of start_service().
base::Expected<void> start_child_service();

// Questions, for any thread. REQUIRES: the calling thread blocks all signals.
// All of it reads as zeros from now on.
void ask_discard(uint64_t address, uint64_t bytes);
// What was at `from` is at `to`, which was never touched since it was free.
void ask_relocate(uint64_t to, uint64_t from, uint64_t bytes);

}  // namespace spill::preload
