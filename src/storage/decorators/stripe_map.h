// StripeMap: where each byte of a stripe lies. Units of the same size are dealt to the members in turn. Pure.
//
//   unit k of the stripe  is  unit k / members of member k % members
//
//   offset   0      U      2U     3U     4U     5U          of 3 members
//            | 0:0  | 1:0  | 2:0  | 0:U  | 1:U  | 2:U  |    member : offset there
//
// So the bytes of a stripe's range that are on one member are one range of that member.
#pragma once
#include <cstddef>
#include <cstdint>

namespace storage {

struct StripeMap {
  uint64_t unit_bytes;
  size_t member_count;

  struct Range {
    uint64_t begin_bytes;
    uint64_t end_bytes;  // past its last byte; same as begin_bytes: nothing
  };

  size_t member_of(uint64_t offset_bytes) const { return offset_bytes / unit_bytes % member_count; }

  // The stripe's offset of byte `offset_bytes` of a member.
  uint64_t offset_of(size_t member, uint64_t offset_bytes) const {
    return (offset_bytes / unit_bytes * member_count + member) * unit_bytes + offset_bytes % unit_bytes;
  }

  // The part of the stripe's [offset_bytes, offset_bytes + length_bytes) that is on `member`, in the member's offsets. REQUIRES:
  // length_bytes > 0.
  Range range_on(size_t member, uint64_t offset_bytes, uint64_t length_bytes) const {
    const uint64_t last_byte = offset_bytes + length_bytes - 1;
    const uint64_t first_unit = offset_bytes / unit_bytes, last_unit = last_byte / unit_bytes;
    // The first and the last of the range's units that are on the member.
    const uint64_t first = first_unit + (member + member_count - first_unit % member_count) % member_count;
    const uint64_t back = (last_unit % member_count + member_count - member) % member_count;
    if (first > last_unit || back > last_unit - first_unit) return {0, 0};
    const uint64_t last = last_unit - back;
    return {first / member_count * unit_bytes + (first == first_unit ? offset_bytes % unit_bytes : 0),
            last / member_count * unit_bytes + (last == last_unit ? last_byte % unit_bytes + 1 : unit_bytes)};
  }
};

}  // namespace storage
