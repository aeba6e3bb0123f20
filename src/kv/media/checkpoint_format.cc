#include "kv/media/checkpoint_format.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/ids.h"
#include "kv/index/entry.h"

namespace kv {
namespace {

constexpr uint64_t kPieceMagic = 0x706b6320766b7073;  // "spkv ckp"
constexpr size_t kWordSlots = 64;
constexpr size_t kWords = kSlots / kWordSlots;
constexpr size_t kBitmapBytes = kSlots / 8;
constexpr size_t kSlotsOffset = sizeof(PieceHeader) + kBitmapBytes;

// The end's body; on the medium, `unsealed` is as long as there are segments.
struct EndBody {
  uint64_t generation = 0;
  uint64_t next_sequence = 0;
  uint64_t entry_count = 0;
  uint32_t headless_count = 0;
  uint32_t ready_count = 0;
  uint32_t unsealed[CheckpointState::kMaxUnsealed] = {};
};
static_assert(offsetof(EndBody, unsealed) == 32);

constexpr uint64_t end_bytes(uint32_t unsealed_count) {
  return sizeof(PieceHeader) + offsetof(EndBody, unsealed) + uint64_t{unsealed_count} * sizeof(uint32_t);
}
constexpr uint64_t table_bytes(uint32_t slot_count) {
  return kSlotsOffset + uint64_t{slot_count} * sizeof(uint64_t);
}

uint64_t body_check_of(const Secret& secret, Bytes piece, uint64_t bytes) {
  return check_of(secret, piece.data() + sizeof(PieceHeader), bytes - sizeof(PieceHeader));
}

// Adds header and checks to a body that is there. Returns the piece's bytes, including the zeros that fill its last grain.
size_t finish(const Identity& identity, PieceHeader header, std::span<std::byte> to) {
  const size_t whole_bytes = identity.geometry.grains(header.bytes) * uint64_t{identity.geometry.grain_bytes};
  std::ranges::fill(to.subspan(header.bytes, whole_bytes - header.bytes), std::byte{0});
  header.magic = kPieceMagic;
  header.store_id = identity.store_id;
  header.body_check = body_check_of(identity.secret, to, header.bytes);
  header.check = check_of(identity.secret, &header, offsetof(PieceHeader, check));
  memcpy(to.data(), &header, sizeof header);
  return whole_bytes;
}

// A bit for each of 64 slots: 1 if it is not free.
uint64_t used_slots(const uint64_t* slots) {
  uint64_t used = 0;
  for (unsigned i = 0; i < kWordSlots; ++i) used |= uint64_t{slots[i] != 0} << i;
  return used;
}

bool is_whole(const Identity& identity, const PieceHeader& header, Bytes from) {
  return from.size() >= header.bytes &&
         header.body_check == body_check_of(identity.secret, from, header.bytes);
}

}  // namespace

TableShape PieceHeader::shape() const {
  TableShape shape{.prefix = prefix};
  std::ranges::copy(depths, shape.depths);
  return shape;
}

uint64_t table_piece_bytes(const Geometry& geometry, uint32_t slot_count) {
  return geometry.grains(table_bytes(slot_count)) * geometry.grain_bytes;
}

size_t write_piece(const Identity& identity, uint64_t checkpoint, uint32_t number, uint32_t table,
                   const TableImage& image, std::span<std::byte> to) {
  CHECK(image.shape.is_possible());
  uint64_t bitmap[kWords];
  uint32_t count = 0;
  for (size_t word = 0; word < kWords; ++word) {
    bitmap[word] = used_slots(image.slots + word * kWordSlots);
    count += static_cast<uint32_t>(std::popcount(bitmap[word]));
  }
  if (to.size() < table_piece_bytes(identity.geometry, count)) return 0;
  memcpy(to.data() + sizeof(PieceHeader), bitmap, sizeof bitmap);
  std::byte* at = to.data() + kSlotsOffset;
  for (size_t word = 0; word < kWords; ++word)
    for (uint64_t left = bitmap[word]; left != 0; left &= left - 1, at += sizeof(uint64_t))
      memcpy(at, &image.slots[word * kWordSlots + static_cast<size_t>(std::countr_zero(left))],
             sizeof(uint64_t));
  PieceHeader header = {.checkpoint = checkpoint,
                        .number = number,
                        .kind = PieceKind::kTable,
                        .table = table,
                        .count = count,
                        .prefix = image.shape.prefix,
                        .bytes = table_bytes(count)};
  std::ranges::copy(image.shape.depths, header.depths);
  return finish(identity, header, to);
}

size_t write_piece(const Identity& identity, uint64_t checkpoint, uint32_t number,
                   const CheckpointState& state, std::span<std::byte> to) {
  CHECK_LE(state.unsealed_count, CheckpointState::kMaxUnsealed);
  CHECK_LE(state.ready_count, state.unsealed_count);
  const PieceHeader header = {.checkpoint = checkpoint,
                              .number = number,
                              .kind = PieceKind::kEnd,
                              .count = state.unsealed_count,
                              .bytes = end_bytes(state.unsealed_count)};
  if (to.size() < identity.geometry.grains(header.bytes) * identity.geometry.grain_bytes) return 0;
  EndBody body = {.generation = state.generation,
                  .next_sequence = state.next_sequence,
                  .entry_count = state.entry_count,
                  .headless_count = state.headless_count,
                  .ready_count = state.ready_count};
  std::ranges::copy(state.unsealed, body.unsealed);
  memcpy(to.data() + sizeof header, &body, header.bytes - sizeof header);
  return finish(identity, header, to);
}

bool read_piece_header(const Identity& identity, Bytes from, PieceHeader& header) {
  if (from.size() < sizeof header) return false;
  memcpy(&header, from.data(), sizeof header);
  if (header.magic != kPieceMagic || header.store_id != identity.store_id ||
      header.check != check_of(identity.secret, &header, offsetof(PieceHeader, check)))
    return false;
  switch (header.kind) {
    case PieceKind::kTable:
      return header.count <= kSlots && header.bytes == table_bytes(header.count) &&
             header.shape().is_possible();
    case PieceKind::kEnd:
      return header.count <= CheckpointState::kMaxUnsealed && header.bytes == end_bytes(header.count) &&
             header.table == 0 && header.prefix == 0 &&
             std::ranges::all_of(header.depths, [](uint8_t depth) { return depth == 0; });
  }
  return false;
}

bool read_piece(const Identity& identity, const PieceHeader& header, Bytes from, TableImage& image) {
  if (header.kind != PieceKind::kTable || !is_whole(identity, header, from)) return false;
  const Geometry& geometry = identity.geometry;
  const EntryFormat format(geometry.address_bits());
  const uint64_t address_end = geometry.segment_count * geometry.segment_grains();
  const uint32_t size_max = size_code::of(geometry.record_grains_max());
  const std::byte* at = from.data() + kSlotsOffset;
  uint32_t left_count = header.count, strange_count = 0;
  for (size_t word = 0; word < kWords; ++word) {
    uint64_t left = 0;
    memcpy(&left, from.data() + sizeof header + word * sizeof left, sizeof left);
    const auto count = static_cast<uint32_t>(std::popcount(left));
    if (count > left_count) return false;
    left_count -= count;
    uint64_t* const slots = image.slots + word * kWordSlots;
    std::fill_n(slots, kWordSlots, 0);
    for (; left != 0; left &= left - 1, at += sizeof(uint64_t)) {
      uint64_t entry = 0;
      memcpy(&entry, at, sizeof entry);
      slots[std::countr_zero(left)] = entry;
      strange_count +=
          entry == 0 || format.address(entry) >= address_end || EntryFormat::size(entry) > size_max;
    }
  }
  image.shape = header.shape();
  return left_count == 0 && strange_count == 0;
}

bool read_piece(const Identity& identity, const PieceHeader& header, Bytes from, CheckpointState& state) {
  if (header.kind != PieceKind::kEnd || !is_whole(identity, header, from)) return false;
  EndBody body;
  memcpy(&body, from.data() + sizeof header, header.bytes - sizeof header);
  state = {.generation = body.generation,
           .next_sequence = body.next_sequence,
           .entry_count = body.entry_count,
           .unsealed_count = header.count,
           .ready_count = body.ready_count,
           .headless_count = body.headless_count};
  std::ranges::copy(body.unsealed, state.unsealed);
  return body.ready_count <= header.count &&
         std::ranges::all_of(std::span(state.unsealed).first(state.unsealed_count),
                             [&](uint32_t segment) { return segment < identity.geometry.segment_count; });
}

}  // namespace kv
