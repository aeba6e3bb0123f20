// fork: the child sees its parent's memory as it was, and what it changes is its own.
//
//   1 before fork, after all handlers of the program: the cache is frozen (no page comes or goes), a pipe
//     and two words of shared memory are made
//   2 child: its pool becomes inaccessible; what it touches is copied while the word does not say "thawed":
//     frames to the same place in its pool (copy_for_child), pages that no entry leads to, or that code not
//     compiled by spillcc touches, to their own address, which their entries then name (own_for_child). It
//     says that it copies, so that 4 waits
//   3 parent: waits until the child's end of the pipe is closed, by exec or by its end, or the child ran or
//     slept for kPatienceMs, at most kMostPatienceMs
//   4 parent: says "thawed", waits for a copy under way, thaws the cache
//
// So a child that execs soon has all that it needs, and one that goes on never reads what its parent changed
// or threw out: it ends with one line when it needs a page that it has not copied, and so does one of several
// threads. Pages that were never written are zeros at any time.
//
// Every way to a copy of the process comes here: handlers of pthread_atfork for the C library's own, the two
// halves below for the others (intercept/fork.cc). A copy made behind our back has no pool (MADV_DONTFORK).
//
// Thread contract: forks of several threads follow each other, since step 1 takes the cache's locks.
#pragma once
#include <cstdint>

#include "base/ids.h"

namespace spill {

// Once, at the start, before anybody else asks to be told of forks: step 1 comes last of all then.
void watch_forks();

// What the handlers do, for ways around the C library's fork.
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

// In a child: makes the OS page of `address`, in a pool, the child's own. Returns false when it is too late,
// or the address is in no pool. Async-signal-safe.
bool copy_for_child(uint64_t address);

// In a child: makes the page of `address`, spilled and allocated, the child's own, at its own address; ends
// the process with one line when it is too late. Async-signal-safe.
void own_for_child(uint64_t address);

// In a child, before it runs the program: a page that its parent keeps mapped (keep_mapped) becomes the child's own,
// at its own address. REQUIRES: the parent waits.
void keep_for_child(base::PageId page);

// In a child: a page that another thread is just getting is whole. Called by a thread that has been counted
// (thread_count) before it touches spilled memory: later ones end the process.
void wait_for_copy();

// In a child: [address, address + bytes), whole OS pages, are zeros of its own.
void zero_for_child(uint64_t address, uint64_t bytes);

}  // namespace spill
