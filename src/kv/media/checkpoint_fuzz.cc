// Fuzzes the readers of checkpoint_format.h, and restoring an index from images. The first byte says what the others are: a piece; a piece whose
// checks are corrected first; a header and slots (2 bytes of number, 8 of entry) from which a table's piece is made, since such a piece is longer
// than inputs are; images for one index.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "base/check.h"
#include "kv/index/index.h"
#include "kv/media/checkpoint_format.h"
#include "kv/testing/test_identity.h"
#include "kv/testing/test_restore.h"

namespace {

using namespace kv;

Identity identity_of_the_store() {
  return {.store_id = 1, .secret = test_secret(), .geometry = {64 << 20, 512, 1 << 20, 63, 10}};
}

uint64_t check_of(const Identity& identity, const void* from, size_t length) {
  return XXH3_64bits_withSecret(from, length, identity.secret.bytes, kSecretBytes);
}

void make_right(const Identity& identity, std::vector<std::byte>& bytes) {
  PieceHeader header;
  memcpy(&header, bytes.data(), sizeof header);
  header.store_id = identity.store_id;
  memcpy(&header.magic, "spkv ckp", sizeof header.magic);
  header.kind = static_cast<PieceKind>(static_cast<uint32_t>(header.kind) % 4);
  if (header.kind == PieceKind::kEnd) {
    header.count %= 300;
    header.bytes = sizeof header + 32 + 4 * uint64_t{header.count};
  }
  if (header.bytes >= sizeof header && header.bytes <= bytes.size())
    header.body_check = check_of(identity, bytes.data() + sizeof header, header.bytes - sizeof header);
  header.check = check_of(identity, &header, offsetof(PieceHeader, check));
  memcpy(bytes.data(), &header, sizeof header);
}

void make_table(std::vector<std::byte>& bytes) {
  PieceHeader header;
  memcpy(&header, bytes.data(), sizeof header);
  std::map<uint16_t, uint64_t> slots;
  for (size_t at = sizeof header; at + 10 <= bytes.size(); at += 10) {
    uint16_t slot = 0;
    memcpy(&slot, &bytes[at], sizeof slot);
    memcpy(&slots[slot % kSlots], &bytes[at + 2], sizeof(uint64_t));
  }
  header.kind = PieceKind::kTable;
  header.count = static_cast<uint32_t>(slots.size());
  header.bytes = sizeof header + kSlots / 8 + 8 * slots.size();
  bytes.assign(header.bytes, std::byte{0});
  memcpy(bytes.data(), &header, sizeof header);
  std::byte* at = &bytes[sizeof header + kSlots / 8 - 1] + 1;
  for (const auto& [slot, entry] : slots) {
    bytes[sizeof header + slot / 8] |= std::byte{1} << slot % 8;
    memcpy(at, &entry, sizeof entry);
    at += sizeof entry;
  }
}

// Writing what has been read gives the same bytes.
template <class What>
void expect_same(const Identity& identity, const PieceHeader& header, Bytes bytes, const What& write) {
  std::vector<std::byte> again(kMaxPieceBytes + identity.geometry.grain_bytes);
  CHECK_GE(write(again), header.bytes);
  CHECK_EQ(memcmp(again.data(), bytes.data(), header.bytes), 0);
}

void read_a_piece(const Identity& identity, Bytes bytes) {
  PieceHeader header;
  if (!read_piece_header(identity, bytes, header)) return;
  CHECK_LE(header.bytes, kMaxPieceBytes);
  CheckpointState state;
  if (read_piece(identity, header, bytes, state)) {
    CHECK(header.kind == PieceKind::kEnd);
    expect_same(identity, header, bytes,
                [&](auto& to) { return write_piece(identity, header.checkpoint, header.number, state, to); });
  }
  const auto image = std::make_unique<TableImage>();
  if (!read_piece(identity, header, bytes, *image)) return;
  CHECK(header.kind == PieceKind::kTable);
  expect_same(identity, header, bytes, [&](auto& to) {
    return write_piece(identity, header.checkpoint, header.number, header.table, *image, to);
  });
}

// Each image is a prefix, depths, a number of slots, and those slots.
void restore_images(const Identity& identity, Bytes bytes) {
  Index* const index = *Index::open(identity.geometry.address_bits());
  const auto image = std::make_unique<TableImage>();
  bool is_whole = true;
  while (is_whole && bytes.size() >= 10) {
    *image = {};
    image->shape.prefix = std::to_integer<uint64_t>(bytes[0]);
    memcpy(image->shape.depths, &bytes[1], kRegions);
    // Deep tables are rare, and would take up the fuzzer's time.
    for (uint8_t& depth : image->shape.depths) depth = depth < 128 ? depth % 8 : depth & 127;
    const size_t count = std::min(std::to_integer<size_t>(bytes[9]), (bytes.size() - 10) / 10);
    for (size_t at = 10; at < 10 + 10 * count; at += 10) {
      uint16_t slot = 0;
      memcpy(&slot, &bytes[at], sizeof slot);
      memcpy(&image->slots[slot % kSlots], &bytes[at + 2], sizeof(uint64_t));
    }
    bytes = bytes.subspan(10 + 10 * count);
    is_whole = restore_image(*index, *image).has_value();
  }
  if (is_whole && finish_restore(*index, [](uint64_t address, uint32_t) { return address % 8 != 0; }))
    index->verify();
  index->close();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const Identity identity = identity_of_the_store();
  std::vector<std::byte> bytes(size - 1);
  if (size > 1) memcpy(bytes.data(), data + 1, size - 1);
  const unsigned what = data[0] & 3;
  if (what == 3) {
    restore_images(identity, bytes);
    return 0;
  }
  if (what != 0) {
    bytes.resize(std::max(bytes.size(), sizeof(PieceHeader)));
    if (what == 2) make_table(bytes);
    make_right(identity, bytes);
  }
  read_a_piece(identity, bytes);
  return 0;
}
