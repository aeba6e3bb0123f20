// What a store keeps on its device, byte by byte (docs/formats/kv.md), and the only code that reads and writes it.
//
//   0            512 KiB      1 MiB
//   | superblock | superblock | segment 0 | segment 1 | ...
//
//   segment   | header | record | record | ... | unused | summary: an entry for each record | footer |
//             0        1 grain                                              the segment's last 88 bytes ^
//   record    | header 40 bytes | key | value | zeros to the end of the grain |
//
// Numbers are little-endian. Each structure begins or ends with a check: 64 bits of XXH3 under the store's secret, which is in its superblock, so that
// nobody who chooses keys and values can make them look like something else.
//
// Invariants
//  1 A segment's header is durable before anything else of the segment is written. Whatever has another generation is from an earlier life of the
//    segment, and not part of the store
//  2 A footer is written when all records of the segment are durable. Without a footer a record counts if its own check is right, and nothing else is
//    known of it
//  3 Of two records with the same key the one with the higher sequence counts. Two with the same sequence are copies of each other
//
// Readers are pure functions of bytes that come from outside, and fuzzed (format_fuzz.cc).
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/checksum.h"
#include "base/error.h"
#include "storage/device.h"

namespace kv {

static_assert(std::endian::native == std::endian::little, "the format is that of little-endian machines");

using Bytes = std::span<const std::byte>;
// A text as bytes, and bytes as a text. Nothing is copied.
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline constexpr uint32_t kFormatVersion = 1;
// A bit of Superblock::features_needed. The store is a cache: records with sequences below the highest floor in any segment's header are gone.
inline constexpr uint64_t kFeatureCache = 1;
inline constexpr uint64_t kSuperblockBytes = 4096;
inline constexpr uint64_t kSuperblockOffsets[] = {0, 512 << 10};
inline constexpr uint64_t kSegmentsOffset = 1 << 20;
inline constexpr size_t kSecretBytes = base::kChecksumSecretBytes;

constexpr bool may_be_grain_bytes(uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= 512 && bytes <= 4096;
}
inline constexpr uint64_t kMinSegmentBytes = 1 << 20;
constexpr bool may_be_segment_bytes(uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kMinSegmentBytes && bytes <= 1 << 30;
}

inline constexpr size_t kMaxKeyBytes = 64 << 10;
inline constexpr uint64_t kMaxInlineValueBytes = 1 << 20;      // in one record, of any store
inline constexpr uint64_t kMaxValueBytes = uint64_t{4} << 30;  // in pieces

// What all checks of a store, and the hashes of its keys, are keyed with.
struct Secret {
  unsigned char bytes[kSecretBytes];
  bool operator==(const Secret&) const = default;
};
inline uint64_t check_of(const Secret& secret, const void* bytes, size_t length) {
  return base::checksum(bytes, length, secret.bytes);
}

// 128 bits: two keys with the same hash are taken for the same key. The index uses `low`.
struct KeyHash {
  uint64_t low = 0, high = 0;
  bool operator==(const KeyHash&) const = default;
};
KeyHash hash_key(const Secret& secret, std::string_view key);

// The store's shape, chosen when it is made.
struct Geometry {
  uint64_t capacity_bytes = 0;  // that the store was made with: the device's, or less
  uint32_t grain_bytes = 0;     // 512 to 4096, a power of two; records begin at multiples of it
  uint64_t segment_bytes = 0;   // 1 MiB to 1 GiB, a power of two
  uint64_t segment_count = 0;
  uint32_t spare_percent = 0;  // of the room: kept free of records, so that collection is cheap

  bool operator==(const Geometry&) const = default;
  uint32_t segment_grains() const { return static_cast<uint32_t>(segment_bytes / grain_bytes); }
  uint64_t segment_offset(uint64_t segment) const { return kSegmentsOffset + segment * segment_bytes; }
  // The offsets of a segment's first and last grain. Both hold its header until it is sealed, when the last grain becomes the footer's.
  std::array<uint64_t, 2> header_offsets(uint64_t segment) const {
    return {segment_offset(segment), segment_offset(segment + 1) - grain_bytes};
  }
  // An address is a grain's number, counted through all segments.
  uint64_t address(uint64_t segment, uint32_t grain) const { return segment * segment_grains() + grain; }
  uint64_t segment_of(uint64_t address) const { return address / segment_grains(); }
  uint32_t grain_of(uint64_t address) const { return static_cast<uint32_t>(address % segment_grains()); }
  uint64_t offset_of(uint64_t address) const { return kSegmentsOffset + address * grain_bytes; }
  uint64_t grains(uint64_t bytes) const { return (bytes + grain_bytes - 1) / grain_bytes; }
  unsigned address_bits() const;
  // Of the longest record that any store with grains of this size may have: readers have memory for this many.
  uint64_t record_grains_max() const;
  // The longest value in one record: much less than a segment, so that little room is lost at the ends of segments.
  uint64_t value_bytes_max() const { return std::min(kMaxInlineValueBytes, segment_bytes / 4); }
};

struct Superblock {
  char magic[8] = {};
  uint32_t byte_order = 0;
  uint32_t version = 0;
  uint64_t features_needed = 0;  // a reader that does not know one of these bits must not open the store
  uint64_t features_optional = 0;
  uint64_t store_id = 0;
  uint64_t made_ns = 0;  // since 1970
  uint64_t capacity_bytes = 0;
  uint64_t segment_bytes = 0;
  uint64_t segment_count = 0;
  uint32_t grain_bytes = 0;
  uint32_t spare_percent = 0;
  Secret secret = {};
  // The stripe that the store was made on. 1 member and no unit: none. 0 members, as in older stores, are taken for none.
  uint64_t member_count = 0;
  uint64_t unit_bytes = 0;
  uint64_t reserved = 0;
  uint64_t check = 0;  // of all before it, without a secret
};
static_assert(sizeof(Superblock) == 304);

// What a superblock says about its store.
struct Identity {
  uint64_t store_id = 0;
  Secret secret = {};
  Geometry geometry;
  storage::Layout layout = {};  // of the device that the store was made on
  bool is_cache = false;

  bool operator==(const Identity&) const = default;
};

// REQUIRES: to.size() == kSuperblockBytes.
void write_superblock(const Identity& identity, uint64_t made_ns, std::span<std::byte> to);
// `from` has kSuperblockBytes. Errors, whose text continues a line that begins with the device's name: EINVAL: it holds no store, or one of another
// byte order; EPROTONOSUPPORT: one of a newer version; EBADMSG: a damaged one; ENOSPC: one that is larger than the device.
base::Expected<Identity> read_superblock(Bytes from, uint64_t device_bytes);
// The same, whatever the size of the device.
base::Expected<Identity> read_superblock(Bytes from);

enum class SegmentState : uint32_t { kFree = 1, kUsed = 2, kCheckpoint = 3 };

struct SegmentHeader {
  uint64_t magic = 0;
  uint64_t store_id = 0;
  uint64_t generation = 0;  // rises with every segment that is opened or given back
  SegmentState state = SegmentState::kFree;
  uint32_t part = 0;  // for kCheckpoint: which of the checkpoint's segments this is, from 0
  // The highest sequence of any change when this was written; or a higher one, to skip sequences that were lost.
  uint64_t opened_sequence = 0;
  uint64_t checkpoint = 0;  // for kCheckpoint: the checkpoint's number
  uint64_t floor = 0;       // for a cache: records of lower sequences were gone when this was written
  uint64_t check = 0;
};
static_assert(sizeof(SegmentHeader) == 64);

enum class RecordKind : uint8_t {
  kValue = 0,
  // The key was removed. `expiry` is a generation: no older record of the key is in a segment with a higher one. 0 stands for the sealed_generation of
  // this record's own segment.
  kTombstone = 1,
  kHead = 2,   // of a value in pieces: the record's value names them (PiecesOf)
  kPiece = 3,  // of such a value; its key is a PieceKey
  kVoid = 4,   // in summaries only: what was written here, if anything, does not count
};

struct SummaryEntry {
  KeyHash hash = {};
  uint64_t sequence_and_kind = 0;
  uint32_t grain = 0;  // where in the segment it begins
  uint32_t grains = 0;

  uint64_t sequence() const { return sequence_and_kind >> 8; }
  RecordKind kind() const { return static_cast<RecordKind>(sequence_and_kind & 0xff); }
};
static_assert(sizeof(SummaryEntry) == 32);
inline constexpr uint64_t kMaxSequence = (uint64_t{1} << 56) - 1;
constexpr uint64_t with_kind(uint64_t sequence, RecordKind kind) {
  return sequence << 8 | static_cast<uint64_t>(kind);
}

struct SegmentFooter {
  uint64_t magic = 0;
  uint64_t store_id = 0;
  uint64_t generation = 0;
  uint64_t sealed_generation = 0;  // the highest of any segment with records when this one was sealed
  uint32_t entry_count = 0;
  uint32_t used_grains = 0;  // the end of the last record
  uint64_t entries_check = 0;
  uint64_t last_sequence = 0;
  uint32_t tombstone_count = 0;   // among its records
  uint32_t tombstone_grains = 0;  // as rounded by size codes
  uint64_t first_expiry = 0;      // the earliest of its values', as RecordHeader::expiry; 0: none expires
  uint32_t piece_count = 0;       // among its records
  uint32_t zero = 0;
  uint64_t check = 0;
};
static_assert(sizeof(SegmentFooter) == 88);

void write_segment_header(const Identity& identity, SegmentHeader header, std::span<std::byte> to);
// False: damaged, or never written.
bool read_segment_header(const Identity& identity, Bytes from, SegmentHeader& header);

// How many grains summary entries and footer take at the segment's end.
constexpr uint32_t summary_grains(const Geometry& geometry, uint64_t entry_count) {
  return static_cast<uint32_t>(geometry.grains(entry_count * sizeof(SummaryEntry) + sizeof(SegmentFooter)));
}
// Sets what the footer says about the entries: how many, the highest sequence, tombstones, pieces.
void describe(std::span<const SummaryEntry> entries, SegmentFooter& footer);
// Writes the summary, the end of a segment. `to` is summary_grains() long and begins with the entries.
void write_summary(const Identity& identity, SegmentFooter footer, std::span<std::byte> to);
// `from` is the segment's last grain. False: it has no footer, or one that is damaged or of another generation.
bool read_footer(const Identity& identity, uint64_t generation, Bytes from, SegmentFooter& footer);
// `from`, summary_grains() long, begins with the entries. Returns footer.entry_count of them: in the order of their grains, not overlapping, within
// the segment, and none longer than record_grains_max(). Empty although the footer counts some: they are damaged.
std::span<const SummaryEntry> read_summary(const Identity& identity, const SegmentFooter& footer, Bytes from);

struct RecordHeader {
  uint64_t check = 0;       // of all that follows, to the value's end
  uint64_t generation = 0;  // of the segment
  uint64_t sequence_and_kind = 0;
  // 48 bits: expiry in ms since 1970, 0 for never; 16 bits: bytes of the key, less 1.
  uint64_t expiry_and_key;
  uint32_t value_bytes = 0;
  uint32_t flags = 0;  // the user's

  uint64_t sequence() const { return sequence_and_kind >> 8; }
  RecordKind kind() const { return static_cast<RecordKind>(sequence_and_kind & 0xff); }
  uint64_t expiry() const { return expiry_and_key >> 16; }
  size_t key_bytes() const { return (expiry_and_key & 0xffff) + 1; }
};
static_assert(sizeof(RecordHeader) == 40);

constexpr uint64_t record_bytes(size_t key_bytes, uint64_t value_bytes) {
  return sizeof(RecordHeader) + key_bytes + value_bytes;
}

// The value of a head.
struct PiecesOf {
  uint64_t sequence = 0;  // of all its pieces
  uint64_t value_bytes = 0;
  uint32_t piece_bytes = 0;  // of each but the last
  uint32_t reserved = 0;

  uint64_t count() const { return (value_bytes + piece_bytes - 1) / piece_bytes; }
  // False: no store of this shape has written it. Pieces are looked up one by one, so there must be no more than the store has room for.
  bool is_possible(const Geometry& geometry) const {
    return value_bytes > 0 && value_bytes <= kMaxValueBytes && piece_bytes > 0 &&
           piece_bytes <= geometry.value_bytes_max() &&
           count() <= geometry.segment_count * geometry.segment_grains();
  }
};
static_assert(sizeof(PiecesOf) == 24);

// The key of a piece's record.
struct PieceKey {
  KeyHash head;
  uint64_t sequence = 0;
  uint64_t number = 0;

  std::string_view text() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
  // How much of the value a piece has: with header and key it fills whole grains.
  static uint32_t value_bytes(const Geometry& geometry) {
    return static_cast<uint32_t>(geometry.value_bytes_max() - sizeof(RecordHeader) - sizeof(PieceKey));
  }
};
static_assert(sizeof(PieceKey) == 32);
// A user's key with the same bytes has another hash.
KeyHash hash_piece(const Secret& secret, const PieceKey& key);

// A record as it lies in memory.
struct Record {
  RecordHeader header = {};
  std::string_view key;
  Bytes value;
  uint64_t bytes() const { return record_bytes(key.size(), value.size()); }
};

// The hash by which the index and summaries know a record.
KeyHash hash_record(const Secret& secret, const Record& record);

// Writes header and key in front of the value, which is in `to` already, zeros after it to the end of `to`, and the check.
// REQUIRES: to.size() >= record_bytes(); key and value are within their limits.
void write_record(const Secret& secret, RecordHeader header, std::string_view key, uint64_t value_bytes,
                  std::span<std::byte> to);
// Turns the record at the beginning of `to` into one of another segment, with this kind and expiry. A value may become a tombstone; `to` is then as
// long as the tombstone needs. The rest of `to` becomes zeros.
void move_record(const Secret& secret, uint64_t generation, RecordKind kind, uint64_t expiry,
                 std::span<std::byte> to);

// Turns the record at the beginning of `to` into one of another segment with another sequence, as if it had been written anew.
void renew_record(const Secret& secret, uint64_t generation, uint64_t sequence, std::span<std::byte> to);

enum class Reading {
  kWhole,
  kPart,  // `from` ends before the record does; header, and key if all of it is there, are set, and nothing has been checked
  kDamaged,  // or no record of this generation
};
// Reads the record that should be at the beginning of `from`. `record` refers to that memory.
Reading read_record(const Secret& secret, uint64_t generation, Bytes from, Record& record);

}  // namespace kv
