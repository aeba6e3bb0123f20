// For tests of formats: reads numbers at their offsets, and verifies that a change of any byte is noticed.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "kv/media/format.h"

namespace kv {

// The little-endian number of `length` bytes at `offset`.
inline uint64_t number_at(Bytes bytes, size_t offset, size_t length) {
  uint64_t number = 0;
  for (size_t i = 0; i < length; ++i) number |= std::to_integer<uint64_t>(bytes[offset + i]) << 8 * i;
  return number;
}

// Expects reads(bytes) to be true, and false when a bit of any of the first `length` bytes is changed.
template <class Reads>
void expect_every_change_is_seen(std::vector<std::byte> bytes, size_t length, const Reads& reads) {
  ASSERT_TRUE(reads(bytes));
  for (size_t i = 0; i < length; ++i) {
    bytes[i] ^= std::byte{1} << i % 8;
    EXPECT_FALSE(reads(bytes)) << "byte " << i;
    bytes[i] ^= std::byte{1} << i % 8;
  }
}

}  // namespace kv
