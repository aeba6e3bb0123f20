// Fuzzes the readers of format.h. The first byte says which structure the others are; if its highest bit is set, the
// structure's check is corrected first, so that the code behind the check is reached too.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <vector>

#include "base/check.h"
#include "kv/media/format.h"
#include "kv/testing/test_identity.h"

namespace {

using namespace kv;

Identity identity_of_the_store() {
  return {.store_id = 1, .secret = test_secret(), .geometry = {64 << 20, 512, 1 << 20, 63, 10}};
}

// Stores at `at` the check of `length` bytes from `begin`, if all these bytes are there.
void set_check(std::vector<std::byte>& bytes, size_t begin, size_t length, size_t at, const Secret* secret) {
  if (begin + length > bytes.size() || at + 8 > bytes.size()) return;
  const uint64_t check = secret == nullptr
                             ? XXH3_64bits(&bytes[begin], length)
                             : XXH3_64bits_withSecret(&bytes[begin], length, secret->bytes, kSecretBytes);
  memcpy(&bytes[at], &check, sizeof check);
}

void read_a_superblock(std::vector<std::byte>& bytes, bool right) {
  if (right) set_check(bytes, 0, offsetof(Superblock, check), offsetof(Superblock, check), nullptr);
  const auto read = read_superblock(bytes, 1 << 30);
  if (!read) {
    CHECK(read.error().message[0] != 0);
    return;
  }
  const Geometry& geometry = read->geometry;
  CHECK_LE(geometry.segment_offset(geometry.segment_count), uint64_t{1} << 30);
  CHECK_LE(geometry.address_bits(), 40u);
  CHECK_GT(geometry.segment_grains(), 0u);
}

void read_a_header(const Identity& identity, std::vector<std::byte>& bytes, bool right) {
  if (right)
    set_check(bytes, 0, offsetof(SegmentHeader, check), offsetof(SegmentHeader, check), &identity.secret);
  SegmentHeader header;
  if (read_segment_header(identity, bytes, header)) CHECK_EQ(header.store_id, identity.store_id);
}

void read_a_summary(const Identity& identity, std::vector<std::byte>& bytes, bool right) {
  if (bytes.size() < 512) return;
  bytes.resize(bytes.size() / 512 * 512);
  const size_t begin = bytes.size() - sizeof(SegmentFooter);
  SegmentFooter footer;
  memcpy(&footer, &bytes[begin], sizeof footer);
  if (right) {
    const size_t entries_bytes = footer.entry_count * sizeof(SummaryEntry);
    if (entries_bytes <= begin)
      set_check(bytes, 0, entries_bytes, begin + offsetof(SegmentFooter, entries_check), &identity.secret);
    set_check(bytes, begin, offsetof(SegmentFooter, check), begin + offsetof(SegmentFooter, check),
              &identity.secret);
  }
  if (!read_footer(identity, footer.generation, Bytes(bytes).last(512), footer)) return;
  const auto entries = read_summary(identity, footer, bytes);
  CHECK(entries.empty() || entries.size() == footer.entry_count);
  uint64_t end = 1;
  for (const SummaryEntry& entry : entries) {
    CHECK_GE(entry.grain, end);
    end = uint64_t{entry.grain} + entry.grains;
    CHECK_LT(end, identity.geometry.segment_grains());
  }
}

void read_one_record(const Identity& identity, std::vector<std::byte>& bytes, bool right) {
  RecordHeader header = {};
  if (bytes.size() >= sizeof header) memcpy(&header, bytes.data(), sizeof header);
  if (right)
    set_check(bytes, 8, record_bytes(header.key_bytes(), header.value_bytes) - 8, 0, &identity.secret);
  Record record;
  if (read_record(identity.secret, header.generation, bytes, record) != Reading::kWhole) return;
  CHECK_LE(record.bytes(), bytes.size());
  CHECK_EQ(record.value.size(), record.header.value_bytes);
  move_record(identity.secret, ~header.generation, record.header.kind(), record.header.expiry(), bytes);
  CHECK(read_record(identity.secret, ~header.generation, bytes, record) == Reading::kWhole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const Identity identity = identity_of_the_store();
  std::vector<std::byte> bytes(size - 1);
  if (size > 1) memcpy(bytes.data(), data + 1, size - 1);
  const bool right = (data[0] & 0x80) != 0;
  switch (data[0] & 3) {
    case 0: read_a_superblock(bytes, right); break;
    case 1: read_a_header(identity, bytes, right); break;
    case 2: read_a_summary(identity, bytes, right); break;
    case 3: read_one_record(identity, bytes, right); break;
  }
  return 0;
}
