// The fault path: accesses by code that was not compiled by spillcc.
//
// Such an access to a spilled address raises SIGSEGV, and the handler maps the page at the spilled address itself
// (mapped_pages.h). 20-50 us a page: for compatibility, not speed.
//
// The same handler registers threads that the runtime has not seen (thread.h), and passes every other
// fault on to the program's own handler, or lets it end the process as it would have natively.
#pragma once
#include <signal.h>

namespace spill {

void install_fault_handler();

// Called by the runtime's handler (signals.h) for every SIGSEGV and SIGBUS that an access raised. Faults that are not the runtime's go on to
// the program's own handler.
void handle_fault(int number, siginfo_t* info, void* context);

}  // namespace spill
