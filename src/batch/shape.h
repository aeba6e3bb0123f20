// Shape: what the records and buckets of a table look like. The terms of src/batch:
//
//   record   a key and a value, side by side, of fixed size
//   bucket   some cache lines with as many records as fit: what is locked, searched and written as a unit
//   home     the bucket that a key belongs to
//   tag      a byte of a key's hash, kept outside the buckets
//
//   record   | key | value |
//   bucket   | record 0 | record 1 | ...        | unused |           begins at a cache line
//   head     | lock | reach: 4 bits | count: 7 bits |                16 bits; heads lie in an array of their own
//
//   count   how many records the bucket has; they are in its first slots
//   reach   the records of keys whose home this is lie in this bucket, or in one of the next `reach` buckets
// A locked head has the value kLocked: only the thread that has locked it knows its count and reach, and only that thread changes the bucket. (The
// thesis has a lock for each bucket as well; its buckets are always full. Cache-aware batch update, section 2.2.1.)
#pragma once
#include <cstdint>

#include "base/error.h"
#include "base/ids.h"

namespace batch {

inline constexpr uint32_t kMinKeyBytes = 4, kMaxKeyBytes = 16;
inline constexpr uint32_t kMinRecordBytes = 8, kMaxRecordBytes = 64;
inline constexpr uint32_t kMinBucketBytes = 64, kMaxBucketBytes = 512;
inline constexpr uint32_t kMaxSlots = kMaxBucketBytes / kMinRecordBytes;
static_assert(kMaxSlots == 64);  // a word has a bit for each slot

struct Shape {
  uint32_t key_bytes = 0;
  uint32_t value_bytes = 0;
  uint32_t bucket_bytes = 0;  // a multiple of base::kLineBytes

  constexpr uint32_t record_bytes() const { return key_bytes + value_bytes; }
  constexpr uint32_t slots() const { return bucket_bytes / record_bytes(); }
  constexpr uint32_t lines() const { return bucket_bytes / base::kLineBytes; }
};

// Checks whether there can be a table of such records; does not look at bucket_bytes. Errors: EINVAL; the message says what is allowed.
base::Expected<void> check_records(const Shape& shape, uint64_t records, uint64_t key_space);

struct Head {
  static constexpr uint16_t kLocked = 1 << 15;
  static constexpr uint32_t kMaxReach = 15;

  uint32_t count = 0;
  uint32_t reach = 0;

  static constexpr Head of(uint16_t word) { return {word & 0x7fu, word >> 7 & kMaxReach}; }
  constexpr uint16_t word() const { return static_cast<uint16_t>(count | reach << 7); }
};

}  // namespace batch
