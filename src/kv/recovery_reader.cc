#include "kv/recovery_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/ids.h"
#include "storage/piece_io.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint64_t kPieceBytes = 256 << 10;
// A place that cannot be read may take the device seconds: of a segment with many more than these others nearby are not tried.
constexpr uint64_t kUnreadableMost = 1024;

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
  // Calls ended(i, error) for each, in the order in which they were added: 0, or an errno value; EIO for what ended early. It is empty
  // afterwards.
  template <class Ended>
  void run(Channel& channel, const Ended& ended) {
    if (count_ != 0) channel.run(std::span(all_).first(count_));
    for (size_t i = 0; i < count_; ++i) {
      const storage::Io& io = *all_[i];
      ended(i, io.whole() ? 0 : io.error != 0 ? io.error : EIO);
    }
    clear();
  }

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
};
static_assert(RecoveryReader::kFoundAtOnce <= Batch::kMost);

base::Error cannot_read(uint32_t segment, int error) {
  return base::Error::of(error, "store: cannot read segment ", segment, ": ", base::error_name(error));
}

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
  if (auto got = read_into(segment, offset, to); !got) return std::unexpected(got.error());
  return to;
}

base::Expected<void> RecoveryReader::read_into(uint32_t segment, uint64_t offset, std::span<std::byte> to) {
  const uint64_t begin = identity_->geometry.segment_offset(segment) + offset;
  Batch batch;
  for (uint64_t at = 0; at < to.size();) {
    for (; at < to.size() && !batch.is_full(); at += kPieceBytes)
      batch.add(begin + at, to.subspan(at, std::min(kPieceBytes, to.size() - at)));
    int error = 0;
    batch.run(channel, [&](size_t, int own) { error = error != 0 ? error : own; });
    if (error != 0) return std::unexpected(cannot_read(segment, error));
  }
  report.read_bytes += to.size();
  return {};
}

// As read(); false: the medium cannot.
base::Expected<bool> RecoveryReader::try_read(uint32_t segment, uint64_t offset, uint64_t bytes, Bytes& to) {
  auto got = read(segment, offset, bytes);
  if (!got && !is_of_medium(got.error().number)) return std::unexpected(got.error());
  to = got ? *got : Bytes();
  return got.has_value();
}

base::Expected<void> RecoveryReader::find(uint32_t first, std::span<FoundSegment> found) {
  CHECK_LE(found.size(), kFoundAtOnce);
  // Of each: its first grain, and its last one if that is needed. Empty: the medium cannot read it.
  Bytes heads[kFoundAtOnce], tails[kFoundAtOnce];
  bool wants[kFoundAtOnce];
  std::fill_n(wants, found.size(), true);
  if (auto read = read_grains(first, 0, {wants, found.size()}, heads); !read) return read;
  for (size_t i = 0; i < found.size(); ++i) {
    found[i].is_known = read_segment_header(*identity_, heads[i], found[i].header);
    wants[i] = !found[i].is_known || found[i].header.state == SegmentState::kUsed;
  }
  if (auto read = read_grains(first, 1, {wants, found.size()}, tails); !read) return read;
  for (size_t i = 0; i < found.size(); ++i)
    if (wants[i]) look(heads[i], tails[i], found[i]);
  return {};
}

// One of the two grains that have headers, of the segments from `first` on that are wanted.
base::Expected<void> RecoveryReader::read_grains(uint32_t first, unsigned which, std::span<const bool> wants,
                                                 Bytes* grains) {
  const Geometry& geometry = identity_->geometry;
  size_t of_read[kFoundAtOnce], count = 0;
  Batch batch;
  for (size_t i = 0; i < wants.size(); ++i) {
    if (!wants[i]) continue;
    const std::span to = memory_.subspan((2 * i + which) * geometry.grain_bytes, geometry.grain_bytes);
    batch.add(geometry.header_offsets(first + i)[which], to);
    grains[i] = to;
    of_read[count++] = i;
  }
  report.read_bytes += count * geometry.grain_bytes;
  base::Expected<void> result;
  batch.run(channel, [&](size_t read, int error) {
    const size_t i = of_read[read];
    if (error != 0) grains[i] = {};
    if (error != 0 && !is_of_medium(error) && result)
      result = std::unexpected(cannot_read(first + static_cast<uint32_t>(i), error));
  });
  return result;
}

// What the first and the last grain say of a segment that is in use, or not known by its first one.
void RecoveryReader::look(Bytes head, Bytes tail, FoundSegment& found) {
  const bool is_first_right = found.is_known;
  if (!found.is_known) found.is_known = read_segment_header(*identity_, tail, found.header);
  uint64_t generation = found.header.generation;
  if (!found.is_known && !tail.empty()) {
    memcpy(&found.footer, tail.last(sizeof found.footer).data(), sizeof found.footer);
    generation = found.footer.generation;
  }
  found.has_summary = read_footer(*identity_, generation, tail, found.footer);
  if (!found.is_known && found.has_summary) {
    found.is_known = true;
    found.header = {.generation = generation, .state = SegmentState::kUsed};
  }
  found.is_unreadable = !found.is_known && (head.empty() || tail.empty());
  if (found.is_unreadable)
    ++report.unreadable_segments;
  else if (!is_first_right)
    ++(found.is_known ? report.damaged_segments : report.lost_segments);
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
  Bytes summary;
  const auto is_read = try_read(segment, geometry.segment_bytes - bytes, bytes, summary);
  if (!is_read) return std::unexpected(is_read.error());
  const auto entries = read_summary(*identity_, found.footer, summary);
  found.has_summary = *is_read && entries.size() == found.footer.entry_count;
  if (!found.has_summary) return scan(segment, found);
  found.entries.assign(entries.begin(), entries.end());
  return {};
}

// As read_into(), but a grain at a time where the medium cannot read more at once; what it cannot read at all is zeros.
base::Expected<void> RecoveryReader::read_what_can_be(uint32_t segment, uint64_t offset,
                                                      std::span<std::byte> to, FoundSegment& found) {
  auto whole = read_into(segment, offset, to);
  if (whole || !is_of_medium(whole.error().number)) return whole;
  const uint64_t grain_bytes = identity_->geometry.grain_bytes;
  const uint64_t first = identity_->geometry.segment_offset(segment) + offset;
  for (uint64_t at = 0; at < to.size(); at += kPieceBytes) {
    const std::span piece = to.subspan(at, std::min(kPieceBytes, to.size() - at));
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
    if (error != 0 && !is_of_medium(error)) return std::unexpected(cannot_read(segment, error));
  }
  report.read_bytes += to.size();
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
  uint32_t begin = 1, end = 1;
  for (uint32_t grain = 1; grain < geometry.segment_grains();) {
    if (grain + grains_most > end && end < geometry.segment_grains()) {
      // What is there of it already goes to the beginning.
      const std::span rest = memory_.first((end - grain) * grain_bytes);
      memmove(rest.data(), window.data() + (grain - begin) * grain_bytes, rest.size());
      const uint32_t read_from = std::exchange(
          end, std::min(grain + static_cast<uint32_t>(kMostBytes / grain_bytes), geometry.segment_grains()));
      begin = grain;
      window = memory_.first((end - begin) * grain_bytes);
      const std::span fresh = memory_.first(window.size()).subspan(rest.size());
      if (auto got = read_what_can_be(segment, read_from * grain_bytes, fresh, found); !got) return got;
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
