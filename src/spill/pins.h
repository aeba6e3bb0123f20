// Pins: how the runtime keeps a page in its frame across a system call. Declared here for access.cc; the
// runtime defines them in pins.cc, tests of the interceptors have their own (spill/testing).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "spill/protection.h"

namespace spill {

// Makes the page of `address` resident and pins it, once for each call. Returns where `address` lies in its frame, valid to the end of its OS
// page until unpin_page_piece(). Returns `address` itself, and pins nothing, if the page cannot be had (of a mapped file), is the kernel's, is
// not spilled, or does not allow what is needed. Cost: may block and do I/O.
char* pin_page_piece(uint64_t address, Need need);
void unpin_page_piece(uint64_t address);

// [address, address + bytes) is about to be pinned piece by piece: servers load what is missing of it together.
// REQUIRES: in_range(address).
void will_pin(uint64_t address, uint64_t bytes, Need need);

// Fork. How often a page is pinned for a system call of this thread that a handler interrupted: the kernel does not store to such a page
// during the fork. The second call, in the child, where nothing is pinned at first, pins all of that again, and what the program has pinned
// (standing_pins.h).
uint32_t pins_of_this_thread(base::PageId page);
void pin_again_after_fork();

// Ends the pins of system calls that this thread made on `level` and above (thread.h), to which it will not return to unpin: handlers were left by
// a jump, or the thread was cancelled.
void end_left_pins(uint32_t level);

// Adds `count` to `counted`, the pages of pin_range or of keep_mapped, before they are loaded, which takes time. False, and nothing is added, if that
// would be too many: each of the two may have half of the frames. Together with satc.h's pins they must leave a quarter of them to threads that miss,
// and an eighth when the fault path has mapped as many pages as it may. REQUIRES: the lock of `counted`, and that the budget does not change meanwhile
// (freeze_budget): whoever lowers it afterwards leaves room for what is counted.
bool count_as_staying(std::atomic<uint64_t>& counted, uint64_t count);

// A system call is about to keep `wanted` OS pages pinned, at least 1. Returns how many it may, at least 1. The calls of all threads together may
// keep as many as a sixteenth of the frames hold, and one more each: a call that has some and waits for a frame may be waiting for others that do
// the same. Cost: a load for each partition.
size_t take_pins(size_t wanted);
// `count` of these have ended, or are not needed.
void give_pins_back(size_t count);

}  // namespace spill
