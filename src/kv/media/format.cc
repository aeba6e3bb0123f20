#include "kv/media/format.h"

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#define XXH_NO_STREAM
#define XXH_FORCE_MEMORY_ACCESS 1  // its loads would be calls of memcpy, which is no builtin here
#include <xxhash.h>

#include <algorithm>

#include "base/check.h"
#include "base/checksum.h"
#include "base/ids.h"
#include "kv/index/entry.h"

namespace kv {
namespace {

constexpr char kMagic[8] = {'s', 'p', 'i', 'l', 'l', 'k', 'v', '\n'};
constexpr uint32_t kByteOrder = 0x01020304;
constexpr uint64_t kSegmentMagic = 0x67657320766b7073;  // "spkv seg"
constexpr uint64_t kFooterMagic = 0x646e6520766b7073;   // "spkv end"

template <class T>
void put(const T& value, std::span<std::byte> to) {
  CHECK_GE(to.size(), sizeof value);
  memcpy(to.data(), &value, sizeof value);
}

template <class T>
bool take(Bytes from, T& value) {
  if (from.size() < sizeof value) return false;
  memcpy(&value, from.data(), sizeof value);
  return true;
}

// Is the check at the end of the struct right?
template <class T>
bool is_whole(const Secret& secret, const T& piece) {
  return piece.check == check_of(secret, &piece, offsetof(T, check));
}

bool is_possible(const Geometry& geometry) {
  if (!may_be_grain_bytes(geometry.grain_bytes) || !may_be_segment_bytes(geometry.segment_bytes))
    return false;
  if (geometry.segment_count == 0 || geometry.spare_percent >= 100) return false;
  if (geometry.segment_count > (uint64_t{1} << EntryFormat::kMaxAddressBits) / geometry.segment_grains())
    return false;
  return geometry.capacity_bytes >= kSegmentsOffset &&
         geometry.segment_count <= (geometry.capacity_bytes - kSegmentsOffset) / geometry.segment_bytes;
}

bool is_possible(const storage::Layout& layout) {
  return (layout.member_count > 1) == (layout.unit_bytes != 0);
}

}  // namespace

unsigned Geometry::address_bits() const {
  const auto bits = static_cast<unsigned>(std::bit_width(segment_count * segment_grains() - 1));
  return std::max(bits, EntryFormat::kMinAddressBits);
}

uint64_t Geometry::record_grains_max() const {
  return grains(record_bytes(kMaxKeyBytes, kMaxInlineValueBytes));
}

KeyHash hash_key(const Secret& secret, std::string_view key) {
  const XXH128_hash_t hash =
      XXH3_128bits_withSecret(key.data(), key.size(), secret.bytes, sizeof secret.bytes);
  return {hash.low64, hash.high64};
}

KeyHash hash_piece(const Secret& secret, const PieceKey& key) {
  const KeyHash hash = hash_key(secret, key.text());
  return {~hash.low, ~hash.high};
}

KeyHash hash_record(const Secret& secret, const Record& record) {
  const KeyHash hash = hash_key(secret, record.key);
  return record.header.kind() == RecordKind::kPiece ? KeyHash{~hash.low, ~hash.high} : hash;
}

void write_superblock(const Identity& identity, uint64_t made_ns, std::span<std::byte> to) {
  CHECK_EQ(to.size(), kSuperblockBytes);
  CHECK(is_possible(identity.geometry));
  std::ranges::fill(to, std::byte{0});
  Superblock block;
  memcpy(block.magic, kMagic, sizeof kMagic);
  block.byte_order = kByteOrder;
  block.version = kFormatVersion;
  block.features_needed = identity.is_cache ? kFeatureCache : 0;
  block.store_id = identity.store_id;
  block.made_ns = made_ns;
  block.capacity_bytes = identity.geometry.capacity_bytes;
  block.segment_bytes = identity.geometry.segment_bytes;
  block.segment_count = identity.geometry.segment_count;
  block.grain_bytes = identity.geometry.grain_bytes;
  block.spare_percent = identity.geometry.spare_percent;
  block.secret = identity.secret;
  block.member_count = identity.layout.member_count;
  block.unit_bytes = identity.layout.unit_bytes;
  block.check = base::checksum(&block, offsetof(Superblock, check));
  put(block, to);
}

base::Expected<Identity> read_superblock(Bytes from) {
  Superblock block;
  constexpr char kNothing[sizeof kMagic] = {};
  if (!take(from, block) || memcmp(block.magic, kNothing, sizeof kNothing) == 0)
    return base::failure(EINVAL, "holds no store");
  if (memcmp(block.magic, kMagic, sizeof kMagic) != 0)
    return base::failure(
        EINVAL, "holds no store, or one under another key (--key-file FILE, encrypt:key=FILE:[DEVICE])");
  if (block.byte_order == __builtin_bswap32(kByteOrder))
    return base::failure(EINVAL,
                         "holds a store of a machine with the other byte order, which this one cannot read");
  if (block.check != base::checksum(&block, offsetof(Superblock, check)))
    return base::failure(EBADMSG, "has a damaged superblock");
  if (block.version > kFormatVersion || (block.features_needed & ~kFeatureCache) != 0)
    return base::failure(EPROTONOSUPPORT, "holds a store of a newer format (version ", block.version,
                         ", features ", base::Hex{block.features_needed}, "); this program reads version ",
                         kFormatVersion);
  const Identity identity = {
      .store_id = block.store_id,
      .secret = block.secret,
      .geometry = {.capacity_bytes = block.capacity_bytes,
                   .grain_bytes = block.grain_bytes,
                   .segment_bytes = block.segment_bytes,
                   .segment_count = block.segment_count,
                   .spare_percent = block.spare_percent},
      .layout = {.member_count = std::max<uint64_t>(block.member_count, 1), .unit_bytes = block.unit_bytes},
      .is_cache = (block.features_needed & kFeatureCache) != 0};
  if (block.byte_order != kByteOrder || block.version == 0 || !is_possible(identity.geometry) ||
      !is_possible(identity.layout))
    return base::failure(EBADMSG, "has a superblock that cannot be right");
  return identity;
}

base::Expected<Identity> read_superblock(Bytes from, uint64_t device_bytes) {
  auto identity = read_superblock(from);
  if (!identity) return identity;
  const uint64_t end = identity->geometry.segment_offset(identity->geometry.segment_count);
  if (device_bytes < end)
    return base::failure(ENOSPC, "is smaller than the store in it: ", device_bytes, " bytes of ", end,
                         "; make it as large as it was");
  return identity;
}

void write_segment_header(const Identity& identity, SegmentHeader header, std::span<std::byte> to) {
  std::ranges::fill(to, std::byte{0});
  header.magic = kSegmentMagic;
  header.store_id = identity.store_id;
  header.check = check_of(identity.secret, &header, offsetof(SegmentHeader, check));
  put(header, to);
}

bool read_segment_header(const Identity& identity, Bytes from, SegmentHeader& header) {
  return take(from, header) && header.magic == kSegmentMagic && header.store_id == identity.store_id &&
         is_whole(identity.secret, header) && header.state >= SegmentState::kFree &&
         header.state <= SegmentState::kCheckpoint;
}

void describe(std::span<const SummaryEntry> entries, SegmentFooter& footer) {
  footer.entry_count = static_cast<uint32_t>(entries.size());
  footer.last_sequence = 0;
  footer.tombstone_count = footer.tombstone_grains = footer.piece_count = 0;
  for (const SummaryEntry& entry : entries) {
    footer.last_sequence = std::max(footer.last_sequence, entry.sequence());
    if (entry.kind() == RecordKind::kPiece) ++footer.piece_count;
    if (entry.kind() != RecordKind::kTombstone) continue;
    ++footer.tombstone_count;
    // As the log counts them.
    footer.tombstone_grains += static_cast<uint32_t>(size_code::grains(size_code::of(entry.grains)));
  }
}

void write_summary(const Identity& identity, SegmentFooter footer, std::span<std::byte> to) {
  const size_t entries_bytes = footer.entry_count * sizeof(SummaryEntry);
  CHECK_EQ(to.size(),
           uint64_t{summary_grains(identity.geometry, footer.entry_count)} * identity.geometry.grain_bytes);
  std::ranges::fill(to.subspan(entries_bytes), std::byte{0});
  footer.magic = kFooterMagic;
  footer.store_id = identity.store_id;
  footer.entries_check = check_of(identity.secret, to.data(), entries_bytes);
  footer.check = check_of(identity.secret, &footer, offsetof(SegmentFooter, check));
  put(footer, to.last(sizeof footer));
}

bool read_footer(const Identity& identity, uint64_t generation, Bytes from, SegmentFooter& footer) {
  if (from.size() < sizeof footer || !take(from.last(sizeof footer), footer)) return false;
  if (footer.magic != kFooterMagic || footer.store_id != identity.store_id ||
      footer.generation != generation || !is_whole(identity.secret, footer))
    return false;
  const uint32_t grains = identity.geometry.segment_grains();
  return footer.entry_count < grains && footer.used_grains >= 1 &&
         footer.used_grains <= grains - summary_grains(identity.geometry, footer.entry_count);
}

std::span<const SummaryEntry> read_summary(const Identity& identity, const SegmentFooter& footer,
                                           Bytes from) {
  const size_t bytes = footer.entry_count * sizeof(SummaryEntry);
  if (from.size() < bytes || footer.entries_check != check_of(identity.secret, from.data(), bytes)) return {};
  const std::span entries(reinterpret_cast<const SummaryEntry*>(from.data()), footer.entry_count);
  const uint64_t grains_max = identity.geometry.record_grains_max();
  uint64_t end = 1;
  for (const SummaryEntry& entry : entries) {
    if (entry.grain < end || entry.grains == 0 || entry.grains > grains_max ||
        entry.kind() > RecordKind::kVoid)
      return {};
    end = uint64_t{entry.grain} + entry.grains;
    if (end > footer.used_grains) return {};
  }
  return entries;
}

void write_record(const Secret& secret, RecordHeader header, std::string_view key, uint64_t value_bytes,
                  std::span<std::byte> to) {
  CHECK(!key.empty() && key.size() <= kMaxKeyBytes);
  const uint64_t bytes = record_bytes(key.size(), value_bytes);
  CHECK_GE(to.size(), bytes);
  header.expiry_and_key = (header.expiry_and_key & ~uint64_t{0xffff}) | (key.size() - 1);
  header.value_bytes = static_cast<uint32_t>(value_bytes);
  put(header, to);
  memcpy(to.data() + sizeof header, key.data(), key.size());
  std::ranges::fill(to.subspan(bytes), std::byte{0});
  header.check = check_of(secret, to.data() + sizeof header.check, bytes - sizeof header.check);
  put(header.check, to);
}

void move_record(const Secret& secret, uint64_t generation, RecordKind kind, uint64_t expiry,
                 std::span<std::byte> to) {
  RecordHeader header;
  CHECK(take(to, header));
  header.generation = generation;
  if (kind == RecordKind::kTombstone) header.value_bytes = 0;
  header.sequence_and_kind = with_kind(header.sequence(), kind);
  header.expiry_and_key = expiry << 16 | (header.expiry_and_key & 0xffff);
  const uint64_t bytes = record_bytes(header.key_bytes(), header.value_bytes);
  CHECK_GE(to.size(), bytes);
  put(header, to);
  std::ranges::fill(to.subspan(bytes), std::byte{0});
  header.check = check_of(secret, to.data() + sizeof header.check, bytes - sizeof header.check);
  put(header.check, to);
}

void renew_record(const Secret& secret, uint64_t generation, uint64_t sequence, std::span<std::byte> to) {
  RecordHeader header;
  CHECK(take(to, header));
  header.sequence_and_kind = with_kind(sequence, header.kind());
  put(header, to);
  move_record(secret, generation, header.kind(), header.expiry(), to);
}

Reading read_record(const Secret& secret, uint64_t generation, Bytes from, Record& record) {
  if (!take(from, record.header) || record.header.generation != generation) return Reading::kDamaged;
  if (record.header.kind() >= RecordKind::kVoid || record.header.value_bytes > kMaxInlineValueBytes)
    return Reading::kDamaged;
  const size_t key_bytes = record.header.key_bytes();
  if (from.size() < record_bytes(key_bytes, 0)) return Reading::kPart;
  record.key = {reinterpret_cast<const char*>(from.data()) + sizeof(RecordHeader), key_bytes};
  const uint64_t bytes = record_bytes(key_bytes, record.header.value_bytes);
  if (from.size() < bytes) return Reading::kPart;
  record.value = from.subspan(record_bytes(key_bytes, 0), record.header.value_bytes);
  const uint64_t check =
      check_of(secret, from.data() + sizeof record.header.check, bytes - sizeof record.header.check);
  return check == record.header.check ? Reading::kWhole : Reading::kDamaged;
}

}  // namespace kv
