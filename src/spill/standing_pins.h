// Pages that the program has pinned by spill_pin, until it unpins them. A page that several ranges have is pinned once
// (cache::Partition::stay).
//
// Thread contract: any thread. Bounds: kMaxPinnedRanges ranges, half of the frames.
#pragma once
#include <cstdint>

#include "base/ids.h"

namespace spill {

inline constexpr uint32_t kMaxPinnedRanges = 256;

// Brings the pages of [address, address + bytes) into memory, where they stay until unpin_range has been called as often for the same range.
// Returns 0, or an errno and pins nothing: ENOMEM if there are too many ranges, more than half of the frames would be pinned, or too few
// would be left beside others' pins (count_as_staying); else the error of a load that failed. REQUIRES: all of it is spilled memory. May block and do
// I/O.
int pin_range(uint64_t address, uint64_t bytes);
// Returns 0, or EINVAL if that range was not pinned.
int unpin_range(uint64_t address, uint64_t bytes);
// Ends the pins of all ranges that touch [address, address + bytes): it is about to be other memory.
void end_pins_of(uint64_t address, uint64_t bytes);
// How many pages are pinned; one that two ranges have counts twice.
uint64_t standing_pin_count();

// For fork. Between the first two nothing is pinned or unpinned. The third pins all of these pages again in the child, where nothing is
// pinned at first.
void freeze_standing_pins();
void thaw_standing_pins();
void pin_standing_again();

}  // namespace spill
