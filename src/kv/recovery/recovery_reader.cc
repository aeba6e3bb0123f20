#include "kv/recovery/recovery_reader.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/ids.h"
#include "storage/piece_io.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint64_t kPieceBytes = 256 << 10;
// A device may try for seconds to read a bad place. After this many unreadable grains of a segment, the other grains of failed reads are not tried
// one by one.
constexpr uint64_t kMaxUnreadable = 1024;

// Reads that are in flight together.
class Batch {
 public:
  static constexpr size_t kMax = 32;

  size_t size() const { return ios_.size(); }
  bool is_full() const { return ios_.is_full(); }
  // REQUIRES: not full.
  void add(uint64_t offset_bytes, std::span<std::byte> to) {
    ios_.add(storage::Operation::kRead, offset_bytes, to.data(), to.size());
  }
  // 0, or the worst errno value of the reads; EIO for one that ended early. Afterwards the batch is empty.
  int run(Channel& channel) {
    if (ios_.size() != 0) channel.run(ios_.all());
    int error = 0;
    for (size_t i = 0; i < ios_.size(); ++i) {
      errors_[i] = ios_[i].whole() ? 0 : ios_[i].error != 0 ? ios_[i].error : EIO;
      if (outranks(errors_[i], error)) error = errors_[i];
    }
    ios_.clear();
    return error;
  }
  // The error of the read that was added after `index` others; valid until others have been run.
  int error(size_t index) const { return errors_[index]; }

 private:
  storage::PieceIos<kMax> ios_;
  int errors_[kMax] = {};
};
static_assert(RecoveryReader::kFoundAtOnce <= Batch::kMax);
static_assert(RecoveryReader::kMaxBytes <= Batch::kMax * kPieceBytes);

}  // namespace

bool outranks(int error, int other) {
  const auto rank = [](int of) {
    if (of == 0 || of == EBADMSG) return of == 0 ? 0 : 1;
    return is_of_medium(of) ? 2 : of == ENOMEM ? 3 : 4;
  };
  return rank(error) > rank(other);
}

void RecoveryReport::add(const RecoveryReport& other) {
  records += other.records;
  read_bytes += other.read_bytes;
  scanned_segments += other.scanned_segments;
  damaged_segments += other.damaged_segments;
  lost_segments += other.lost_segments;
  unreadable_segments += other.unreadable_segments;
  unreadable_grains += other.unreadable_grains;
  unsealed_segments += other.unsealed_segments;
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
  auto mapped = sys::map_anonymous(std::max(kMaxBytes, summary), "recovery of a store");
  if (!mapped) return std::unexpected(mapped.error());
  memory_ = {reinterpret_cast<std::byte*>(*mapped), std::max(kMaxBytes, summary)};
  return {};
}

RecoveryReader::~RecoveryReader() {
  if (!memory_.empty()) sys::unmap(memory_.data(), memory_.size());
  channel.close();
}

base::Expected<Bytes> RecoveryReader::read(uint32_t segment, uint64_t offset, uint64_t bytes) {
  const std::span to = memory_.first(bytes);
  if (auto got = read_into(segment, offset, to); !got) return std::unexpected(got.error());
  return to;
}

base::Expected<void> RecoveryReader::read_into(uint32_t segment, uint64_t offset, std::span<std::byte> to) {
  const uint64_t begin = identity_->geometry.segment_offset(segment) + offset;
  Batch batch;
  for (uint64_t at = 0; at < to.size();) {
    for (; at < to.size() && !batch.is_full(); at += kPieceBytes)
      batch.add(begin + at, to.subspan(at, std::min(kPieceBytes, to.size() - at)));
    if (const int error = batch.run(channel); error != 0) return cannot_read(segment, error);
  }
  report.read_bytes += to.size();
  return {};
}

base::Expected<void> RecoveryReader::cannot_read(uint32_t segment, int error) {
  return base::failure(error, "store: cannot read segment ", segment, ": ", base::error_name(error));
}

// As read(); false: the medium cannot read it.
base::Expected<bool> RecoveryReader::try_read(uint32_t segment, uint64_t offset, uint64_t bytes, Bytes& to) {
  auto got = read(segment, offset, bytes);
  if (!got && !is_of_medium(got.error().number)) return std::unexpected(got.error());
  to = got ? *got : Bytes();
  return got.has_value();
}

base::Expected<void> RecoveryReader::find(uint32_t first, std::span<FoundSegment> found) {
  CHECK_LE(found.size(), kFoundAtOnce);
  const Geometry& geometry = identity_->geometry;
  const auto grain = [&](size_t index) {
    return memory_.subspan(index * geometry.grain_bytes, geometry.grain_bytes);
  };
  // Reads the first grain of each segment, then the last ones.
  for (const size_t which : {0, 1}) {
    Batch batch;
    size_t read[kFoundAtOnce];
    for (size_t i = 0; i < found.size(); ++i) {
      if (which == 1 && !needs_tail(found[i])) continue;
      read[batch.size()] = i;
      batch.add(geometry.header_offsets(first + i)[which], grain(i));
    }
    const size_t count = batch.size();
    report.read_bytes += count * geometry.grain_bytes;
    batch.run(channel);
    for (size_t at = 0; at < count; ++at) {
      const size_t i = read[at];
      int error = batch.error(at);
      if (is_of_medium(error)) error = channel.read(geometry.header_offsets(first + i)[which], grain(i));
      if (error != 0 && !is_of_medium(error)) return cannot_read(static_cast<uint32_t>(first + i), error);
      if (error != 0) found[i].is_unreadable = true;
      if (error != 0 && which == 1) found[i].is_summary_unread = true;
      const Bytes bytes = error == 0 ? Bytes(grain(i)) : Bytes();
      if (which == 0)
        found[i].is_known = read_segment_header(*identity_, bytes, found[i].header);
      else
        look_at_tail(bytes, found[i]);
    }
  }
  return {};
}

// Is there anything to learn from the last grain?
bool RecoveryReader::needs_tail(const FoundSegment& found) {
  return !found.is_known || found.header.state == SegmentState::kUsed;
}

// `tail`: the last grain; empty: it cannot be read.
void RecoveryReader::look_at_tail(Bytes tail, FoundSegment& found) {
  const bool is_first_right = found.is_known;
  if (!found.is_known) found.is_known = read_segment_header(*identity_, tail, found.header);
  uint64_t generation = found.header.generation;
  if (!found.is_known && !tail.empty()) {
    memcpy(&found.footer, tail.last(sizeof found.footer).data(), sizeof found.footer);
    generation = found.footer.generation;
  }
  found.has_summary = read_footer(*identity_, generation, tail, found.footer);
  // While the segment is in use, its last grain has the same header, or the footer. A younger header there says that the segment was given back,
  // but its first grain was not written.
  SegmentHeader last;
  if (is_first_right && read_segment_header(*identity_, tail, last) &&
      last.generation > found.header.generation) {
    found.header = last;
    found.has_summary = false;
  }
  if (!found.is_known && found.has_summary) {
    found.is_known = true;
    found.header = {.generation = generation, .state = SegmentState::kUsed};
  }
  found.is_unreadable = found.is_unreadable && !found.is_known;
  if (found.is_unreadable)
    ++report.unreadable_segments;
  else if (!is_first_right)
    ++(found.is_known ? report.damaged_segments : report.lost_segments);
}

base::Expected<void> RecoveryReader::list(uint32_t segment, FoundSegment& found) {
  auto listed = found.has_summary ? read_entries(segment, found) : scan(segment, found);
  // Pairs with the acquires in Recovery::entry_at() and prefetch_other().
  if (listed) found.is_listed.store(true, std::memory_order_release);
  return listed;
}

base::Expected<void> RecoveryReader::read_entries(uint32_t segment, FoundSegment& found) {
  const Geometry& geometry = identity_->geometry;
  const uint64_t bytes = uint64_t{summary_grains(geometry, found.footer.entry_count)} * geometry.grain_bytes;
  Bytes summary;
  auto is_read = try_read(segment, geometry.segment_bytes - bytes, bytes, summary);
  if (is_read && !*is_read) is_read = try_read(segment, geometry.segment_bytes - bytes, bytes, summary);
  if (!is_read) return std::unexpected(is_read.error());
  found.is_summary_unread = !*is_read;
  const auto entries = read_summary(*identity_, found.footer, summary);
  found.has_summary = *is_read && entries.size() == found.footer.entry_count;
  if (!found.has_summary) return scan(segment, found);
  found.entries.assign(entries.begin(), entries.end());
  return {};
}

// As read_into(), but reads single grains where the medium cannot read more; a grain that it cannot read becomes zeros, and is counted.
// REQUIRES: to.size() <= kMaxBytes.
base::Expected<void> RecoveryReader::read_what_can_be(uint32_t segment, uint64_t offset,
                                                      std::span<std::byte> to, FoundSegment& found) {
  const uint64_t grain_bytes = identity_->geometry.grain_bytes;
  const uint64_t begin = identity_->geometry.segment_offset(segment) + offset;
  Batch batch;
  for (uint64_t at = 0; at < to.size(); at += kPieceBytes)
    batch.add(begin + at, to.subspan(at, std::min(kPieceBytes, to.size() - at)));
  int error = batch.run(channel);
  for (uint64_t at = 0; is_of_medium(error) && at < to.size(); at += grain_bytes) {
    if (batch.error(at / kPieceBytes) == 0) continue;
    const std::span one = to.subspan(at, grain_bytes);
    const bool is_tried = found.unreadable_grains < kMaxUnreadable;
    const int own = is_tried ? channel.read(begin + at, one) : error;
    if (own == 0) continue;
    std::ranges::fill(one, std::byte{0});
    ++found.unreadable_grains;
    error = own;
  }
  if (error != 0 && !is_of_medium(error)) return cannot_read(segment, error);
  report.read_bytes += to.size();
  return {};
}

base::Expected<void> RecoveryReader::scan(uint32_t segment, FoundSegment& found) {
  ++report.scanned_segments;
  const Geometry& geometry = identity_->geometry;
  const uint64_t grain_bytes = geometry.grain_bytes;
  const auto grains_most =
      static_cast<uint32_t>(geometry.grains(record_bytes(kMaxKeyBytes, geometry.value_bytes_max())));
  SegmentFooter& footer = found.footer;
  footer = {.generation = found.header.generation, .used_grains = 1};
  Bytes window = memory_.first(0);
  uint32_t begin = 1, end = 1;
  for (uint32_t grain = 1; grain < geometry.segment_grains();) {
    if (grain + grains_most > end && end < geometry.segment_grains()) {
      // The beginning of the next record, which has been read, goes to the front of the memory.
      const std::span rest = memory_.first((end - grain) * grain_bytes);
      memmove(rest.data(), window.data() + (grain - begin) * grain_bytes, rest.size());
      const uint64_t from = end * grain_bytes;
      begin = grain;
      end = std::min(grain + static_cast<uint32_t>(kMaxBytes / grain_bytes), geometry.segment_grains());
      const std::span all = memory_.first((end - begin) * grain_bytes);
      if (auto got = read_what_can_be(segment, from, all.subspan(rest.size()), found); !got) return got;
      window = all;
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
  if (found.is_summary_unread) found.unreadable_grains = std::max<uint64_t>(found.unreadable_grains, 1);
  report.unreadable_grains += found.unreadable_grains;
  return {};
}

base::Expected<Bytes> RecoveryReader::read_grain(uint32_t segment, uint32_t grain) {
  const uint64_t grain_bytes = identity_->geometry.grain_bytes;
  Bytes bytes;
  const auto is_read = try_read(segment, grain * grain_bytes, grain_bytes, bytes);
  if (!is_read) return std::unexpected(is_read.error());
  return bytes;
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
