#include "kv/recovery/check_segments.h"

#include <algorithm>

#include "base/ids.h"
#include "kv/media/checkpoint_format.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint64_t kWindowBytes = 4 << 20;  // more than any record
constexpr uint64_t kPieceBytes = 1 << 20;   // read at a time

}  // namespace

bool is_of_process(int error) {
  return error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN;
}

SegmentCheck::~SegmentCheck() {
  if (!memory_.empty()) sys::unmap(memory_.data(), memory_.size());
}

base::Expected<void> SegmentCheck::open() {
  auto memory = sys::map_anonymous(kWindowBytes, "the check of a store");
  if (!memory) return std::unexpected(memory.error());
  memory_ = {reinterpret_cast<std::byte*>(*memory), kWindowBytes};
  return {};
}

template <class... Parts>
void SegmentCheck::record_is_wrong(uint32_t segment, uint64_t grain, const Parts&... what) {
  if (lacking_ != 0) return;
  ++report_.damaged_records;
  findings_.add("segment ", segment, ", grain ", grain, " (byte ",
                geometry_.offset_of(geometry_.address(segment, static_cast<uint32_t>(grain))),
                "): ", what...);
}

template <class... Parts>
void SegmentCheck::segment_is_wrong(uint32_t segment, const Parts&... what) {
  if (lacking_ != 0) return;
  ++report_.damaged_segments;
  findings_.add("segment ", segment, " (byte ", geometry_.segment_offset(segment), "): ", what...);
}

int SegmentCheck::read(uint32_t segment, uint64_t grain, std::span<std::byte> to) {
  const uint64_t begin = geometry_.segment_offset(segment) + grain * geometry_.grain_bytes;
  for (uint64_t at = 0; at < to.size(); at += kPieceBytes) {
    const std::span piece = to.subspan(at, std::min(kPieceBytes, to.size() - at));
    if (const int error = channel_.read(begin + at, piece); error != 0) {
      if (is_of_process(error)) lacking_ = error;
      return error;
    }
    report_.read_bytes += piece.size();
  }
  return 0;
}

// `count` grains of the segment and what follows them before `end`, as far as it has been read; empty if they cannot be read.
Bytes SegmentCheck::grains_at(uint32_t segment, uint64_t grain, uint64_t count, uint64_t end) {
  const uint64_t grain_bytes = geometry_.grain_bytes;
  if (segment != window_segment_ || grain < window_begin_ || grain + count > window_end_) {
    window_segment_ = segment;
    window_begin_ = grain;
    window_end_ = std::min(end, grain + kWindowBytes / grain_bytes);
    int error = read(segment, grain, memory_.first((window_end_ - grain) * grain_bytes));
    // Then reads only what is asked for: it may be other grains that cannot be read.
    if (error != 0) {
      window_end_ = grain + count;
      error = read(segment, grain, memory_.first(count * grain_bytes));
    }
    if (error != 0) {
      window_end_ = 0;
      return {};
    }
  }
  return Bytes(memory_).subspan((grain - window_begin_) * grain_bytes, (window_end_ - grain) * grain_bytes);
}

base::Expected<void> SegmentCheck::run(uint32_t segment, CheckedContent& content) {
  const Known known = look(segment);
  if (known.generation != 0) {
    ++report_.segments;
    // Two segments with one generation: writes to one of them have gone to the other one's place.
    if (const auto [first, is_first] = segment_of_generation_.emplace(known.generation, segment); !is_first)
      segment_is_wrong(segment, "it holds what segment ", first->second,
                       " does: one of them was overwritten");
    if (known.has_footer && read_entries(segment, known.footer)) {
      check_sealed(segment, known, content);
    } else if (lacking_ == 0) {
      ++report_.unsealed_segments;
      scan(segment, known.generation, content);
    }
  }
  if (lacking_ != 0)
    return base::failure(lacking_, "cannot read segment ", segment, ": ", base::error_name(lacking_));
  return {};
}

// A segment's two headers are written one after the other, and later the footer over the second one. So any of them may be there, and each may be from
// an earlier life of the segment. If there is none, that is damage, or a write was cut off.
SegmentCheck::Known SegmentCheck::look(uint32_t segment) {
  const uint64_t grain_bytes = geometry_.grain_bytes;
  alignas(4096) std::byte block[4096];
  const std::span<std::byte> grain(block, grain_bytes);
  int error = read(segment, 0, grain);
  SegmentHeader header;
  bool has_header = error == 0 && read_segment_header(identity_, grain, header);
  if (error != 0)
    segment_is_wrong(segment, "the header cannot be read: ", base::error_name(error));
  else if (!has_header)
    segment_is_wrong(segment, "the header is damaged");
  // A segment of a checkpoint has no footer, and says nothing that the log does not say.
  if (has_header && header.state == SegmentState::kCheckpoint) return {};

  Known known;
  error = read(segment, geometry_.segment_grains() - 1, grain);
  if (error != 0) {
    segment_is_wrong(segment, "the footer cannot be read: ", base::error_name(error));
  } else {
    memcpy(&known.footer, grain.last(sizeof known.footer).data(), sizeof known.footer);
    known.has_footer = read_footer(identity_, known.footer.generation, grain, known.footer);
    SegmentHeader second;
    const bool has_second = read_segment_header(identity_, grain, second);
    if (!known.has_footer && !has_second)
      segment_is_wrong(segment, "the footer, or second header, is damaged");
    // As in recovery, the second header counts if the first one is damaged, or is older and of a segment in use. If the first one is of a free segment,
    // a younger second one is left from preparing the segment, which was cut off: no record has its generation, and other segments may get it.
    const bool is_younger = has_header && header.state == SegmentState::kUsed && has_second &&
                            second.generation > header.generation;
    if (is_younger || (!has_header && has_second)) {
      header = second;
      has_header = true;
    }
    if (!has_header && known.has_footer) {
      header = {.generation = known.footer.generation, .state = SegmentState::kUsed};
      has_header = true;
    }
    known.has_footer = known.has_footer && known.footer.generation == header.generation;
  }
  if (has_header && header.state == SegmentState::kUsed) known.generation = header.generation;
  return known;
}

bool SegmentCheck::read_entries(uint32_t segment, const SegmentFooter& footer) {
  const uint64_t grains = summary_grains(geometry_, footer.entry_count);
  // Read to aligned memory, which a vector's is not.
  const uint64_t bytes = grains * geometry_.grain_bytes;
  auto memory = sys::map_anonymous(bytes, "the check of a store");
  if (!memory) {
    lacking_ = memory.error().number;
    return false;
  }
  const std::span to(reinterpret_cast<std::byte*>(*memory), bytes);
  const int error = read(segment, geometry_.segment_grains() - grains, to);
  if (error == 0) summary_.assign(to.begin(), to.end());
  sys::unmap(*memory, bytes);
  if (error != 0) {
    segment_is_wrong(segment, "the summary cannot be read: ", base::error_name(error));
    return false;
  }
  entries_ = read_summary(identity_, footer, summary_);
  if (entries_.size() == footer.entry_count) return true;
  segment_is_wrong(segment, "the summary is damaged");
  return false;
}

void SegmentCheck::check_sealed(uint32_t segment, const Known& known, CheckedContent& content) {
  uint64_t last_sequence = 0, first_expiry = 0;
  uint64_t end = 1;
  for (const SummaryEntry& entry : entries_) {
    last_sequence = std::max(last_sequence, entry.sequence());
    end = uint64_t{entry.grain} + entry.grains;
    if (entry.kind() == RecordKind::kVoid) continue;
    ++report_.records;
    Record record;
    const bool is_right = check_entry(segment, known.generation, entry, record) &&
                          take_head(segment, entry.grain, record, content);
    const uint64_t expiry = is_right && entry.kind() != RecordKind::kTombstone ? record.header.expiry() : 0;
    if (expiry != 0 && (first_expiry == 0 || expiry < first_expiry)) first_expiry = expiry;
    content.records.push_back({.hash = entry.hash,
                               .sequence_and_kind = entry.sequence_and_kind,
                               .address = geometry_.address(segment, entry.grain),
                               .grains = entry.grains,
                               .is_damaged = !is_right});
  }
  const SegmentFooter& footer = known.footer;
  if (footer.last_sequence != last_sequence)
    segment_is_wrong(segment, "the footer's highest sequence is ", footer.last_sequence,
                     ", but its records' ", last_sequence);
  if (footer.used_grains < end)
    segment_is_wrong(segment, "the footer's last record ends at grain ", footer.used_grains,
                     ", but it does at ", end);
  if (footer.sealed_generation < known.generation)
    segment_is_wrong(segment, "sealed at generation ", footer.sealed_generation, ", before it was opened at ",
                     known.generation);
  // The footer's may be earlier: that of a record that could not be written.
  if (first_expiry != 0 && (footer.first_expiry == 0 || footer.first_expiry > first_expiry))
    segment_is_wrong(segment, "the footer's first expiry is ", footer.first_expiry, ", but its records' ",
                     first_expiry);
}

// Is the record there, and does it match the entry?
bool SegmentCheck::check_entry(uint32_t segment, uint64_t generation, const SummaryEntry& entry,
                               Record& record) {
  const auto wrong = [&](const auto&... what) {
    record_is_wrong(segment, entry.grain, what...);
    return false;
  };
  // The window ends with the last record that is listed.
  const Bytes bytes =
      grains_at(segment, entry.grain, entry.grains, uint64_t{entries_.back().grain} + entries_.back().grains);
  if (bytes.empty()) return wrong("the record cannot be read");
  if (read_record(identity_.secret, generation, bytes.first(uint64_t{entry.grains} * geometry_.grain_bytes),
                  record) != Reading::kWhole)
    return wrong("the record is damaged");
  if (geometry_.grains(record.bytes()) != entry.grains)
    return wrong("the record has ", geometry_.grains(record.bytes()), " grains, in the summary ",
                 entry.grains);
  if (record.header.sequence_and_kind != entry.sequence_and_kind)
    return wrong("the record has sequence ", record.header.sequence(), " and kind ",
                 static_cast<uint32_t>(record.header.kind()), ", in the summary ", entry.sequence(), " and ",
                 static_cast<uint32_t>(entry.kind()));
  if (hash_record(identity_.secret, record) != entry.hash)
    return wrong("the record's key is another one than the summary's");
  return true;
}

// False: it is a head that names something impossible.
bool SegmentCheck::take_head(uint32_t segment, uint32_t grain, const Record& record,
                             CheckedContent& content) {
  if (record.header.kind() != RecordKind::kHead) return true;
  CheckedHead head = {.address = geometry_.address(segment, grain), .of = {}};
  if (record.value.size() == sizeof head.of) memcpy(&head.of, record.value.data(), sizeof head.of);
  if (!head.of.is_possible(geometry_)) {
    record_is_wrong(segment, grain, "the record is of a large value, and does not say which");
    return false;
  }
  content.heads.push_back(head);
  return true;
}

// Reads a segment without a summary. A gap before a record held, or was to hold, a record. After the last record, only what begins like one was to be
// one.
void SegmentCheck::scan(uint32_t segment, uint64_t generation, CheckedContent& content) {
  const uint64_t end = geometry_.segment_grains();
  const uint64_t most = geometry_.record_grains_max();
  constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t gap = kNone, begun = kNone;  // where a gap begins; where in it something begins like a record
  const auto end_gap = [&](bool was_one) {
    if (was_one || begun != kNone)
      record_is_wrong(segment, begun != kNone ? begun : gap,
                      "the record is damaged, or was being written when the process ended");
    gap = begun = kNone;
  };
  for (uint64_t grain = 1; grain < end;) {
    Bytes bytes = grains_at(segment, grain, std::min(most, end - grain), end);
    if (bytes.empty()) bytes = grains_at(segment, grain, 1, end);
    Record record;
    if (bytes.empty() || read_record(identity_.secret, generation, bytes, record) != Reading::kWhole) {
      if (gap == kNone) gap = grain;
      const bool begins_one = bytes.empty() || (record.header.generation == generation &&
                                                record.header.kind() < RecordKind::kVoid);
      if (begins_one && begun == kNone) begun = grain;
      ++grain;
      continue;
    }
    if (gap != kNone) end_gap(true);
    ++report_.records;
    const auto grains = static_cast<uint32_t>(geometry_.grains(record.bytes()));
    content.records.push_back(
        {.hash = hash_record(identity_.secret, record),
         .sequence_and_kind = record.header.sequence_and_kind,
         .address = geometry_.address(segment, static_cast<uint32_t>(grain)),
         .grains = grains,
         .is_damaged = !take_head(segment, static_cast<uint32_t>(grain), record, content)});
    grain += grains;
  }
  if (gap != kNone) end_gap(false);
}

bool SegmentCheck::has_end(uint32_t segment, uint64_t checkpoint) {
  const uint64_t end = geometry_.segment_grains() - 1;
  for (uint64_t grain = 1; grain < end; ++grain) {
    PieceHeader header;
    const Bytes first = grains_at(segment, grain, 1, end);
    if (!read_piece_header(identity_, first, header) || header.checkpoint != checkpoint ||
        header.kind != PieceKind::kEnd)
      continue;
    const uint64_t grains = geometry_.grains(header.bytes);
    CheckpointState state;
    return grain + grains <= end &&
           read_piece(identity_, header, grains_at(segment, grain, grains, end), state);
  }
  return false;
}

}  // namespace kv
