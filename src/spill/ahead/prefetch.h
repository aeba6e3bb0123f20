// Prefetching: threads of the program begin loads of pages that they will use, and do not wait for them. Three things tell which pages:
//
//   looks ahead   by compiled code, in loops whose addresses depend on what they load (compiler/loops/Prefetch.h)
//   misses        of compiled code that go in steps (streams.h), or upwards in hundreds of places (sequences.h); and the first use of what was
//                 loaded ahead of such steps, which is marked
//   requests      of the program: spill_prefetch, madvise
//
// A look ahead. While pages are missed (__spillway_look_ahead is not zero), compiled code calls a helper when it enters such a loop, and now
// and then inside:
//
//   begin(loop, position, left, pause)   is there anything to look at? null: no
//   while ((i = next()) >= 0)            iteration i from the present one
//     load(address, size, bits)          where to load what that iteration would load, if it is in memory; else its page is noted
//     note(address)                      that iteration will access this address
//
// What an iteration does only on a condition is not noted if load() had the values that the condition depends on, and it is false.
//
// The position up to which a loop was looked at is kept. So a loop that is entered again and again where it was left, as for the rows of a
// sparse matrix, looks at each iteration once, and continues beyond the end of its row; one that begins elsewhere each time looks at its own
// row only (runs.h). It looks ahead by twice the time of a load, counted in iterations. A look ends early when enough loads are under way; the next
// one is due when a quarter of the iterations that were looked at are done. The memory that a loop reads in order is loaded in windows, also while
// the loop rests (walk.h). After looks that found everything else in memory a loop rests, longer each time, but only until its thread misses pages in
// no order. What it found missing page after page is loaded in windows, too, and does not prevent a rest (streams.h).
//
// Invariants
//  1 nothing here waits for I/O, evicts, or fails
//  2 the address that load() returns may be loaded from: it lies in a frame that is held, or the iteration will load from it in any case, or the
//    compiler knows that it is valid memory
//  3 a thread has one look at a time: a handler that interrupts it has none
//
// Thread contract: a Prefetcher is its thread's. Memory, on top of the budget: three OS pages for each thread that misses, and a queue of loads for
// each that loads ahead, with 2 KiB for each load of the most that were ever under way.
#pragma once
#include <cstdint>

#include "base/ids.h"

namespace cache {
class LoadQueue;
}

namespace spill {

struct Thread;
class Prefetcher;

// The thread is gone: the loads that it has begun are completed when others poll.
void leave_prefetcher(Thread& thread);
// In a child of fork: drops the queue, which is its parent's.
void forget_prefetcher(Thread& thread);

// The thread, which runs no task, has missed the page of this address, and is about to load it or to wait for it.
void note_miss(Thread& thread, uint64_t address);
// The thread, which runs no task, uses this address. If it is the first use of a marked page, begins to load what comes next, and returns true.
bool note_use(Thread& thread, uint64_t address);

// Begins to load the pages of [address, address + bytes) that are on storage and not in memory, from the front, as many as there is room
// for. Returns how many bytes are in memory or on their way. REQUIRES: all of it is in_range.
uint64_t prefetch_range(uint64_t address, uint64_t bytes);

// Both are called by the background thread, about every millisecond. The first turns looks ahead on as long as pages are missed; the second
// opens a queue for the next thread that is about to load ahead.
void choose_whether_to_look_ahead();
void offer_queue();

}  // namespace spill
