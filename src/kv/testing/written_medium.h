// For tests: a medium that the test writes segment by segment, as a killed process leaves it, and a start on that medium.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kv/recovery/recovery.h"
#include "kv/testing/test_identity.h"
#include "storage/backends/memory.h"

namespace kv {

class WrittenMedium {
 public:
  struct Written {
    std::string key;
    uint64_t sequence;
    RecordKind kind = RecordKind::kValue;
  };

  // All segments are free.
  explicit WrittenMedium(uint32_t segment_count)
      : identity(test_identity(segment_count)),
        device(*storage::make_memory_device(identity.geometry.capacity_bytes)) {
    for (uint32_t i = 0; i < segment_count; ++i) free_segment(identity, i, 1, all());
  }
  ~WrittenMedium() {
    log.close();
    if (index != nullptr) index->close();
    device->close();
  }
  WrittenMedium(const WrittenMedium&) = delete;
  WrittenMedium& operator=(const WrittenMedium&) = delete;

  std::span<std::byte> all() {
    auto* const memory = reinterpret_cast<std::byte*>(const_cast<char*>(device->whereabouts().memory));
    return {memory, identity.geometry.capacity_bytes};
  }
  std::span<std::byte> grains(uint32_t segment, uint64_t first, uint64_t count) {
    const Geometry& geometry = identity.geometry;
    return all().subspan(geometry.segment_offset(segment) + first * geometry.grain_bytes,
                         count * geometry.grain_bytes);
  }
  // Writes a segment with these records, each of one grain. Void records are in the segment's summary only.
  void write(uint32_t segment, uint64_t generation, const std::vector<Written>& records, bool is_sealed) {
    const SegmentHeader header = {.generation = generation, .state = SegmentState::kUsed};
    write_segment_header(identity, header, grains(segment, 0, 1));
    std::vector<SummaryEntry> entries;
    for (const Written& written : records) {
      const auto grain = static_cast<uint32_t>(entries.size() + 1);
      const uint64_t sequence_and_kind = with_kind(written.sequence, written.kind);
      entries.push_back({hash_key(identity.secret, written.key), sequence_and_kind, grain, 1});
      if (written.kind != RecordKind::kVoid)
        write_record(identity.secret,
                     {.generation = generation, .sequence_and_kind = sequence_and_kind, .expiry_and_key = 0},
                     written.key, 0, grains(segment, grain, 1));
    }
    if (!is_sealed) return;
    SegmentFooter footer = {.generation = generation, .sealed_generation = generation};
    footer.used_grains = static_cast<uint32_t>(entries.size() + 1);
    describe(entries, footer);
    const uint32_t count = summary_grains(identity.geometry, entries.size());
    const auto summary = grains(segment, identity.geometry.segment_grains() - count, count);
    memcpy(summary.data(), entries.data(), entries.size() * sizeof(SummaryEntry));
    write_summary(identity, footer, summary);
  }
  void sealed(uint32_t segment, uint64_t generation, const std::vector<Written>& records) {
    write(segment, generation, records, true);
  }
  void open(uint32_t segment, uint64_t generation, const std::vector<Written>& records) {
    write(segment, generation, records, false);
  }
  RecoveryReport start() {
    EXPECT_TRUE(log.open(identity, 1));
    const auto recovered = recover(*device, identity, log, index);
    EXPECT_TRUE(recovered) << recovered.error().message;
    return recovered ? recovered->report : RecoveryReport{};
  }
  Segment::State state_of(uint32_t segment) { return log.segment(segment).state.load(); }
  // The segment of the record that the index has for the key; the number of segments: the index has none.
  uint64_t segment_of(const std::string& key) {
    const Location found = index->find(hash_key(identity.secret, key).low);
    return found.found ? identity.geometry.segment_of(found.address) : identity.geometry.segment_count;
  }

  Identity identity;
  storage::Device* device;
  Log log;
  Index* index = nullptr;
};

}  // namespace kv
