#include "kv/recovery_reader.h"

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "storage/piece_io.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint64_t kPieceBytes = 256 << 10;

// Reads in flight together.
class Batch {
 public:
  static constexpr size_t kMost = 32;

  ~Batch() { clear(); }
  Batch() = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  size_t size() const { return count_; }
  bool is_full() const { return count_ == kMost; }
  // REQUIRES: not full.
  void add(uint64_t offset_bytes, std::span<std::byte> to) {
    all_[count_] = new (&memory_[count_])
        storage::PieceIo(storage::Operation::kRead, offset_bytes, to.data(), to.size());
    ++count_;
  }
  // 0, or an errno value of one of them, which begins at failed_bytes(); EIO for what ended early. It is empty afterwards.
  int run(Channel& channel) {
    if (count_ != 0) channel.run(std::span(all_).first(count_));
    int error = 0;
    for (size_t i = 0; i < count_; ++i) {
      if (error != 0 || all_[i]->whole()) continue;
      error = all_[i]->error != 0 ? all_[i]->error : EIO;
      failed_bytes_ = all_[i]->offset_bytes;
    }
    clear();
    return error;
  }
  uint64_t failed_bytes() const { return failed_bytes_; }

 private:
  void clear() {
    for (size_t i = 0; i < count_; ++i) static_cast<storage::PieceIo*>(all_[i])->~PieceIo();
    count_ = 0;
  }

  struct alignas(storage::PieceIo) Memory {
    std::byte bytes[sizeof(storage::PieceIo)];
  };
  Memory memory_[kMost];
  storage::Io* all_[kMost];
  size_t count_ = 0;
  uint64_t failed_bytes_ = 0;
};
static_assert(RecoveryReader::kFoundAtOnce <= Batch::kMost);

}  // namespace

void RecoveryReport::add(const RecoveryReport& other) {
  records += other.records;
  read_bytes += other.read_bytes;
  scanned_segments += other.scanned_segments;
  damaged_segments += other.damaged_segments;
  lost_segments += other.lost_segments;
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
  if (auto got = read_into(segment, offset, to); !got) return std::unexpected(got.error());
  return to;
}

base::Expected<void> RecoveryReader::read_into(uint32_t segment, uint64_t offset, std::span<std::byte> to) {
  const uint64_t begin = identity_->geometry.segment_offset(segment) + offset;
  Batch batch;
  for (uint64_t at = 0; at < to.size();) {
    for (; at < to.size() && !batch.is_full(); at += kPieceBytes)
      batch.add(begin + at, to.subspan(at, std::min(kPieceBytes, to.size() - at)));
    if (const int error = batch.run(channel); error != 0)
      return base::failure(error, "store: cannot read segment ", segment, ": ", base::error_name(error));
  }
  report.read_bytes += to.size();
  return {};
}

base::Expected<void> RecoveryReader::find(uint32_t first, std::span<FoundSegment> found) {
  CHECK_LE(found.size(), kFoundAtOnce);
  const Geometry& geometry = identity_->geometry;
  const auto grain = [&](size_t index) {
    return memory_.subspan(index * geometry.grain_bytes, geometry.grain_bytes);
  };
  // Of each: its first grain, its last one.
  for (const size_t which : {0, 1}) {
    Batch batch;
    for (size_t i = 0; i < found.size(); ++i)
      if (which == 0 || needs_tail(found[i]))
        batch.add(geometry.header_offsets(first + i)[which], grain(2 * i + which));
    report.read_bytes += batch.size() * geometry.grain_bytes;
    if (const int error = batch.run(channel); error != 0)
      return base::failure(error, "store: cannot read segment ",
                           (batch.failed_bytes() - kSegmentsOffset) / geometry.segment_bytes, ": ",
                           base::error_name(error));
    if (which == 1) break;
    for (size_t i = 0; i < found.size(); ++i)
      found[i].is_known = read_segment_header(*identity_, grain(2 * i), found[i].header);
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (needs_tail(found[i])) look_at_tail(grain(2 * i + 1), found[i]);
  return {};
}

// Is there something to learn from the last grain?
bool RecoveryReader::needs_tail(const FoundSegment& found) {
  return !found.is_known || found.header.state == SegmentState::kUsed;
}

void RecoveryReader::look_at_tail(Bytes tail, FoundSegment& found) {
  const bool is_first_right = found.is_known;
  if (!found.is_known) found.is_known = read_segment_header(*identity_, tail, found.header);
  uint64_t generation = found.header.generation;
  if (!found.is_known) {
    memcpy(&found.footer, tail.last(sizeof found.footer).data(), sizeof found.footer);
    generation = found.footer.generation;
  }
  found.has_summary = read_footer(*identity_, generation, tail, found.footer);
  if (!found.is_known && found.has_summary) {
    found.is_known = true;
    found.header = {.generation = generation, .state = SegmentState::kUsed};
  }
  if (!is_first_right) ++(found.is_known ? report.damaged_segments : report.lost_segments);
}

base::Expected<void> RecoveryReader::list(uint32_t segment, FoundSegment& found) {
  auto listed = found.has_summary ? read_entries(segment, found) : scan(segment, found);
  // Pairs with the acquire of who looks whether it is.
  if (listed) found.is_listed.store(true, std::memory_order_release);
  return listed;
}

base::Expected<void> RecoveryReader::read_entries(uint32_t segment, FoundSegment& found) {
  const Geometry& geometry = identity_->geometry;
  const uint64_t bytes = uint64_t{summary_grains(geometry, found.footer.entry_count)} * geometry.grain_bytes;
  auto summary = read(segment, geometry.segment_bytes - bytes, bytes);
  if (!summary) return std::unexpected(summary.error());
  const auto entries = read_summary(*identity_, found.footer, *summary);
  found.has_summary = entries.size() == found.footer.entry_count;
  if (!found.has_summary) return scan(segment, found);
  found.entries.assign(entries.begin(), entries.end());
  return {};
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
      auto got = read(segment, grain * grain_bytes, (end - begin) * grain_bytes);
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
  return {};
}

base::Expected<Reading> RecoveryReader::read_record(const FoundSegment& found, uint32_t segment,
                                                    const SummaryEntry& entry, Record& record) {
  const uint64_t grain_bytes = identity_->geometry.grain_bytes;
  auto bytes = read(segment, entry.grain * grain_bytes, entry.grains * grain_bytes);
  if (!bytes) return std::unexpected(bytes.error());
  return kv::read_record(identity_->secret, found.header.generation, *bytes, record);
}

}  // namespace kv
