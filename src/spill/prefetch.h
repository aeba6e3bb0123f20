// Pages that are loaded ahead of use by threads of the program, without waiting: what compiled code looks ahead to, and what the
// program asks for (spill_prefetch, madvise).
//
// Compiled code looks ahead in loops whose addresses depend on what they load (compiler/loops/Prefetch.h): while pages are missed
// (__spillway_look_ahead is not zero), it calls a helper now and then, and when it enters the loop:
//
//   begin(loop, position, left, pause)   is there anything to look at? null: no
//   while ((i = next()) >= 0)            iterations from the present one on
//     load(address, size, bits)          where to load what the iteration would load, if that is in memory; else its page is noted
//     note(address)                      the iteration will access this
//
// How far: what is looked at is kept for each loop as the position up to which it was, so that loops that are entered again and
// again where they left off, as the rows of a sparse matrix, look at everything once. The distance is twice what loads take
// over what an iteration takes, and a look ends when enough loads are under way; the next one is due when a quarter of what
// was looked at is used up. What lies in order is loaded many pages at a time, also while the loop rests (walk.h). A loop of which nothing else was missing is left alone for
// a while, longer each time, but not while its thread misses pages that lie in no order (streams.h).
//
// Misses of compiled code that go in steps are loaded ahead of without its help (streams.h), and those that go upwards in hundreds of
// places (sequences.h).
//
// Invariants
//  1 nothing here waits for I/O, evicts, or fails
//  2 what load() gives is safe to load: memory of a frame that is held, or what the iteration loads whatever happens
//  3 one look at a time: a handler that interrupts it looks at nothing
//
// Thread contract: of Prefetcher, its thread. Memory: three OS pages for each thread that misses, and a queue of loads for each that
// loads ahead.
#pragma once
#include <cstdint>

#include "base/ids.h"

namespace cache {
class LoadQueue;
}

namespace spill {

struct Thread;
class Prefetcher;

// The thread is gone: what it began ends when others poll.
void leave_prefetcher(Thread& thread);
// In a child of fork: the queue is its parent's.
void forget_prefetcher(Thread& thread);

// Compiled code of the thread, which runs no task, is about to load the page of this address, or to wait for it.
void note_miss(Thread& thread, uint64_t address);

// Begins to load what of [address, address + bytes) is on storage and not in memory: as much as there is room for. Returns how
// many bytes, from the front, need nothing more. REQUIRES: in_range(address) and all of it.
uint64_t prefetch_range(uint64_t address, uint64_t bytes);

// Of whoever works in the background, about every millisecond: compiled code looks ahead while pages are missed, and threads
// that are about to load ahead get their queues.
void choose_whether_to_look_ahead();
void offer_queue();

}  // namespace spill
