// How the program said that it will access memory (madvise): MADV_SEQUENTIAL, MADV_RANDOM, MADV_NORMAL, for each 2 MiB of addresses.
//
// Advice for a part of 2 MiB counts for the whole. Thread contract: any thread. Memory: a byte for each 2 MiB that advice was given
// for, from the first advice on.
#pragma once
#include <cstdint>

#include "spill/ahead/streams.h"

namespace spill {

// REQUIRES: below 2^kAddressBits. Ignored if there is no memory for it.
void set_pattern(uint64_t address, uint64_t bytes, Pattern pattern);
// The addresses are freed: forgets the patterns of whole 2 MiB among them.
void forget_pattern(uint64_t address, uint64_t bytes);
// Cost: a load as long as there was no advice.
Pattern pattern_at(uint64_t address);

}  // namespace spill
