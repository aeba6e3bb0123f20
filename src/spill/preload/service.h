// The thread that serves the page faults of preload mode, and the requests that others make to it.
//
// One thread owns everything that is known about pages (pager.h): nobody else locks, reads or changes it. It needs nothing
// that a faulting thread could hold: no lock, no heap, no spilled memory. Others ask it to change pages by a fault, too, since
// faults are what it waits for:
//
//   1 the asking thread blocks its signals (a handler would wait for the locks of what it interrupted) and takes the line's lock
//   2 it writes the question, makes the doorbell page missing, and touches it: the kernel puts it to sleep
//   3 the serving thread finds the doorbell's address among the faults, does what is asked, notes that, and supplies the page
//   4 the asking thread wakes up: the load of step 2 is done. It releases the lock, and unblocks its signals
//
// A fault may be reported twice, the doorbell's too: a question that was answered is not answered again.
//
// The thread has a descriptor table of its own, which holds only the runtime's descriptors: a program that closes what it did
// not open cannot close those. Without userfaultfd's descriptor, missing pages would read as zeros.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace spill::preload {

// Reserves the spilled range and starts the thread. To be called once. Errors: those of sys::UserFaults, ENOMEM, those of
// Pager::open. REQUIRES: runtime.options and runtime.device are set; signals are blocked; not in a child of vfork.
base::Expected<void> start_service();

// In a child of fork, which has none of its parent's spilled memory: sets the range up so that touching it ends the
// process with one line. Errors: those of start_service().
base::Expected<void> start_child_service();

// Questions, for any thread. REQUIRES: the calling thread blocks all signals.
// All of it reads as zeros from now on.
void ask_discard(uint64_t address, uint64_t bytes);
// Moves what is at `from` to `to`, which has not been touched since it was free.
void ask_relocate(uint64_t to, uint64_t from, uint64_t bytes);

}  // namespace spill::preload
