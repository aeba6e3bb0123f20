// Bit maps: bit i of an array of 64-bit words, each word's lowest bit first.
//
// Thread contract: none of its own; the array's owner locks it. Cost: inline.
#pragma once
#include <cstdint>

namespace base {

constexpr bool has_bit(const uint64_t* words, uint64_t i) { return (words[i / 64] >> (i % 64) & 1) != 0; }
constexpr void set_bit(uint64_t* words, uint64_t i) { words[i / 64] |= uint64_t{1} << (i % 64); }
constexpr void clear_bit(uint64_t* words, uint64_t i) { words[i / 64] &= ~(uint64_t{1} << (i % 64)); }

}  // namespace base
