// The fault path: accesses by code that was not compiled by spillcc.
//
// Such an access to a spilled address raises SIGSEGV. The handler makes the page resident, pins it, and
// maps its frame at the spilled address itself: the same memory, so both views agree. A mapped page
// stays until mapped_limit others were mapped after it. 20-50 us a page: for compatibility, not speed.
//
// The same handler registers threads that the runtime has not seen (thread.h), and passes every other
// fault on to the program's own handler, or lets it end the process as it would have natively.
#pragma once
#include <signal.h>

#include <cstdint>

#include "base/ids.h"

namespace spill {

// Installs the handler. `mapped_limit`: most pages mapped at one time, at least 2.
void install_fault_handler(uint32_t mapped_limit);

// Maps the page of `address` for code at `site`, which the statistics count. REQUIRES: in_range, allocated. May
// block and do I/O; ends the process on a storage error.
void map_at_own_address(uint64_t address, uint64_t site);

// Takes every mapping within [address, address + bytes) away, before its addresses are freed.
void unmap_range(uint64_t address, uint64_t bytes);

// Takes every mapping within [address, address + bytes) away and calls f(context), before anything is mapped again.
void hand_over(uint64_t address, uint64_t bytes, void (*f)(void* context), void* context);

// What is mapped of pages that touch [address, address + bytes), but for what is kept, goes; then f(context) may change
// protections, and what is kept gets them. Nothing is mapped meanwhile: this is the lock of mappings (protection.h).
void change_mappings(uint64_t address, uint64_t bytes, void (*f)(void* context), void* context);

// Keeps [address, address + bytes) in memory and mapped at its own address until it is freed: a stack that
// the program made, whose accesses are not translated, and on which the kernel must be able to put a
// signal's frame. Returns false when that would take more than half of the frames, or a table is full.
// REQUIRES: allocated. May block and do I/O; ends the process on a storage error.
bool keep_mapped(uint64_t address, uint64_t bytes);
// Before [address, address + bytes) is freed: ends keep_mapped for what lies within. Cost: one load when
// nothing is kept.
void end_kept(uint64_t address, uint64_t bytes);
// Is something kept of a page that touches [address, address + bytes)?
bool keeps_any(uint64_t address, uint64_t bytes);

// Fork. Between the first and one of the others nothing is mapped or unmapped; before it, all that is not kept is
// unmapped. In the child what is kept becomes its own (own_kept_pages, while the parent waits if keeps_pages).
void freeze_mappings();
void thaw_mappings();
// Whether the page lies in a range of keep_mapped. REQUIRES: between freeze_mappings and thaw_mappings.
bool is_kept(base::PageId page);
bool keeps_pages();
void own_kept_pages();

// Every SIGSEGV and SIGBUS that an access raised, from the runtime's handler (signals.h): what is not ours goes on to the
// program's own handler.
void handle_fault(int number, siginfo_t* info, void* context);

// In a copy of a process that cannot have what its parent has: one line that says why, and the end.
[[noreturn]] void end_fork_child(const char* why);

}  // namespace spill
