// For tests and fuzzers of a store's parts: the identity of a store that was never made, and its free segments.
#pragma once
#include "kv/media/format.h"

namespace kv {

inline Secret test_secret() {
  Secret secret;
  for (size_t i = 0; i < kSecretBytes; ++i) secret.bytes[i] = static_cast<unsigned char>(7 * i + 1);
  return secret;
}

// Segments have 1 MiB, which is 2,048 grains.
inline Identity test_identity(uint32_t segments) {
  return {.store_id = 0x1122334455667788,
          .secret = test_secret(),
          .geometry = {.capacity_bytes = kSegmentsOffset + (uint64_t{segments} << 20),
                       .grain_bytes = 512,
                       .segment_bytes = 1 << 20,
                       .segment_count = segments,
                       .spare_percent = 10}};
}

// Makes a segment of the medium free: as making a store leaves it, and giving a segment back.
inline void free_segment(const Identity& identity, uint64_t segment, uint64_t generation,
                         std::span<std::byte> medium) {
  for (const uint64_t offset : identity.geometry.header_offsets(segment))
    write_segment_header(identity, {.generation = generation, .state = SegmentState::kFree},
                         medium.subspan(offset, identity.geometry.grain_bytes));
}

}  // namespace kv
