#include "kv/recovery/recovery.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/probe.h"
#include "kv/index/entry.h"
#include "kv/recovery/recovery_checkpoint.h"
#include "kv/recovery/recovery_inside.h"
#include "sys/threads.h"

namespace kv {
namespace {

constexpr uint64_t kTablesAtOnce = 8;
// This many more changes may have been made after the last known one, and this many more segments opened or given back after the highest generation.
constexpr uint64_t kUnknownChanges = uint64_t{1} << 32;
constexpr uint64_t kUnknownGenerations = 1 << 20;

// Does the segment, which is listed, get a summary?
bool is_to_seal(const FoundSegment& segment) {
  return !segment.has_summary && !segment.entries.empty() && segment.unreadable_grains == 0;
}

}  // namespace

Recovery::Recovery(storage::Device& device, const Identity& identity, Log& log)
    : device_(device),
      identity_(identity),
      geometry_(identity.geometry),
      segment_shift_(static_cast<unsigned>(std::countr_zero(identity.geometry.segment_grains()))),
      log_(log),
      segments_(geometry_.segment_count),
      is_replayed_(geometry_.segment_count),
      was_ready_(geometry_.segment_count),
      parted_(geometry_.segment_count) {}

base::Expected<RecoveredStore> Recovery::run(Index*& index) {
  if (auto opened = open_workers(); !opened) return std::unexpected(opened.error());
  if (auto done = find_all(); !done) return std::unexpected(done.error());
  if (auto checked = check_readable(); !checked) return std::unexpected(checked.error());
  base::probes::kv_recovery_step(1);
  if (auto loaded = load_checkpoint(index); !loaded) return std::unexpected(loaded.error());
  base::probes::kv_recovery_step(2);
  index_ = index;
  index_->begin_wide();
  if (auto done = for_all_segments(&Recovery::list); !done) return std::unexpected(done.error());
  if (recovered_.report.checkpoint != 0 && has_read_all() && !has_free_segment())
    if (auto done = leave_checkpoint(index); !done) return std::unexpected(done.error());
  if (recovered_.report.checkpoint == 0 && has_read_all())
    if (auto done = drop_copies(); !done) return std::unexpected(done.error());
  for (uint32_t i = 0; i < segments_.size(); ++i) tell_log(i);
  has_told_log_ = true;
  base::probes::kv_recovery_step(3);
  if (auto done = apply_all(); !done) return std::unexpected(done.error());
  base::probes::kv_recovery_step(4);
  if (auto done = for_all_segments(&Recovery::end_tombstones); !done) return std::unexpected(done.error());
  base::probes::kv_recovery_step(5);
  tell_log_what_lives();
  if (was_open())
    if (auto skipped = skip_lost(); !skipped) return std::unexpected(skipped.error());
  // What a killed process has written may still be in the device's own cache.
  if (const int error = workers_[0].reader.channel.flush(); error != 0)
    return base::failure(error, "store: cannot flush: ", base::error_name(error));
  if (auto done = for_all_segments(&Recovery::seal); !done) return std::unexpected(done.error());
  base::probes::kv_recovery_step(6);
  if (has_read_all())
    if (auto done = end_pieces(); !done) return std::unexpected(done.error());
  tell_log_of_unknown();
  for (uint32_t i = 0; i < worker_count_; ++i) recovered_.report.add(workers_[i].reader.report);
  return recovered_;
}

// --- threads ---

base::Expected<void> Recovery::open_workers() {
  worker_count_ = std::clamp(sys::cpu_count(), 2u, kMaxThreads);
  workers_ = std::make_unique<Worker[]>(worker_count_);
  for (uint32_t i = 0; i < worker_count_; ++i) {
    if (auto opened = workers_[i].reader.open(device_, identity_); !opened) return opened;
    workers_[i].live.resize(segments_.size());
  }
  return {};
}

base::Expected<void> Recovery::for_all_segments(Step step) {
  return for_all(segments_.size(), 1, [&](Worker& worker, uint64_t segment, uint64_t) {
    return (this->*step)(worker, static_cast<uint32_t>(segment));
  });
}

// --- steps 1 and 2 ---

base::Expected<void> Recovery::find_all() {
  const auto find = [&](Worker& worker, uint64_t begin, uint64_t end) {
    const std::span<FoundSegment> some = std::span(segments_).subspan(begin, end - begin);
    auto found = worker.reader.find(static_cast<uint32_t>(begin), some);
    for (const FoundSegment& segment : some)
      if (segment.is_known) log_.recovered_sequence(segment.header.opened_sequence);
    return found;
  };
  auto done = for_all(segments_.size(), RecoveryReader::kFoundAtOnce, find);
  if (!done || !identity_.is_cache) return done;
  for (const FoundSegment& segment : segments_)
    if (segment.is_known) recovered_.floor = std::max(recovered_.floor, segment.header.floor);
  return done;
}

bool Recovery::has_read_all() const {
  return std::all_of(workers_.get(), workers_.get() + worker_count_,
                     [](const Worker& worker) { return worker.reader.report.has_read_all(); });
}

// If more than half of a device cannot be read, it has failed as a whole.
base::Expected<void> Recovery::check_readable() const {
  const auto unreadable = static_cast<size_t>(std::ranges::count_if(segments_, &FoundSegment::is_unreadable));
  if (unreadable <= segments_.size() / 2) return {};
  return base::failure(EIO, "store: cannot read ", unreadable, " of ", segments_.size(), " segments");
}

base::Expected<void> Recovery::load_checkpoint(Index*& index) {
  std::map<uint64_t, std::vector<uint32_t>, std::greater<>> checkpoints;
  for (uint32_t i = 0; i < segments_.size(); ++i)
    if (segments_[i].is_known && segments_[i].header.state == SegmentState::kCheckpoint)
      checkpoints[segments_[i].header.checkpoint].push_back(i);
  if (!checkpoints.empty()) recovered_.last_checkpoint = checkpoints.begin()->first;
  for (auto& [number, parts] : checkpoints) {
    std::ranges::sort(parts, {}, [&](uint32_t i) { return segments_[i].header.part; });
    if (auto opened = open_index(index); !opened) return opened;
    auto restored = restore(number, parts, *index);
    const int error = restored ? 0 : restored.error().number;
    if (error != 0 && error != EBADMSG && error != ENOMEM && !is_of_medium(error)) return restored;
    if (error != 0) {
      if (error != ENOMEM)
        recovered_.rejected_checkpoints.push_back(
            {.number = number, .segments = parts, .has_gaps = has_gaps(parts), .error = error});
      continue;
    }
    recovered_.report.checkpoint = number;
    recovered_.checkpoint_segments = parts;
    return {};
  }
  for (uint32_t i = 0; i < segments_.size(); ++i) is_replayed_[i] = segments_[i].is_used();
  return open_index(index);
}

// REQUIRES: the parts are in their order.
bool Recovery::has_gaps(std::span<const uint32_t> parts) const {
  for (uint32_t i = 0; i < parts.size(); ++i)
    if (segments_[parts[i]].header.part != i) return true;
  return false;
}

// Does without the checkpoint, since with it the collector would have no room to begin with: now it gets the checkpoint's segments, and those that
// drop_copies() finds.
base::Expected<void> Recovery::leave_checkpoint(Index*& index) {
  if (auto opened = open_index(index); !opened) return opened;
  index_ = index;
  index_->begin_wide();
  recovered_.report.checkpoint = 0;
  recovered_.checkpoint_segments.clear();
  for (uint32_t i = 0; i < worker_count_; ++i) std::ranges::fill(workers_[i].live, Live{});
  for (uint32_t i = 0; i < segments_.size(); ++i) is_replayed_[i] = segments_[i].is_used();
  return for_all_segments(&Recovery::list);
}

base::Expected<void> Recovery::open_index(Index*& index) {
  if (index != nullptr) index->close();
  index = nullptr;
  auto opened = Index::open(geometry_.address_bits());
  if (!opened) return std::unexpected(opened.error());
  index = *opened;
  return {};
}

// Errors: EBADMSG: what has been read is no index; ENOMEM: there is no memory for it; those of I/O.
base::Expected<void> Recovery::restore(uint64_t number, std::span<const uint32_t> parts, Index& index) {
  CheckpointReader checkpoint(identity_, number, parts, index);
  if (auto read = by_all([&](Worker& worker) { return checkpoint.run(worker.reader); }); !read) return read;
  if (auto joined = index.join_images(); !joined) return joined;
  state_ = checkpoint.state();
  has_dropped_.store(false, std::memory_order_relaxed);
  was_ready_.assign(segments_.size(), 0);
  for (const uint32_t i : std::span(state_.unsealed).first(state_.unsealed_count).last(state_.ready_count))
    was_ready_[i] = 1;
  for (uint32_t i = 0; i < segments_.size(); ++i) is_replayed_[i] = segments_[i].is_used() && is_newer(i);
  for (const uint32_t i : std::span(state_.unsealed).first(state_.unsealed_count))
    is_replayed_[i] = segments_[i].is_used();
  // The segments that the checkpoint may know, including those about which nothing is known.
  std::vector<char> is_old(segments_.size());
  for (uint32_t i = 0; i < segments_.size(); ++i)
    is_old[i] = !segments_[i].is_known || (segments_[i].is_used() && !is_newer(i));
  const auto sift = [&](Worker& worker, uint64_t begin, uint64_t end) {
    const auto stays = [&](uint64_t address, uint32_t size) {
      if (!is_old[segment_of(address)]) {
        has_dropped_.store(true, std::memory_order_relaxed);
        return false;
      }
      hold(worker, address, size);
      return true;
    };
    for (uint64_t table = begin; table < end; ++table) index.sift(static_cast<uint32_t>(table), stays);
    return base::Expected<void>();
  };
  if (auto sifted = for_all(index.table_count(), kTablesAtOnce, sift); !sifted) return sifted;
  index.end_restore();
  log_.recovered_sequence(state_.next_sequence - 1);
  return {};
}

// --- step 3, and what the log is told ---

base::Expected<void> Recovery::list(Worker& worker, uint32_t index) {
  const FoundSegment& segment = segments_[index];
  if (!segment.is_used() || (!is_replayed_[index] && segment.has_summary)) return {};
  return list_once(worker, index);
}

base::Expected<void> Recovery::list_once(Worker& worker, uint32_t index) {
  FoundSegment& segment = segments_[index];
  if (segment.is_listed.load(std::memory_order_relaxed)) return {};
  const SegmentFooter before = segment.footer;
  auto listed = worker.reader.list(index, segment);
  // The log was told of a summary that has turned out to be damaged or unreadable: what that lists as void now counts if it is on the medium.
  if (listed && has_told_log_ && !segment.has_summary)
    log_.recovered_tombstones(index, before, segment.footer);
  return listed;
}

// REQUIRES: the segments that are to be listed have been.
Segment::State Recovery::state_of(uint32_t index) const {
  const FoundSegment& segment = segments_[index];
  // It may hold what is nowhere else.
  if (!segment.is_known) return Segment::State::kSealed;
  if (segment.header.state == SegmentState::kFree) return Segment::State::kFree;
  if (std::ranges::find(recovered_.checkpoint_segments, index) != recovered_.checkpoint_segments.end())
    return Segment::State::kCheckpoint;
  if (segment.is_used() && (segment.has_summary || !segment.entries.empty() ||
                            segment.unreadable_grains > 0 || known_records(index) > 0))
    return Segment::State::kSealed;
  // It was prepared, but has no records; or is of a checkpoint that is not used; or holds only copies.
  return Segment::State::kEmptied;
}

bool Recovery::has_free_segment() const {
  for (uint32_t i = 0; i < segments_.size(); ++i)
    if (const auto state = state_of(i); state == Segment::State::kFree || state == Segment::State::kEmptied)
      return true;
  return false;
}

void Recovery::tell_log(uint32_t index) {
  const FoundSegment& segment = segments_[index];
  const Segment::State state = state_of(index);
  if (state == Segment::State::kSealed && segment.is_known) {
    log_.recovered_content(index, segment.footer);
    recovered_.report.records += segment.footer.entry_count;
  }
  if (is_replayed_[index]) recovered_.report.replayed_records += segment.entries.size();
  log_.recovered(index, state, segment.is_known ? segment.header.generation : 0);
  if (segment.has_copies) log_.recovered_copies(index);
}

void Recovery::tell_log_what_lives() {
  for (uint32_t i = 0; i < worker_count_; ++i)
    for (uint32_t segment = 0; segment < segments_.size(); ++segment)
      log_.recovered_live(segment, workers_[i].live[segment].grains, workers_[i].live[segment].records);
}

// Has the last process ended without closing the store?
bool Recovery::was_open() const {
  return std::ranges::any_of(
      segments_, [](const FoundSegment& segment) { return segment.is_used() && !segment.has_summary; });
}

// A client may know a version whose record a power cut has taken: nothing else may get that version. A header says so, durably, before summaries are
// written: if this start ends early, the next one will take a store whose segments all have summaries for one that was closed.
base::Expected<void> Recovery::skip_lost() {
  log_.recovered_sequence(log_.last_sequence() + kUnknownChanges);
  log_.drop_below(recovered_.floor);
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    if (!is_to_seal(segments_[i])) continue;
    const int error = log_.write_header_again(workers_[0].reader.channel, i);
    if (error == 0) break;
    if (error == ENOMEM)
      return base::failure(error, "store: cannot write the header of segment ", i, ": ",
                           base::error_name(error));
  }
  return {};
}

// Comes last, since even the last step may find that something cannot be read. What is written from now on must not get generations or sequences that
// an unreadable segment may have.
void Recovery::tell_log_of_unknown() {
  for (uint32_t i = 0; i < segments_.size(); ++i)
    if (!segments_[i].is_known || segments_[i].unreadable_grains > 0) log_.recovered_unreadable(i);
  if (has_read_all()) return;
  log_.skip_generations(kUnknownGenerations);
  log_.recovered_sequence(log_.last_sequence() + kUnknownChanges);
}

// The segment's entries for its summary: a record that the index does not know has been superseded, and is listed as void. It may be a copy of a record
// that was removed while the collector moved it: the tombstone may end before this copy does, and a later start would take the copy for the key's
// record.
std::vector<SummaryEntry> Recovery::entries_that_count(uint32_t index) {
  const std::span<const SummaryEntry> entries = segments_[index].entries;
  std::vector<SummaryEntry> all(entries.begin(), entries.end());
  for (SummaryEntry& entry : all) {
    if (entry.kind() == RecordKind::kTombstone) continue;
    if (!index_->find_at(entry.hash.low, geometry_.address(index, entry.grain)).found)
      entry.sequence_and_kind = with_kind(entry.sequence(), RecordKind::kVoid);
  }
  return all;
}

// How many records of the segment the index knows.
uint64_t Recovery::known_records(uint32_t index) const {
  uint64_t records = 0;
  for (uint32_t i = 0; i < worker_count_; ++i) records += workers_[i].live[index].records;
  return records;
}

// If the index knows more records of the segment than those that count, a checkpoint has one that is damaged. That record keeps its segment, as it
// would if a summary listed it: otherwise the collector would give the segment back, and the index would point to whatever is written there next.
bool Recovery::is_left_damaged(uint32_t index, std::span<const SummaryEntry> that_count) {
  const auto is_known = [](const SummaryEntry& entry) {
    return entry.kind() != RecordKind::kTombstone && entry.kind() != RecordKind::kVoid;
  };
  if (known_records(index) == static_cast<uint64_t>(std::ranges::count_if(that_count, is_known)))
    return false;
  base::log({.name = "segment_damaged", .level = base::LogLevel::kError, .fields = {{"segment", index}}},
            "store: ", device_.name(), " has damaged records in segment ", index,
            ", which is left as it is; spillway check says which");
  log_.recovered_unreadable(index);
  has_left_damaged_.store(true, std::memory_order_relaxed);
  return true;
}

// Step 6.
base::Expected<void> Recovery::seal(Worker& worker, uint32_t index) {
  const FoundSegment& segment = segments_[index];
  if (!segment.is_used() || segment.has_summary || segment.unreadable_grains > 0) return {};
  const std::vector<SummaryEntry> entries = entries_that_count(index);
  if (is_left_damaged(index, entries) || entries.empty()) return {};
  const int error = log_.write_summary_of(worker.reader.channel, index, entries);
  if (error == 0) return {};
  if (error == ENOMEM)
    return base::failure(error, "store: cannot write the summary of segment ", index, ": ",
                         base::error_name(error));
  base::log({.name = "summary_put_off", .fields = {{"segment", index}, {"error", error}}},
            "store: ", device_.name(), " cannot take the summary of segment ", index, ": ",
            base::error_name(error), "; what is there can be read");
  ++worker.reader.report.unsealed_segments;
  return log_.recovered_unsealed(index, entries);
}

base::Expected<RecoveredStore> recover(storage::Device& device, const Identity& identity, Log& log,
                                       Index*& index) {
  return Recovery(device, identity, log).run(index);
}

}  // namespace kv
