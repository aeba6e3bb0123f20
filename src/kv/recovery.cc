#include "kv/recovery.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "kv/clock.h"
#include "sys/memory.h"
#include "sys/threads.h"

namespace kv {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;
constexpr uint64_t kScanBytes = 4 << 20;  // of a segment in memory at a time; more than any record
constexpr uint32_t kThreadsMax = 8;

// What one thread needs.
struct Reader {
  Channel channel;
  std::span<std::byte> memory;
  RecoveryReport report;

  base::Expected<void> open(storage::Device& device, const Geometry& geometry) {
    if (auto opened = channel.open_for_threads(device); !opened) return opened;
    const uint64_t summary =
        uint64_t{summary_grains(geometry, geometry.segment_grains())} * geometry.grain_bytes;
    auto mapped = sys::map_anonymous(std::max(kScanBytes, summary), "recovery of a store");
    if (!mapped) return std::unexpected(mapped.error());
    memory = {reinterpret_cast<std::byte*>(*mapped), std::max(kScanBytes, summary)};
    return {};
  }
  ~Reader() {
    if (!memory.empty()) sys::unmap(memory.data(), memory.size());
    channel.close();
  }
};

class Recovery {
 public:
  Recovery(storage::Device& device, const Identity& identity, Log& log, Index& index)
      : device_(device), identity_(identity), geometry_(identity.geometry), log_(log), index_(index) {
    segments_.resize(geometry_.segment_count);
  }

  base::Expected<RecoveryReport> run() {
    const uint32_t threads = std::clamp(sys::cpu_count(), 2u, kThreadsMax);
    readers_ = std::make_unique<Reader[]>(threads);
    reader_count_ = threads;
    for (uint32_t i = 0; i < threads; ++i)
      if (auto opened = readers_[i].open(device_, geometry_); !opened) return std::unexpected(opened.error());
    for (const Step step : {&Recovery::find, &Recovery::apply, &Recovery::end_tombstones, &Recovery::seal}) {
      // What a process that was killed has written may still be in the device's own cache.
      if (step == &Recovery::seal)
        if (const int error = readers_[0].channel.flush(); error != 0)
          return base::failure(error, "store: cannot flush: ", base::error_name(error));
      if (auto done = for_all(step); !done) return std::unexpected(done.error());
    }
    if (auto done = end_headless(readers_[0]); !done) return std::unexpected(done.error());
    RecoveryReport report;
    for (uint32_t i = 0; i < threads; ++i) report.add(readers_[i].report);
    return report;
  }

 private:
  using Step = base::Expected<void> (Recovery::*)(Reader& reader, uint32_t segment);
  struct Found {
    std::vector<SummaryEntry> entries;  // in the order of their grains
    uint32_t used_grains = 0;
    uint64_t first_expiry = 0;
    bool is_sealed = false;
  };
  // A step for all segments, many at a time.
  struct Work {
    Recovery& recovery;
    Step step;
    Reader* reader;
    std::atomic<uint32_t>& next;
    std::atomic<bool>& has_failed;
    base::Expected<void> result;
  };

  base::Expected<void> for_all(Step step) {
    std::atomic<uint32_t> next{0};
    std::atomic<bool> has_failed{false};
    std::vector<Work> works;
    for (uint32_t i = 0; i < reader_count_; ++i)
      works.push_back({*this, step, &readers_[i], next, has_failed, {}});
    std::vector<sys::Thread> threads;
    for (Work& work : works) {
      auto thread = sys::start_thread(&Recovery::work, &work, "kv-recovery");
      if (!thread) break;
      threads.push_back(*thread);
    }
    if (threads.empty()) work(&works[0]);
    for (const sys::Thread thread : threads) sys::join_thread(thread);
    for (const Work& work : works)
      if (!work.result) return work.result;
    return {};
  }

  static void work(void* argument) {
    Work& work = *static_cast<Work*>(argument);
    while (!work.has_failed.load(std::memory_order_relaxed)) {
      const uint32_t segment = work.next.fetch_add(1, std::memory_order_relaxed);
      if (segment >= work.recovery.segments_.size()) return;
      work.result = (work.recovery.*work.step)(*work.reader, segment);
      if (!work.result) work.has_failed.store(true, std::memory_order_relaxed);
    }
  }

  // To the beginning of the reader's memory.
  base::Expected<Bytes> read(Reader& reader, uint32_t segment, uint64_t offset, uint64_t bytes) {
    const std::span to = reader.memory.first(bytes);
    for (uint64_t at = 0; at < bytes; at += kPieceBytes) {
      const std::span piece = to.subspan(at, std::min(kPieceBytes, bytes - at));
      if (const int error = reader.channel.read(geometry_.segment_offset(segment) + offset + at, piece);
          error != 0)
        return base::failure(error, "store: cannot read segment ", segment, ": ", base::error_name(error));
    }
    reader.report.read_bytes += bytes;
    return to;
  }

  // Step 1.
  base::Expected<void> find(Reader& reader, uint32_t index) {
    auto head = read(reader, index, 0, geometry_.grain_bytes);
    if (!head) return std::unexpected(head.error());
    SegmentHeader header;
    bool has_header = read_segment_header(identity_, *head, header);
    const bool is_first_right = has_header;
    SegmentFooter footer;
    bool has_footer = false;
    if (!has_header || header.state == SegmentState::kUsed) {
      auto tail = read(reader, index, geometry_.segment_bytes - geometry_.grain_bytes, geometry_.grain_bytes);
      if (!tail) return std::unexpected(tail.error());
      if (!has_header) has_header = read_segment_header(identity_, *tail, header);
      memcpy(&footer, tail->last(sizeof footer).data(), sizeof footer);
      const uint64_t generation = has_header ? header.generation : footer.generation;
      has_footer = read_footer(identity_, generation, *tail, footer);
      if (!has_header && has_footer) header = {.generation = generation, .state = SegmentState::kUsed};
    }
    if (!has_header && !has_footer) {
      // Nothing is known of it: it is free, and what is left of it is not looked at again.
      ++reader.report.lost_segments;
      log_.recovered(index, Segment::State::kFree, 0);
      return {};
    }
    if (!is_first_right) ++reader.report.damaged_segments;
    log_.recovered_sequence(header.opened_sequence);
    if (header.state != SegmentState::kUsed) {
      log_.recovered(index,
                     header.state == SegmentState::kFree ? Segment::State::kFree : Segment::State::kEmptied,
                     header.generation);
      return {};
    }
    Found& segment = segments_[index];
    if (has_footer)
      if (auto listed = read_entries(reader, index, footer, segment); !listed) return listed;
    if (!segment.is_sealed)
      if (auto scanned = scan(reader, index, header.generation, segment); !scanned) return scanned;
    // One that was prepared, and no more, has nothing that could come back.
    const bool is_used = segment.is_sealed || !segment.entries.empty();
    log_.recovered(index, is_used ? Segment::State::kSealed : Segment::State::kEmptied, header.generation);
    log_.recovered_content(index, segment.used_grains, static_cast<uint32_t>(segment.entries.size()),
                           segment.first_expiry);
    reader.report.records += segment.entries.size();
    return {};
  }

  base::Expected<void> read_entries(Reader& reader, uint32_t index, const SegmentFooter& footer,
                                    Found& segment) {
    const uint64_t bytes = uint64_t{summary_grains(geometry_, footer.entry_count)} * geometry_.grain_bytes;
    auto summary = read(reader, index, geometry_.segment_bytes - bytes, bytes);
    if (!summary) return std::unexpected(summary.error());
    const auto entries = read_summary(identity_, footer, *summary);
    segment.is_sealed = entries.size() == footer.entry_count;
    if (!segment.is_sealed) return {};
    segment.entries.assign(entries.begin(), entries.end());
    segment.used_grains = footer.used_grains;
    segment.first_expiry = footer.first_expiry;
    return {};
  }

  // A record counts whose check is right; a grain that begins none is passed over.
  base::Expected<void> scan(Reader& reader, uint32_t index, uint64_t generation, Found& segment) {
    ++reader.report.scanned_segments;
    const uint64_t grain_bytes = geometry_.grain_bytes;
    const uint32_t grains_most =
        static_cast<uint32_t>(geometry_.grains(record_bytes(kKeyBytesMax, geometry_.value_bytes_max())));
    segment.used_grains = 1;
    Bytes window;
    uint32_t window_begin = 0, window_end = 0;
    for (uint32_t grain = 1; grain < geometry_.segment_grains();) {
      if (grain + grains_most > window_end && window_end < geometry_.segment_grains()) {
        window_begin = grain;
        window_end =
            std::min(grain + static_cast<uint32_t>(kScanBytes / grain_bytes), geometry_.segment_grains());
        auto got = read(reader, index, grain * grain_bytes, (window_end - window_begin) * grain_bytes);
        if (!got) return std::unexpected(got.error());
        window = *got;
      }
      Record record;
      if (read_record(identity_.secret, generation, window.subspan((grain - window_begin) * grain_bytes),
                      record) != Reading::kWhole) {
        ++grain;
        continue;
      }
      const auto grains = static_cast<uint32_t>(geometry_.grains(record.bytes()));
      segment.entries.push_back({.hash = hash_record(identity_.secret, record),
                                 .sequence_and_kind = record.header.sequence_and_kind,
                                 .grain = grain,
                                 .grains = grains});
      const uint64_t expiry = record.header.kind() == RecordKind::kTombstone ? 0 : record.header.expiry();
      if (expiry != 0 && (segment.first_expiry == 0 || expiry < segment.first_expiry))
        segment.first_expiry = expiry;
      reader.report.passed_grains += grain - segment.used_grains;
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
  base::Expected<void> apply(Reader&, uint32_t segment) {
    uint64_t last_sequence = 0;
    for (const SummaryEntry& entry : segments_[segment].entries) {
      if (entry.kind() == RecordKind::kVoid) continue;
      last_sequence = std::max(last_sequence, entry.sequence());
      const uint64_t address = geometry_.address(segment, entry.grain);
      // All of them are kept, as long as older copies may be somewhere.
      if (entry.kind() == RecordKind::kTombstone) log_.recovered_tombstone(address, entry.grains);
      while (!try_apply(entry, address)) {
        if (is_full_.load(std::memory_order_relaxed))
          return base::failure(ENOMEM, "store: no memory for the index");
      }
    }
    log_.recovered_sequence(last_sequence);
    return {};
  }

  // False: others have changed what it looked at.
  bool try_apply(const SummaryEntry& entry, uint64_t address) {
    const uint32_t size = size_code::of(entry.grains);
    const bool is_live = entry.kind() != RecordKind::kTombstone;
    Location candidates[Index::kCandidatesMax];
    uint64_t others[Index::kCandidatesMax];
    const size_t count = index_.find_all(entry.hash.low, candidates);
    for (size_t i = 0; i < count; ++i) {
      const SummaryEntry* const other = entry_at(candidates[i].address);
      others[i] = candidates[i].address;
      if (other->hash != entry.hash) continue;
      if (other->sequence() >= entry.sequence()) return true;
      if (!index_.replace(entry.hash.low, candidates[i].address, address, size)) return false;
      if (other->kind() != RecordKind::kTombstone) log_.release(candidates[i].address, candidates[i].size);
      if (is_live) log_.hold(address, size);
      return true;
    }
    switch (index_.insert(entry.hash.low, address, size, {others, count})) {
      case Index::Inserted::kDone:
        if (is_live) log_.hold(address, size);
        return true;
      case Index::Inserted::kOther: return false;
      case Index::Inserted::kFull: is_full_.store(true, std::memory_order_relaxed); return false;
    }
    return false;
  }

  // Step 3.
  base::Expected<void> end_tombstones(Reader&, uint32_t segment) {
    for (const SummaryEntry& entry : segments_[segment].entries)
      if (entry.kind() == RecordKind::kTombstone)
        index_.remove(entry.hash.low, geometry_.address(segment, entry.grain));
    return {};
  }

  // Step 5. A group of pieces with the same sequence has one head, or had.
  base::Expected<void> end_headless(Reader& reader) {
    std::map<uint64_t, std::vector<uint64_t>> groups;
    for (uint32_t i = 0; i < segments_.size(); ++i)
      for (const SummaryEntry& entry : segments_[i].entries)
        if (const uint64_t address = geometry_.address(i, entry.grain);
            entry.kind() == RecordKind::kPiece && size_in_index(entry.hash, address) != 0)
          groups[entry.sequence()].push_back(address);
    for (const auto& [sequence, addresses] : groups) {
      auto has = has_head(reader, sequence, addresses[0]);
      if (!has) return std::unexpected(has.error());
      if (*has) continue;
      for (const uint64_t address : addresses) {
        const SummaryEntry* const entry = entry_at(address);
        const uint32_t size = size_in_index(entry->hash, address);
        if (index_.remove(entry->hash.low, address)) log_.release(address, size);
      }
      reader.report.headless_pieces += addresses.size();
    }
    return {};
  }

  // 0: the index does not know the address by this hash.
  uint32_t size_in_index(const KeyHash& hash, uint64_t address) const {
    Location all[Index::kCandidatesMax];
    const size_t count = index_.find_all(hash.low, all);
    for (size_t i = 0; i < count; ++i)
      if (all[i].address == address) return all[i].size;
    return 0;
  }

  base::Expected<Reading> read_at(Reader& reader, uint64_t address, Record& record) {
    const auto segment = static_cast<uint32_t>(geometry_.segment_of(address));
    const SummaryEntry* const entry = entry_at(address);
    auto bytes = read(reader, segment, uint64_t{entry->grain} * geometry_.grain_bytes,
                      uint64_t{entry->grains} * geometry_.grain_bytes);
    if (!bytes) return std::unexpected(bytes.error());
    const uint64_t generation = log_.segment(segment).generation.load(std::memory_order_relaxed);
    return read_record(identity_.secret, generation, *bytes, record);
  }

  // Has the piece at this address a head, which the index knows, and which names its sequence? What is damaged counts as if.
  base::Expected<bool> has_head(Reader& reader, uint64_t sequence, uint64_t address) {
    Record record;
    auto reading = read_at(reader, address, record);
    if (!reading) return std::unexpected(reading.error());
    PieceKey key;
    if (*reading != Reading::kWhole || record.key.size() != sizeof key) return true;
    memcpy(&key, record.key.data(), sizeof key);
    Location all[Index::kCandidatesMax];
    const size_t count = index_.find_all(key.head.low, all);
    for (size_t i = 0; i < count; ++i) {
      const SummaryEntry* const entry = entry_at(all[i].address);
      if (entry->hash != key.head || entry->kind() != RecordKind::kHead) continue;
      reading = read_at(reader, all[i].address, record);
      if (!reading) return std::unexpected(reading.error());
      PiecesOf pieces;
      if (*reading != Reading::kWhole || record.value.size() != sizeof pieces) return true;
      memcpy(&pieces, record.value.data(), sizeof pieces);
      return pieces.sequence == sequence;
    }
    return false;
  }

  // Step 4.
  base::Expected<void> seal(Reader& reader, uint32_t index) {
    const Found& segment = segments_[index];
    if (segment.is_sealed || segment.entries.empty()) return {};
    if (const int error = log_.write_summary_of(reader.channel, index, segment.entries, segment.used_grains);
        error != 0)
      return base::failure(error, "store: cannot write the summary of segment ", index, ": ",
                           base::error_name(error));
    return {};
  }

  storage::Device& device_;
  const Identity& identity_;
  const Geometry& geometry_;
  Log& log_;
  Index& index_;
  std::vector<Found> segments_;
  std::unique_ptr<Reader[]> readers_;
  uint32_t reader_count_ = 0;
  std::atomic<bool> is_full_{false};
};

}  // namespace

void RecoveryReport::add(const RecoveryReport& other) {
  records += other.records;
  read_bytes += other.read_bytes;
  scanned_segments += other.scanned_segments;
  damaged_segments += other.damaged_segments;
  lost_segments += other.lost_segments;
  passed_grains += other.passed_grains;
  headless_pieces += other.headless_pieces;
}

base::Expected<RecoveryReport> recover(storage::Device& device, const Identity& identity, Log& log,
                                       Index& index) {
  return Recovery(device, identity, log, index).run();
}

}  // namespace kv
