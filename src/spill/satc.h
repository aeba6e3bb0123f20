// Translation by software address translation caches (spillcc -fspill-translation=satc), as TriCache has it (section 3.3): a Direct
// and a Private one of each thread (satc_levels.h) over the cache of all, where a page in Private is pinned. For comparison with the
// table, which goes on beside it: interceptors, accesses across an edge and other libraries translate by the table and its slots.
//
//   compiled code, Direct ──miss──► spillway_satc_quick, Private ──miss──► spillway_satc_blocking, Cache::pin
//
// Invariants
//  1 a translation is used for one access, before its thread's next one. Only that next one may take the page's pin away, so
//    whoever evicts need not know of the access
//  2 three quarters of the frames that the budget leaves a partition at most are pinned here, half where they are few, less what else
//    is; then a page is bypassed: translated by the table and a slot of its own, and kept in neither cache. So are pages in handlers
//    of signals, which interrupt accesses; those of mapped files, which others take away; and protected ones
//  3 invalidation, when memory is unmapped or protected:  1 its caller counts up the epoch  2 membarrier  3 it empties lines of
//    that memory, of all threads  4 each thread that sees another epoch in a slow path gives up all that it has. A thread that
//    fills a line looks at the epoch afterwards, so that it sees 1 or its line is seen by 3
//
// What threads have stays pinned while they wait, as in the paper, and goes when they end. A task of a loop is not suspended where it
// misses here. fork is refused (ENOTSUP): a child would need the pins of threads that it has not.
#pragma once
#include <cstdint>

namespace spill {

struct Thread;

// Has any thread translated so?
bool satc_is_used();

// Memory that is unmapped or protected: invariant 3. The calling thread gives up what it has, unless a handler runs.
// Cost: a load if nobody translates so.
void satc_invalidate(uint64_t address, uint64_t bytes);
// The calling thread gives up what it has, unless a handler runs.
void satc_give_up();

// The thread has ended, or is about to, and gets nothing any more; or its record is another's now.
void satc_leave(Thread& thread);
void satc_reuse(Thread& thread);

// Pages that are pinned here now.
uint64_t satc_pinned_count();

// Sets the statistics of what there was so far.
void count_satc();

}  // namespace spill
