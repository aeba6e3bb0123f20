#include "kv/recovery.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;

class Recovery {
 public:
  Recovery(const Identity& identity, Channel& channel, Log& log, Index& index)
      : identity_(identity), geometry_(identity.geometry), channel_(channel), log_(log), index_(index) {
    segments_.resize(geometry_.segment_count);
  }
  ~Recovery() {
    if (!memory_.empty()) sys::unmap(memory_.data(), memory_.size());
  }

  base::Expected<RecoveryReport> run() {
    auto memory = sys::map_anonymous(geometry_.segment_bytes, "recovery of a store");
    if (!memory) return std::unexpected(memory.error());
    memory_ = {reinterpret_cast<std::byte*>(*memory), geometry_.segment_bytes};
    for (uint32_t i = 0; i < segments_.size(); ++i)
      if (auto found = find(i); !found) return std::unexpected(found.error());
    for (uint32_t i = 0; i < segments_.size(); ++i)
      for (const SummaryEntry& entry : segments_[i].entries)
        if (auto applied = apply(i, entry); !applied) return std::unexpected(applied.error());
    for (uint32_t i = 0; i < segments_.size(); ++i)
      for (const SummaryEntry& entry : segments_[i].entries)
        if (entry.kind() == RecordKind::kTombstone)
          index_.remove(entry.hash.low, geometry_.address(i, entry.grain));
    if (auto sealed = seal(); !sealed) return std::unexpected(sealed.error());
    return report_;
  }

 private:
  struct Found {
    std::vector<SummaryEntry> entries;  // in the order of their grains
    uint32_t used_grains = 0;
    bool is_sealed = false;
  };

  base::Expected<Bytes> read(uint32_t segment, uint64_t offset, uint64_t bytes) {
    const std::span to = memory_.subspan(offset, bytes);
    for (uint64_t at = 0; at < bytes; at += kPieceBytes) {
      const std::span piece = to.subspan(at, std::min(kPieceBytes, bytes - at));
      if (const int error = channel_.read(geometry_.segment_offset(segment) + offset + at, piece); error != 0)
        return base::failure(error, "store: cannot read segment ", segment, ": ", base::error_name(error));
    }
    report_.read_bytes += bytes;
    return to;
  }

  // Step 1.
  base::Expected<void> find(uint32_t index) {
    auto head = read(index, 0, geometry_.grain_bytes);
    if (!head) return std::unexpected(head.error());
    SegmentHeader header;
    const bool has_header = read_segment_header(identity_, *head, header);
    if (has_header && header.state == SegmentState::kFree) {
      log_.recovered(index, Segment::State::kFree, header.generation);
      return {};
    }
    auto tail = read(index, geometry_.segment_bytes - geometry_.grain_bytes, geometry_.grain_bytes);
    if (!tail) return std::unexpected(tail.error());
    SegmentFooter footer;
    memcpy(&footer, tail->last(sizeof footer).data(), sizeof footer);
    const uint64_t generation = has_header ? header.generation : footer.generation;
    const bool has_footer = read_footer(identity_, generation, *tail, footer);
    if (!has_header) ++(has_footer ? report_.damaged_segments : report_.lost_segments);
    Found& segment = segments_[index];
    if (has_footer) {
      if (auto listed = read_entries(index, footer, segment); !listed) return listed;
    }
    if (!segment.is_sealed && (has_header || has_footer)) {
      if (auto scanned = scan(index, generation, segment); !scanned) return scanned;
    }
    // Nothing is known of a segment that is lost; it is free, and what is left of it is not looked at again.
    const bool is_used = segment.is_sealed || !segment.entries.empty();
    log_.recovered(index, is_used ? Segment::State::kSealed : Segment::State::kFree,
                   has_header || has_footer ? generation : 0);
    report_.records += segment.entries.size();
    return {};
  }

  base::Expected<void> read_entries(uint32_t index, const SegmentFooter& footer, Found& segment) {
    const uint64_t bytes = uint64_t{summary_grains(geometry_, footer.entry_count)} * geometry_.grain_bytes;
    auto summary = read(index, geometry_.segment_bytes - bytes, bytes);
    if (!summary) return std::unexpected(summary.error());
    const auto entries = read_summary(identity_, footer, *summary);
    segment.is_sealed = entries.size() == footer.entry_count;
    if (!segment.is_sealed) return {};
    segment.entries.assign(entries.begin(), entries.end());
    segment.used_grains = footer.used_grains;
    return {};
  }

  base::Expected<void> scan(uint32_t index, uint64_t generation, Found& segment) {
    ++report_.scanned_segments;
    auto all = read(index, 0, geometry_.segment_bytes);
    if (!all) return std::unexpected(all.error());
    segment.used_grains = 1;
    for (uint32_t grain = 1; grain < geometry_.segment_grains();) {
      Record record;
      if (read_record(identity_.secret, generation, all->subspan(uint64_t{grain} * geometry_.grain_bytes),
                      record) != Reading::kWhole) {
        ++grain;
        continue;
      }
      const auto grains = static_cast<uint32_t>(geometry_.grains(record.bytes()));
      segment.entries.push_back({.hash = hash_key(identity_.secret, record.key),
                                 .sequence_and_kind = record.header.sequence_and_kind,
                                 .grain = grain,
                                 .grains = grains});
      report_.passed_grains += grain - segment.used_grains;
      grain += grains;
      segment.used_grains = grain;
    }
    return {};
  }

  const SummaryEntry* entry_at(uint64_t address) const {
    const auto& entries = segments_[geometry_.segment_of(address)].entries;
    const uint32_t grain = geometry_.grain_of(address);
    const auto at = std::ranges::lower_bound(entries, grain, {}, &SummaryEntry::grain);
    CHECK(at != entries.end() && at->grain == grain);
    return &*at;
  }

  // Step 2.
  base::Expected<void> apply(uint32_t segment, const SummaryEntry& entry) {
    if (entry.kind() == RecordKind::kVoid) return {};
    log_.recovered_sequence(entry.sequence());
    const uint64_t address = geometry_.address(segment, entry.grain);
    const uint32_t size = size_code::of(entry.grains);
    Location candidates[Index::kCandidatesMax];
    uint64_t others[Index::kCandidatesMax];
    const size_t count = index_.find_all(entry.hash.low, candidates);
    for (size_t i = 0; i < count; ++i) {
      const SummaryEntry* const other = entry_at(candidates[i].address);
      others[i] = candidates[i].address;
      if (other->hash != entry.hash) continue;
      if (other->sequence() >= entry.sequence()) return {};
      CHECK(index_.replace(entry.hash.low, candidates[i].address, address, size));
      log_.release(candidates[i].address, candidates[i].size);
      log_.hold(address, size);
      return {};
    }
    if (index_.insert(entry.hash.low, address, size, {others, count}) != Index::Inserted::kDone)
      return base::failure(ENOMEM, "store: no memory for the index");
    log_.hold(address, size);
    return {};
  }

  // Step 4. What a process that was killed has written may still be in the device's own cache.
  base::Expected<void> seal() {
    if (const int error = channel_.flush(); error != 0)
      return base::failure(error, "store: cannot flush: ", base::error_name(error));
    for (uint32_t i = 0; i < segments_.size(); ++i) {
      if (segments_[i].is_sealed || segments_[i].entries.empty()) continue;
      if (const int error =
              log_.write_summary_of(channel_, i, segments_[i].entries, segments_[i].used_grains);
          error != 0)
        return base::failure(error, "store: cannot write the summary of segment ", i, ": ",
                             base::error_name(error));
    }
    return {};
  }

  const Identity& identity_;
  const Geometry& geometry_;
  Channel& channel_;
  Log& log_;
  Index& index_;
  std::vector<Found> segments_;
  std::span<std::byte> memory_;
  RecoveryReport report_;
};

}  // namespace

base::Expected<RecoveryReport> recover(const Identity& identity, Channel& channel, Log& log, Index& index) {
  return Recovery(identity, channel, log, index).run();
}

}  // namespace kv
