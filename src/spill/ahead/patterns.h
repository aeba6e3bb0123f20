// What the program said of how it will access memory (madvise): MADV_SEQUENTIAL, MADV_RANDOM, MADV_NORMAL, by 2 MiB of addresses.
//
// What is said of a part of 2 MiB counts for the whole. Thread contract: any thread. Memory: a byte for each 2 MiB of
// which something was said, once anything was.
#pragma once
#include <cstdint>

#include "spill/ahead/streams.h"

namespace spill {

// REQUIRES: below 2^kAddressBits. What there is no memory for is not heeded.
void set_pattern(uint64_t address, uint64_t bytes, Pattern pattern);
// The addresses are given back: of what is whole of them nothing was said.
void forget_pattern(uint64_t address, uint64_t bytes);
// Cost: a load while nothing was ever said.
Pattern pattern_at(uint64_t address);

}  // namespace spill
