// Translation by software address translation caches (spillcc -fspill-translation=satc), as in TriCache (section 3.3): each thread
// has a Direct and a Private one (satc_levels.h) over the shared cache, where a page in Private is pinned. For comparison with the
// table, which goes on beside it: interceptors, accesses across an edge and other libraries translate by the table and its slots.
//
//   compiled code, Direct ──miss──► spillway_satc_quick, Private ──miss──► spillway_satc_blocking, Cache::pin
//
// Invariants
//  1 a translation is used for one access, before its thread's next translation. Only that next one may end the page's pin, so
//    whoever evicts need not know of the access
//  2 at most three quarters of the frames that the budget leaves a partition are pinned here, half if they are few, minus what else
//    is pinned. Beyond that a page is bypassed: translated by the table and a slot of its own, and kept in neither cache. So are
//    pages in signal handlers, which interrupt accesses; those of mapped files, which others may take away; and protected ones
//  3 invalidation, when memory is unmapped or protected:  1 its caller counts up the epoch  2 membarrier  3 it empties lines of
//    that memory, of all threads  4 each thread that sees another epoch in a slow path gives up all that it has. A thread that fills
//    a line reads the epoch afterwards, so that it sees step 1, or step 3 sees its line
//
// What threads have stays pinned while they wait, as in the paper, until they end. A loop's task is not suspended when it misses
// here. fork is refused (ENOTSUP): a child would need the pins of threads that it does not have.
#pragma once
#include <cstdint>

namespace spill {

struct Thread;

// Has any thread translated in this way?
bool satc_is_used();

// Invalidates memory that is unmapped or protected (invariant 3). The calling thread gives up what it has, unless a
// handler runs. Cost: a load if nobody translates in this way.
void satc_invalidate(uint64_t address, uint64_t bytes);
// The calling thread gives up what it has, unless a handler runs.
void satc_give_up();

// satc_leave: the thread has ended, or is about to, and gets no caches any more. satc_reuse: its record is another thread's now.
void satc_leave(Thread& thread);
void satc_reuse(Thread& thread);

// How many pages are pinned here now; and how many of them in the partition that has the most.
uint64_t satc_pinned_count();
uint64_t satc_most_pinned_in_partition();

// Sets the statistics to what was counted so far.
void count_satc();

}  // namespace spill
