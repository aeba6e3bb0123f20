// For tests: a copy of a store's medium, in which a test finds records, headers and summaries, and damages them.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "kv/media/format.h"

namespace kv {

class StoreImage {
 public:
  // `medium` is all that the store's device holds.
  explicit StoreImage(std::vector<std::byte> medium) : bytes(std::move(medium)) {
    auto read = read_superblock(Bytes(bytes).first(kSuperblockBytes), bytes.size());
    if (read) identity = *read;
  }

  struct Place {
    uint32_t segment = 0;
    uint64_t offset = 0;  // of the record
    Record record;        // refers to `bytes`
  };
  // The key's record with the highest sequence.
  std::optional<Place> newest(std::string_view key) const {
    std::optional<Place> best;
    for_each_record([&](const Place& place) {
      if (place.record.key == key &&
          (!best || place.record.header.sequence() > best->record.header.sequence()))
        best = place;
    });
    return best;
  }
  // Calls function(place) for each record whose checksums are right.
  template <class Function>
  void for_each_record(Function&& function) const {
    for (uint32_t segment = 0; segment < identity.geometry.segment_count; ++segment) {
      const SegmentHeader header = header_of(segment);
      if (header.state != SegmentState::kUsed) continue;
      const uint64_t begin = identity.geometry.segment_offset(segment);
      for (uint64_t at = begin; at < begin + identity.geometry.segment_bytes;
           at += identity.geometry.grain_bytes) {
        Place place = {.segment = segment, .offset = at, .record = {}};
        const Bytes rest = Bytes(bytes).subspan(at, begin + identity.geometry.segment_bytes - at);
        if (read_record(identity.secret, header.generation, rest, place.record) == Reading::kWhole)
          function(place);
      }
    }
  }

  SegmentHeader header_of(uint32_t segment) const {
    SegmentHeader header;
    const Bytes from = Bytes(bytes).subspan(begin_of(segment), sizeof header);
    return read_segment_header(identity, from, header) ? header : SegmentHeader{};
  }
  uint64_t begin_of(uint32_t segment) const { return identity.geometry.segment_offset(segment); }
  uint64_t end_of(uint32_t segment) const { return identity.geometry.segment_offset(segment + 1); }
  uint64_t last_grain_of(uint32_t segment) const { return end_of(segment) - identity.geometry.grain_bytes; }
  // The offset at which the segment's summary begins; nothing: it has none.
  std::optional<uint64_t> summary_of(uint32_t segment) const {
    SegmentFooter footer;
    const Bytes last = Bytes(bytes).subspan(last_grain_of(segment), identity.geometry.grain_bytes);
    if (!read_footer(identity, header_of(segment).generation, last, footer)) return std::nullopt;
    return end_of(segment) -
           uint64_t{summary_grains(identity.geometry, footer.entry_count)} * identity.geometry.grain_bytes;
  }
  // The first segment in this state; nothing: there is none.
  std::optional<uint32_t> first(SegmentState state) const {
    for (uint32_t segment = 0; segment < identity.geometry.segment_count; ++segment)
      if (header_of(segment).state == state) return segment;
    return std::nullopt;
  }

  void flip(uint64_t offset) { bytes[offset] ^= std::byte{0x10}; }

  std::vector<std::byte> bytes;
  Identity identity;
};

}  // namespace kv
