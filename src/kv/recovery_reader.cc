#include "kv/recovery_reader.h"

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;
// A place that cannot be read may take the device seconds: of a segment with many more than these others nearby are not tried.
constexpr uint64_t kUnreadableMost = 1024;

}  // namespace

bool is_of_medium(int error) {
  return error == EIO || error == ENODATA || error == EILSEQ || error == EREMOTEIO;
}

void RecoveryReport::add(const RecoveryReport& other) {
  records += other.records;
  read_bytes += other.read_bytes;
  scanned_segments += other.scanned_segments;
  damaged_segments += other.damaged_segments;
  lost_segments += other.lost_segments;
  unreadable_segments += other.unreadable_segments;
  unreadable_grains += other.unreadable_grains;
  passed_grains += other.passed_grains;
  headless_pieces += other.headless_pieces;
  checkpoint += other.checkpoint;
  replayed_records += other.replayed_records;
}

base::Expected<void> RecoveryReader::open(storage::Device& device, const Identity& identity) {
  identity_ = &identity;
  const Geometry& geometry = identity.geometry;
  if (auto opened = channel.open_for_threads(device); !opened) return opened;
  const uint64_t summary =
      uint64_t{summary_grains(geometry, geometry.segment_grains())} * geometry.grain_bytes;
  auto mapped = sys::map_anonymous(std::max(kMostBytes, summary), "recovery of a store");
  if (!mapped) return std::unexpected(mapped.error());
  memory_ = {reinterpret_cast<std::byte*>(*mapped), std::max(kMostBytes, summary)};
  return {};
}

RecoveryReader::~RecoveryReader() {
  if (!memory_.empty()) sys::unmap(memory_.data(), memory_.size());
  channel.close();
}

base::Expected<Bytes> RecoveryReader::read(uint32_t segment, uint64_t offset, uint64_t bytes) {
  const std::span to = memory_.first(bytes);
  for (uint64_t at = 0; at < bytes; at += kPieceBytes) {
    const std::span piece = to.subspan(at, std::min(kPieceBytes, bytes - at));
    if (const int error = channel.read(identity_->geometry.segment_offset(segment) + offset + at, piece);
        error != 0)
      return base::failure(error, "store: cannot read segment ", segment, ": ", base::error_name(error));
  }
  report.read_bytes += bytes;
  return to;
}

// As read(); false: the medium cannot.
base::Expected<bool> RecoveryReader::try_read(uint32_t segment, uint64_t offset, uint64_t bytes, Bytes& to) {
  auto got = read(segment, offset, bytes);
  if (!got && !is_of_medium(got.error().number)) return std::unexpected(got.error());
  to = got ? *got : Bytes();
  return got.has_value();
}

base::Expected<void> RecoveryReader::find(uint32_t segment, FoundSegment& found) {
  const Geometry& geometry = identity_->geometry;
  Bytes grain;
  const auto head = try_read(segment, 0, geometry.grain_bytes, grain);
  if (!head) return std::unexpected(head.error());
  found.is_known = read_segment_header(*identity_, grain, found.header);
  if (found.is_known && found.header.state != SegmentState::kUsed) return {};
  const bool is_first_right = found.is_known;
  const auto tail =
      try_read(segment, geometry.segment_bytes - geometry.grain_bytes, geometry.grain_bytes, grain);
  if (!tail) return std::unexpected(tail.error());
  if (!found.is_known) found.is_known = read_segment_header(*identity_, grain, found.header);
  uint64_t generation = found.header.generation;
  if (!found.is_known && *tail) {
    memcpy(&found.footer, grain.last(sizeof found.footer).data(), sizeof found.footer);
    generation = found.footer.generation;
  }
  found.has_summary = read_footer(*identity_, generation, grain, found.footer);
  if (!found.is_known && found.has_summary) {
    found.is_known = true;
    found.header = {.generation = generation, .state = SegmentState::kUsed};
  }
  found.is_unreadable = !found.is_known && (!*head || !*tail);
  if (found.is_unreadable)
    ++report.unreadable_segments;
  else if (!is_first_right)
    ++(found.is_known ? report.damaged_segments : report.lost_segments);
  return {};
}

base::Expected<void> RecoveryReader::list(uint32_t segment, FoundSegment& found) {
  const Geometry& geometry = identity_->geometry;
  found.is_listed = true;
  if (!found.has_summary) return scan(segment, found);
  const uint64_t bytes = uint64_t{summary_grains(geometry, found.footer.entry_count)} * geometry.grain_bytes;
  Bytes summary;
  const auto is_read = try_read(segment, geometry.segment_bytes - bytes, bytes, summary);
  if (!is_read) return std::unexpected(is_read.error());
  const auto entries = read_summary(*identity_, found.footer, summary);
  found.has_summary = *is_read && entries.size() == found.footer.entry_count;
  if (!found.has_summary) return scan(segment, found);
  found.entries.assign(entries.begin(), entries.end());
  return {};
}

// As read(), but a grain at a time where the medium cannot read more at once; what it cannot read at all is zeros.
base::Expected<Bytes> RecoveryReader::read_what_can_be(uint32_t segment, uint64_t offset, uint64_t bytes,
                                                       FoundSegment& found) {
  const uint64_t grain_bytes = identity_->geometry.grain_bytes;
  const std::span to = memory_.first(bytes);
  const uint64_t first = identity_->geometry.segment_offset(segment) + offset;
  for (uint64_t at = 0; at < bytes; at += kPieceBytes) {
    const std::span piece = to.subspan(at, std::min(kPieceBytes, bytes - at));
    int error = channel.read(first + at, piece);
    for (uint64_t grain = 0; is_of_medium(error) && grain < piece.size(); grain += grain_bytes) {
      const std::span one = piece.subspan(grain, grain_bytes);
      const bool is_tried = found.unreadable_grains < kUnreadableMost;
      const int own = is_tried ? channel.read(first + at + grain, one) : error;
      if (own == 0) continue;
      std::ranges::fill(one, std::byte{0});
      ++found.unreadable_grains;
      error = own;
    }
    if (error != 0 && !is_of_medium(error))
      return base::failure(error, "store: cannot read segment ", segment, ": ", base::error_name(error));
  }
  report.read_bytes += bytes;
  return to;
}

base::Expected<void> RecoveryReader::scan(uint32_t segment, FoundSegment& found) {
  ++report.scanned_segments;
  const Geometry& geometry = identity_->geometry;
  const uint64_t grain_bytes = geometry.grain_bytes;
  const auto grains_most =
      static_cast<uint32_t>(geometry.grains(record_bytes(kKeyBytesMax, geometry.value_bytes_max())));
  SegmentFooter& footer = found.footer;
  footer = {.generation = found.header.generation, .used_grains = 1};
  Bytes window;
  uint32_t begin = 0, end = 0;
  for (uint32_t grain = 1; grain < geometry.segment_grains();) {
    if (grain + grains_most > end && end < geometry.segment_grains()) {
      begin = grain;
      end = std::min(grain + static_cast<uint32_t>(kMostBytes / grain_bytes), geometry.segment_grains());
      auto got = read_what_can_be(segment, grain * grain_bytes, (end - begin) * grain_bytes, found);
      if (!got) return std::unexpected(got.error());
      window = *got;
    }
    Record record;
    if (kv::read_record(identity_->secret, found.header.generation,
                        window.subspan((grain - begin) * grain_bytes), record) != Reading::kWhole) {
      ++grain;
      continue;
    }
    const auto grains = static_cast<uint32_t>(geometry.grains(record.bytes()));
    found.entries.push_back({.hash = hash_record(identity_->secret, record),
                             .sequence_and_kind = record.header.sequence_and_kind,
                             .grain = grain,
                             .grains = grains});
    const uint64_t expiry = record.header.kind() == RecordKind::kTombstone ? 0 : record.header.expiry();
    if (expiry != 0 && (footer.first_expiry == 0 || expiry < footer.first_expiry))
      footer.first_expiry = expiry;
    report.passed_grains += grain - footer.used_grains;
    grain += grains;
    footer.used_grains = grain;
  }
  describe(found.entries, footer);
  report.unreadable_grains += found.unreadable_grains;
  return {};
}

base::Expected<Reading> RecoveryReader::read_record(const FoundSegment& found, uint32_t segment,
                                                    const SummaryEntry& entry, Record& record) {
  const uint64_t grain_bytes = identity_->geometry.grain_bytes;
  Bytes bytes;
  const auto is_read = try_read(segment, entry.grain * grain_bytes, entry.grains * grain_bytes, bytes);
  if (!is_read) return std::unexpected(is_read.error());
  return *is_read ? kv::read_record(identity_->secret, found.header.generation, bytes, record)
                  : Reading::kDamaged;
}

}  // namespace kv
