// A checkpoint on the device, byte by byte (docs/formats/kv.md), and the only code that reads and writes it.
//
//   segment   | header (SegmentState::kCheckpoint), a grain | piece | piece | ... | unused |
//   piece     | header 80 bytes | body | zeros to the end of the grain |
//   body      of a table: 32,768 bits, a 1 for each slot that is not free | those slots, 8 bytes each
//             of the end: what recovery needs besides the index
//
// Invariants
//  1 A checkpoint has a number that no other one of this store has had, and each of its pieces carries it. Pieces are numbered from 0. None
//    crosses a segment's end
//  2 The last piece is the end, which is written when all others are durable. A checkpoint counts if its end, and all pieces before it, are there and
//    whole; the end's number is the count of those pieces
//
// Readers are pure functions of bytes that come from outside, and fuzzed (checkpoint_fuzz.cc). They do not refuse tables that no index can have:
// restoring an index does (index.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "kv/index/table_image.h"
#include "kv/media/format.h"

namespace kv {

enum class PieceKind : uint32_t { kTable = 1, kEnd = 2 };

struct PieceHeader {
  uint64_t magic = 0;
  uint64_t store_id = 0;
  uint64_t checkpoint = 0;  // its number
  uint32_t number = 0;      // the piece's, from 0
  PieceKind kind = PieceKind::kTable;
  uint32_t table = 0;  // the table's number in the index, for people; the end has 0
  uint32_t count = 0;  // of a table's slots that are not free, or of the end's segments
  uint64_t prefix = 0;
  uint8_t depths[kRegions] = {};  // with the prefix a TableShape; the end has zeros in both
  uint64_t bytes = 0;             // of header and body
  uint64_t body_check = 0;
  uint64_t check = 0;

  TableShape shape() const;
};
static_assert(sizeof(PieceHeader) == 80);

// What a checkpoint has besides the index's tables, as it was when the checkpoint began.
struct CheckpointState {
  static constexpr uint32_t kMaxUnsealed = 256;

  uint64_t generation = 0;     // the highest of any segment
  uint64_t next_sequence = 0;  // above those of all records
  uint64_t entry_count = 0;    // in all of its tables
  // Segments that were being prepared, written or sealed: the index may not have known all their records. Recovery replays these, and segments of
  // higher generations.
  uint32_t unsealed_count = 0;
  // The last so many of them had no records yet. All their records are replayed, as are those of segments of higher generations.
  uint32_t ready_count = 0;
  uint32_t unsealed[kMaxUnsealed] = {};
  // Large values whose head was not yet, or no longer, their key's record: pieces of theirs may be in the tables.
  uint32_t headless_count = 0;
};

// The size of a table's piece with this many slots, rounded up to whole grains.
uint64_t table_piece_bytes(const Geometry& geometry, uint32_t slot_count);
inline constexpr uint64_t kMaxPieceBytes = sizeof(PieceHeader) + kSlots / 8 + kTableBytes;

// Write a piece at the beginning of `to`, and return how many bytes it takes, whole grains; 0: `to` is too short, and its content is not defined.
// REQUIRES: the image's shape is possible; ready_count <= unsealed_count <= kMaxUnsealed.
size_t write_piece(const Identity& identity, uint64_t checkpoint, uint32_t number, uint32_t table,
                   const TableImage& image, std::span<std::byte> to);
size_t write_piece(const Identity& identity, uint64_t checkpoint, uint32_t number,
                   const CheckpointState& state, std::span<std::byte> to);

// Does `from`, a grain or more, begin with a piece's header? header.bytes, at most kMaxPieceBytes, tells how long the piece is.
bool read_piece_header(const Identity& identity, Bytes from, PieceHeader& header);
// Read the piece whose header was read from the beginning of `from`. False: `from` is shorter than header.bytes; or the piece is damaged, of the other
// kind, or impossible: addresses or segments beyond the store's, sizes beyond any record's, free slots, or more or fewer slots than the header says.
bool read_piece(const Identity& identity, const PieceHeader& header, Bytes from, TableImage& image);
bool read_piece(const Identity& identity, const PieceHeader& header, Bytes from, CheckpointState& state);

}  // namespace kv
