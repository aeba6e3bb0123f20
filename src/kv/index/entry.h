// Entry: what the index stores for a record, in 8 bytes. (uDepot, section 4.2)
//
//   63            .. | 15+A ..  | 15 .. 14+A | 14 .. 7 | 6 .. 0 |
//   tag: 49-A bits             | address, A | size    | offset |       all zeros: a free slot
//
//   offset   how far the slot is behind the entry's home, the slot that its hash chooses
//   size     the record's grains, as a floating-point number of 8 bits (size_code)
//   address  the record's first grain. The store's capacity decides its width A
//   tag      the hash bits that follow those that chose table and home, the next one lowest, terminated by a 1
//
// When the index doubles, one more bit of the hash chooses the table. That bit is taken from the tag, which is then a bit shorter, so no key has to be
// read. Entries made later begin with a whole tag. An entry with no bits left matches every key of its home, and growth cannot move it.
#pragma once
#include <bit>
#include <cstdint>

namespace kv {

inline constexpr unsigned kOffsetBits = 7;
inline constexpr unsigned kSizeBits = 8;
// An entry lies in one of this many slots, from its home on.
inline constexpr uint32_t kNeighbourhood = 1u << kOffsetBits;

// Sizes in grains as 8 bits: exact below 16, rounded up by an eighth at most above, so that one read brings the whole record.
namespace size_code {

inline constexpr uint64_t kMaxGrains = uint64_t{15} << 30;

constexpr uint64_t grains(uint32_t code) {
  const uint32_t exponent = code >> 3, digits = code & 7;
  return exponent == 0 ? digits : uint64_t{8 + digits} << (exponent - 1);
}
// Is the size exactly what the code says, rather than at most that?
constexpr bool is_exact(uint32_t code) { return code < 16; }
// The smallest code whose grains() is at least `grains`. REQUIRES: grains <= kMaxGrains.
constexpr uint32_t of(uint64_t grains) {
  if (grains < 16) return static_cast<uint32_t>(grains);
  const unsigned shift = static_cast<unsigned>(std::bit_width(grains)) - 4;
  // 8 to 16; a 16 carries over to become 8 at the next exponent.
  const uint64_t digits = (grains + (uint64_t{1} << shift) - 1) >> shift;
  return static_cast<uint32_t>(8 * shift + digits);
}

}  // namespace size_code

// The layout of a store's entries. A value type, passed by copy.
class EntryFormat {
 public:
  // Within these limits a tag has enough bits for growth, and its terminating 1 is in the entry's upper half: a slot whose upper half is zero is free.
  static constexpr unsigned kMinAddressBits = 18;
  static constexpr unsigned kMaxAddressBits = 40;

  // REQUIRES: kMinAddressBits <= address_bits <= kMaxAddressBits.
  explicit constexpr EntryFormat(unsigned address_bits)
      : tag_shift_(kOffsetBits + kSizeBits + address_bits) {}

  constexpr unsigned tag_bits() const { return 64 - tag_shift_; }
  constexpr uint64_t addresses() const { return uint64_t{1} << (tag_shift_ - kOffsetBits - kSizeBits); }

  static constexpr uint32_t offset(uint64_t entry) { return entry & (kNeighbourhood - 1); }
  static constexpr uint64_t with_offset(uint64_t entry, uint32_t offset) {
    return (entry & ~uint64_t{kNeighbourhood - 1}) | offset;
  }
  static constexpr uint32_t size(uint64_t entry) { return (entry >> kOffsetBits) & ((1u << kSizeBits) - 1); }
  constexpr uint64_t address(uint64_t entry) const {
    return (entry >> (kOffsetBits + kSizeBits)) & (addresses() - 1);
  }
  constexpr uint64_t tag(uint64_t entry) const { return entry >> tag_shift_; }

  // An entry that lies at its home. Its tag holds as much as fits of `rest`, the hash bits that have chosen neither table nor home.
  constexpr uint64_t make(uint64_t rest, uint64_t address, uint32_t size) const {
    return with_tag(address << (kOffsetBits + kSizeBits) | uint64_t{size} << kOffsetBits, whole_tag(rest));
  }
  // Could the entry belong to a key whose hash has this `rest`? REQUIRES: it is not a free slot.
  constexpr bool matches(uint64_t entry, uint64_t rest) const {
    const uint64_t own = tag(entry);
    return ((own ^ rest) & (std::bit_floor(own) - 1)) == 0;
  }

  // For growth: the tag's next bit, and the entry without it. REQUIRES: has_bit().
  constexpr bool has_bit(uint64_t entry) const { return tag(entry) > 1; }
  constexpr bool bit(uint64_t entry) const { return (tag(entry) & 1) != 0; }
  constexpr uint64_t without_bit(uint64_t entry) const { return with_tag(entry, tag(entry) >> 1); }
  // For shrinking: the entry with one more bit in front of its tag. A whole tag loses its last bit.
  constexpr uint64_t with_bit(uint64_t entry, bool bit) const {
    const uint64_t longer = tag(entry) << 1 | (bit ? 1 : 0);
    return with_tag(entry, longer >> tag_bits() == 0 ? longer : whole_tag(longer));
  }

 private:
  constexpr uint64_t whole_tag(uint64_t rest) const {
    const uint64_t end = uint64_t{1} << (tag_bits() - 1);
    return (rest & (end - 1)) | end;
  }
  constexpr uint64_t with_tag(uint64_t entry, uint64_t tag) const {
    return (entry & ((uint64_t{1} << tag_shift_) - 1)) | tag << tag_shift_;
  }

  unsigned tag_shift_;
};

}  // namespace kv
