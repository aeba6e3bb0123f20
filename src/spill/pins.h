// Pins: how the runtime keeps a page in its frame across a system call. Declared here for access.cc; the
// runtime has them in pins.cc, tests of the interceptors others (spill/testing).
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "spill/protection.h"

namespace spill {

// Makes the OS page of `address` resident and pins it; the result is the raw address of `address`,
// valid to the end of its OS page until unpin_page_piece(). Counts: as many unpins as pins.
// What cannot be had (a page of a mapped file), is the kernel's, is not spilled, or does not allow what is needed: `address` itself, and
// nothing is pinned. Cost: may block and do I/O.
char* pin_page_piece(uint64_t address, Need need);
void unpin_page_piece(uint64_t address);

// [address, address + bytes) is about to be pinned piece by piece: servers load what is missing of it together.
// REQUIRES: in_range(address).
void will_pin(uint64_t address, uint64_t bytes, Need need);

// Fork: how often a page is pinned that the kernel does not store to meanwhile, by the program (standing_pins.h) or for a
// system call of this thread's that a handler interrupted; and in the child, where nothing is pinned at first, pins all that again.
uint32_t pins_of_this_thread(base::PageId page);
void pin_again_after_fork();

// OS pages that one call may keep pinned, at least 1.
size_t pin_allowance();

}  // namespace spill
