// Shape: what the records and buckets of a table look like. The words of src/batch:
//
//   record   a key and a value, side by side, of fixed size
//   bucket   some lines of the CPU's cache with as many records as fit: the unit that is locked, searched and written
//   home     the bucket that a key belongs to
//   tag      a byte of a key's hash, kept beside the buckets
//
//   record   | key | value |
//   bucket   | record 0 | record 1 | ...        | what is left |     begins at a line
//   head     | lock | reach: 4 bits | count: 7 bits |                16 bits, in an array of their own
//
//   count   how many records the bucket has, which are in its first places
//   reach   keys whose home this is lie in it, or in one of so many buckets behind it
// A locked head is kLocked and nothing else: only the thread that has locked it knows what it was, and only that thread changes the bucket. (The
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
static_assert(kMaxSlots == 64);  // a word has a bit for each

struct Shape {
  uint32_t key_bytes = 0;
  uint32_t value_bytes = 0;
  uint32_t bucket_bytes = 0;  // a multiple of base::kLineBytes

  constexpr uint32_t record_bytes() const { return key_bytes + value_bytes; }
  constexpr uint32_t slots() const { return bucket_bytes / record_bytes(); }
  constexpr uint32_t lines() const { return bucket_bytes / base::kLineBytes; }
};

// Whether there can be a table of such records; buckets are not looked at. Errors: EINVAL, with what may be.
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
