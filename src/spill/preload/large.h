// Allocates memory of the spilled range, in whole OS pages. Allocated memory can be read and written; free memory cannot be
// accessed.
//
// Thread contract: any thread. REQUIRES of all: the calling thread blocks all signals.
#pragma once
#include <cstdint>

#include "base/ids.h"

namespace spill::preload {

inline uint64_t whole_pages(uint64_t bytes) { return base::round_up(bytes, base::kOsPageBytes); }

// Returns zeroed memory, or 0 when there is no room. REQUIRES: the alignment is a power of two.
uint64_t map_large(uint64_t bytes, uint64_t alignment);
// The same at exactly this address; false when part of it is taken, or the kernel cannot split another mapping.
bool map_large_at(uint64_t address, uint64_t bytes);
void unmap_large(uint64_t address, uint64_t bytes);
// Replaces what is there by zeros that can be read and written, while nobody else can be given the addresses. False when the kernel cannot
// split another mapping; then what is there is kept. REQUIRES: allocated.
bool renew_large(uint64_t address, uint64_t bytes);

// Resizes memory of `old_bytes` to `bytes` and keeps its content: in place if possible, else elsewhere if it may move.
// Moved memory can be read and written. 0 when there is no room; then nothing has changed.
uint64_t resize_large(uint64_t address, uint64_t old_bytes, uint64_t bytes, bool may_move);

}  // namespace spill::preload
