// Pages that the program has pinned by spill_pin, until it unpins them.
//
// Thread contract: any thread. Bounded: kMostRanges ranges, half of the frames.
#pragma once
#include <cstdint>

#include "base/ids.h"

namespace spill {

inline constexpr uint32_t kMostPinnedRanges = 256;

// Brings the pages of [address, address + bytes) into memory, where they stay until unpin_range of the same range, as often.
// Returns 0, ENOMEM (too many ranges, or half of the frames would be pinned, or three quarters with what satc.h pins), or what a load fails with; then nothing is pinned
// by it. REQUIRES: spilled memory, all of it. May block and do I/O.
int pin_range(uint64_t address, uint64_t bytes);
// EINVAL: that range was not pinned.
int unpin_range(uint64_t address, uint64_t bytes);
// Ends the pins of all ranges that touch [address, address + bytes): it is about to be other memory.
void end_pins_of(uint64_t address, uint64_t bytes);
// Pages that are pinned so, each as often as it is.
uint64_t standing_pin_count();

// Fork. Between the first and the second nothing is pinned or unpinned; how often a page is pinned by these, meanwhile; and
// in the child, where nothing is pinned at first, pins all again.
void freeze_standing_pins();
void thaw_standing_pins();
uint32_t standing_pins_of(base::PageId page);
void pin_standing_again();

}  // namespace spill
