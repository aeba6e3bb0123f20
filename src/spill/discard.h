// Forgetting the content of spilled memory, for the heap and for munmap, madvise and their kin.
#pragma once
#include <cstdint>

namespace spill {

// [address, address + bytes) reads as zeros afterwards. Whole pages are dropped, with their storage; the
// parts of pages at the ends are zeroed. REQUIRES: allocated. May block.
void discard_memory(uint64_t address, uint64_t bytes);

// discard_memory; also removes any mapping at the pages' own addresses, and frees the addresses.
void discard_and_free(uint64_t address, uint64_t bytes);

}  // namespace spill
