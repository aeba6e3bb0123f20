// A checkpoint on the device, byte by byte (docs/formats/kv.md), and the only code that reads and writes it.
//
//   segment   | header (SegmentState::kCheckpoint), a grain | piece | piece | ... | unused |
//   piece     | header 80 bytes | body | zeros to the end of the grain |
//   body      of a table: 32,768 bits, a 1 for each slot that is not free | those slots, 8 bytes each
//             of the end: what recovery needs beside the index
//
// Invariants
//  1 a checkpoint has a number that no other one of this store has had; each of its pieces carries it. Pieces are numbered from 0, and
//    none crosses a segment's end
//  2 the last piece is the end; it is written when all others are on the medium for good. A checkpoint counts if its end, whose number
//    says how many there are before it, and all of these are there and whole
//
// Readers are pure functions of bytes that come from outside, and fuzzed (checkpoint_fuzz.cc). What they let pass, tables that no index
// can have among it, is refused when an index is restored from it (index.h).
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
  uint32_t table = 0;  // the table's number in the index, for who looks at it; 0 of the end
  uint32_t count = 0;  // slots of a table, segments of the end
  uint64_t prefix = 0;
  uint8_t depths[kRegions] = {};  // with the prefix a TableShape; both 0 of the end
  uint64_t bytes = 0;             // of header and body
  uint64_t body_check = 0;
  uint64_t check = 0;

  TableShape shape() const;
};
static_assert(sizeof(PieceHeader) == 80);

// What is not in the index's tables, and is as it was when the checkpoint began.
struct CheckpointState {
  static constexpr uint32_t kUnsealedMax = 256;

  uint64_t generation = 0;     // the highest of any segment
  uint64_t next_sequence = 0;  // no record had this one or a higher one
  uint64_t entry_count = 0;    // in all of its tables
  // Segments whose records the index need not have known: those that were being prepared, written or sealed. With those of a higher
  // generation they are what recovery reads.
  uint32_t unsealed_count = 0;
  // The last of them, which had no records yet. All of theirs are replayed, as those of segments of a higher generation are.
  uint32_t ready_count = 0;
  uint32_t unsealed[kUnsealedMax] = {};
  // Large values whose head was not, or no longer, their key's record: pieces of them may be in the tables.
  uint32_t headless_count = 0;
};

// Of a piece with so many slots, with what fills up its last grain.
uint64_t table_piece_bytes(const Geometry& geometry, uint32_t slot_count);
inline constexpr uint64_t kPieceBytesMax = sizeof(PieceHeader) + kSlots / 8 + kTableBytes;

// Write a piece at the beginning of `to`, and return how many bytes it takes, a multiple of a grain; 0: `to` is too short, and
// what is in it means nothing.
// REQUIRES: the image is possible, and so is the state: unsealed_count <= kUnsealedMax.
size_t write_piece(const Identity& identity, uint64_t checkpoint, uint32_t number, uint32_t table,
                   const TableImage& image, std::span<std::byte> to);
size_t write_piece(const Identity& identity, uint64_t checkpoint, uint32_t number,
                   const CheckpointState& state, std::span<std::byte> to);

// Does `from`, a grain or more, begin with a piece's header? It tells how much is to be read: bytes <= kPieceBytesMax.
bool read_piece_header(const Identity& identity, Bytes from, PieceHeader& header);
// Read what follows it. `from` begins with the header, which has been read from it. False: it is shorter than header.bytes, damaged, of the
// other kind, or holds what cannot be: addresses and segments are the store's, sizes those of records, slots are as many as the header says and
// not free.
bool read_piece(const Identity& identity, const PieceHeader& header, Bytes from, TableImage& image);
bool read_piece(const Identity& identity, const PieceHeader& header, Bytes from, CheckpointState& state);

}  // namespace kv
