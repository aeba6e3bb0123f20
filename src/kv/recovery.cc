#include "kv/recovery.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "kv/checkpoint.h"
#include "kv/entry.h"
#include "sys/threads.h"

namespace kv {
namespace {

constexpr uint32_t kThreadsMax = 8;
constexpr uint32_t kLocks = 64;
// What is not known may have been of so many changes, and segments opened or given back, after the last that is.
constexpr uint64_t kUnknownChanges = uint64_t{1} << 32;
constexpr uint64_t kUnknownGenerations = 1 << 20;

class Recovery {
 public:
  Recovery(storage::Device& device, const Identity& identity, Log& log)
      : device_(device), identity_(identity), geometry_(identity.geometry), log_(log) {
    segments_.resize(geometry_.segment_count);
    is_replayed_.resize(geometry_.segment_count);
  }

  base::Expected<RecoveredStore> run(Index*& index) {
    reader_count_ = std::clamp(sys::cpu_count(), 2u, kThreadsMax);
    readers_ = std::make_unique<RecoveryReader[]>(reader_count_);
    for (uint32_t i = 0; i < reader_count_; ++i)
      if (auto opened = readers_[i].open(device_, identity_); !opened) return std::unexpected(opened.error());
    if (auto done = for_all(&Recovery::find); !done) return std::unexpected(done.error());
    if (auto checked = check_readable(); !checked) return std::unexpected(checked.error());
    if (auto loaded = load_checkpoint(index); !loaded) return std::unexpected(loaded.error());
    index_ = index;
    if (auto done = for_all(&Recovery::list); !done) return std::unexpected(done.error());
    for (uint32_t i = 0; i < segments_.size(); ++i) tell_log(i);
    tell_log_of_unknown();
    for (const Step step : {&Recovery::apply, &Recovery::end_tombstones})
      if (auto done = for_all(step); !done) return std::unexpected(done.error());
    // What a process that was killed has written may still be in the device's own cache.
    if (const int error = readers_[0].channel.flush(); error != 0)
      return base::failure(error, "store: cannot flush: ", base::error_name(error));
    if (auto done = for_all(&Recovery::seal); !done) return std::unexpected(done.error());
    if (has_read_all())
      if (auto done = end_pieces(readers_[0]); !done) return std::unexpected(done.error());
    for (uint32_t i = 0; i < reader_count_; ++i) recovered_.report.add(readers_[i].report);
    return recovered_;
  }

 private:
  using Step = base::Expected<void> (Recovery::*)(RecoveryReader& reader, uint32_t segment);
  // A step for all segments, many at a time.
  struct Work {
    Recovery& recovery;
    Step step;
    RecoveryReader* reader;
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

  // Step 1.
  base::Expected<void> find(RecoveryReader& reader, uint32_t index) {
    auto found = reader.find(index, segments_[index]);
    if (found && segments_[index].is_known) log_.recovered_sequence(segments_[index].header.opened_sequence);
    return found;
  }

  bool has_read_all() const {
    return std::all_of(readers_.get(), readers_.get() + reader_count_,
                       [](const RecoveryReader& reader) { return reader.report.has_read_all(); });
  }

  // A device of which most cannot be read has failed as a whole.
  base::Expected<void> check_readable() const {
    const auto unreadable =
        static_cast<size_t>(std::ranges::count_if(segments_, &FoundSegment::is_unreadable));
    if (unreadable <= segments_.size() / 2) return {};
    return base::failure(EIO, "store: cannot read ", unreadable, " of ", segments_.size(), " segments");
  }

  // Step 2.
  base::Expected<void> load_checkpoint(Index*& index) {
    std::map<uint64_t, std::vector<uint32_t>, std::greater<>> checkpoints;
    for (uint32_t i = 0; i < segments_.size(); ++i)
      if (segments_[i].is_known && segments_[i].header.state == SegmentState::kCheckpoint)
        checkpoints[segments_[i].header.checkpoint].push_back(i);
    if (!checkpoints.empty()) recovered_.last_checkpoint = checkpoints.begin()->first;
    for (auto& [number, parts] : checkpoints) {
      std::ranges::sort(parts, {}, [&](uint32_t i) { return segments_[i].header.part; });
      if (auto opened = open_index(index); !opened) return opened;
      auto loaded = read_checkpoint(readers_[0], identity_, number, parts, *index, state_);
      const int error = loaded ? 0 : loaded.error().number;
      if (error != 0 && error != EBADMSG && !is_of_medium(error)) return loaded;
      if (loaded && restore(*index)) {
        recovered_.report.checkpoint = number;
        recovered_.checkpoint_segments = parts;
        return {};
      }
    }
    for (uint32_t i = 0; i < segments_.size(); ++i) is_replayed_[i] = segments_[i].is_used();
    return open_index(index);
  }

  base::Expected<void> open_index(Index*& index) {
    if (index != nullptr) index->close();
    index = nullptr;
    auto opened = Index::open(geometry_.address_bits());
    if (!opened) return std::unexpected(opened.error());
    index = *opened;
    return {};
  }

  // Had it no records when the checkpoint began?
  bool is_newer(uint64_t segment) const {
    return segments_[segment].header.generation > state_.generation || was_ready_[segment] != 0;
  }

  // Of a replayed segment: need the index not know of the record, or of what ended it?
  bool is_to_apply(uint32_t segment, const SummaryEntry& entry) const {
    if (entry.kind() == RecordKind::kVoid) return false;
    return recovered_.report.checkpoint == 0 || is_newer(segment) || entry.kind() == RecordKind::kPiece ||
           entry.sequence() >= state_.next_sequence;
  }

  // False: what has been read is no index.
  bool restore(Index& index) {
    was_ready_.assign(segments_.size(), 0);
    for (const uint32_t i : std::span(state_.unsealed).first(state_.unsealed_count).last(state_.ready_count))
      was_ready_[i] = 1;
    for (uint32_t i = 0; i < segments_.size(); ++i) is_replayed_[i] = segments_[i].is_used() && is_newer(i);
    for (const uint32_t i : std::span(state_.unsealed).first(state_.unsealed_count))
      is_replayed_[i] = segments_[i].is_used();
    std::vector<uint64_t> grains(segments_.size()), records(segments_.size());
    const auto stays = [&](uint64_t address, uint32_t size) {
      const uint64_t i = geometry_.segment_of(address);
      if (!segments_[i].is_unreadable && (!segments_[i].is_used() || is_newer(i))) return false;
      grains[i] += size_code::grains(size);
      ++records[i];
      return true;
    };
    if (!index.finish_restore(stays)) return false;
    for (uint32_t i = 0; i < segments_.size(); ++i) log_.recovered_live(i, grains[i], records[i]);
    log_.recovered_sequence(state_.next_sequence - 1);
    return true;
  }

  // Step 3.
  base::Expected<void> list(RecoveryReader& reader, uint32_t index) {
    FoundSegment& segment = segments_[index];
    if (!segment.is_used() || (!is_replayed_[index] && segment.has_summary)) return {};
    auto listed = reader.list(index, segment);
    if (is_replayed_[index]) reader.report.replayed_records += segment.entries.size();
    return listed;
  }

  void tell_log(uint32_t index) {
    const FoundSegment& segment = segments_[index];
    if (segment.is_unreadable) {
      log_.recovered(index, Segment::State::kSealed, 0);
      log_.recovered_unreadable(index);
      return;
    }
    if (!segment.is_known) {
      // What is left of it is not looked at again.
      log_.recovered(index, Segment::State::kFree, 0);
      return;
    }
    auto state =
        Segment::State::kEmptied;  // that was prepared, and no more; or part of a checkpoint that is not used
    if (segment.header.state == SegmentState::kFree) state = Segment::State::kFree;
    if (std::ranges::find(recovered_.checkpoint_segments, index) != recovered_.checkpoint_segments.end())
      state = Segment::State::kCheckpoint;
    if (segment.is_used() && (segment.has_summary || !segment.entries.empty())) {
      state = Segment::State::kSealed;
      log_.recovered_content(index, segment.footer);
      recovered_.report.records += segment.footer.entry_count;
    }
    log_.recovered(index, state, segment.header.generation);
    if (segment.unreadable_grains > 0) log_.recovered_unreadable(index);
  }

  // What comes must not look as if it were of the same time as what a segment holds of which nothing is known.
  void tell_log_of_unknown() {
    if (std::ranges::all_of(segments_, &FoundSegment::is_known) && has_read_all()) return;
    log_.skip_generations(kUnknownGenerations);
    log_.recovered_sequence(log_.last_sequence() + kUnknownChanges);
  }

  // What is listed at an address; null: nothing begins there.
  base::Expected<const SummaryEntry*> entry_at(RecoveryReader& reader, uint64_t address) {
    const auto index = static_cast<uint32_t>(geometry_.segment_of(address));
    FoundSegment& segment = segments_[index];
    if (!is_replayed_[index] && segment.is_known) {
      // Of what a checkpoint knows only what is needed is listed.
      sys::LockGuard scope(locks_[index % kLocks]);
      if (!segment.is_listed)
        if (auto listed = reader.list(index, segment); !listed) return std::unexpected(listed.error());
    }
    const uint32_t grain = geometry_.grain_of(address);
    const auto at = std::ranges::lower_bound(segment.entries, grain, {}, &SummaryEntry::grain);
    return at != segment.entries.end() && at->grain == grain ? &*at : nullptr;
  }

  // Step 4.
  base::Expected<void> apply(RecoveryReader& reader, uint32_t index) {
    if (!is_replayed_[index]) return {};
    uint64_t last_sequence = 0;
    for (const SummaryEntry& entry : segments_[index].entries) {
      if (!is_to_apply(index, entry)) continue;
      last_sequence = std::max(last_sequence, entry.sequence());
      const uint64_t address = geometry_.address(index, entry.grain);
      for (bool is_applied = false; !is_applied;) {
        auto applied = try_apply(reader, entry, address);
        if (!applied) return std::unexpected(applied.error());
        is_applied = *applied;
      }
    }
    log_.recovered_sequence(last_sequence);
    return {};
  }

  // False: others have changed what it looked at.
  base::Expected<bool> try_apply(RecoveryReader& reader, const SummaryEntry& entry, uint64_t address) {
    const uint32_t size = size_code::of(entry.grains);
    const bool is_live = entry.kind() != RecordKind::kTombstone;  // those are held already
    Location candidates[Index::kCandidatesMax];
    uint64_t others[Index::kCandidatesMax];
    const size_t count = index_->find_all(entry.hash.low, candidates);
    for (size_t i = 0; i < count; ++i) {
      others[i] = candidates[i].address;
      auto found = entry_at(reader, candidates[i].address);
      if (!found) return std::unexpected(found.error());
      const SummaryEntry* const other = *found;
      if (other == nullptr || other->hash != entry.hash) continue;
      if (other->sequence() == entry.sequence()) return true;
      if (other->sequence() > entry.sequence()) {
        end_head(entry, address);
        return true;
      }
      if (!index_->replace(entry.hash.low, candidates[i].address, address, size)) return false;
      if (other->kind() != RecordKind::kTombstone) log_.release(candidates[i].address, candidates[i].size);
      if (is_live) log_.hold(address, size);
      end_head(*other, candidates[i].address);
      return true;
    }
    for (const Location& other : std::span(candidates, count)) {
      if (!segments_[geometry_.segment_of(other.address)].is_unreadable) continue;
      // What is replayed is newer than what a checkpoint knew; that this was another key's happens once in millions.
      if (!index_->replace(entry.hash.low, other.address, address, size)) return false;
      log_.release(other.address, other.size);
      if (is_live) log_.hold(address, size);
      return true;
    }
    switch (index_->insert(entry.hash.low, address, size, {others, count})) {
      case Index::Inserted::kDone:
        if (is_live) log_.hold(address, size);
        return true;
      case Index::Inserted::kOther: return false;
      case Index::Inserted::kFull: break;
    }
    return base::failure(ENOMEM, "store: no memory for the index");
  }

  // The record is not its key's any more. With a checkpoint pieces of it may be where nothing is listed.
  void end_head(const SummaryEntry& entry, uint64_t address) {
    if (entry.kind() != RecordKind::kHead || recovered_.report.checkpoint == 0) return;
    sys::LockGuard scope(locks_[0]);
    ended_heads_.push_back(address);
  }

  // Step 5.
  base::Expected<void> end_tombstones(RecoveryReader&, uint32_t index) {
    if (!is_replayed_[index]) return {};
    for (const SummaryEntry& entry : segments_[index].entries)
      if (entry.kind() == RecordKind::kTombstone)
        index_->remove(entry.hash.low, geometry_.address(index, entry.grain));
    return {};
  }

  // Step 6.
  base::Expected<void> seal(RecoveryReader& reader, uint32_t index) {
    const FoundSegment& segment = segments_[index];
    if (segment.has_summary || segment.entries.empty() || segment.unreadable_grains > 0) return {};
    if (const int error = log_.write_summary_of(reader.channel, index, segment.entries); error != 0)
      return base::failure(error, "store: cannot write the summary of segment ", index, ": ",
                           base::error_name(error));
    return {};
  }

  // Step 7. REQUIRES: has_read_all(), or a head that cannot be read would lose its pieces.
  base::Expected<void> end_pieces(RecoveryReader& reader) {
    // Replayed ones, by value.
    std::map<uint64_t, uint64_t> groups;
    for (uint32_t i = 0; i < segments_.size(); ++i)
      if (is_replayed_[i])
        for (const SummaryEntry& entry : segments_[i].entries)
          if (entry.kind() == RecordKind::kPiece)
            groups.emplace(entry.sequence(), geometry_.address(i, entry.grain));
    for (const auto& [sequence, address] : groups) {
      PieceKey key;
      auto read = read_key(reader, address, key);
      if (!read) return std::unexpected(read.error());
      if (!*read) continue;
      if (auto ended = end_value(reader, key.head, sequence); !ended) return ended;
    }
    for (const uint64_t address : ended_heads_) {
      auto entry = entry_at(reader, address);
      if (!entry) return std::unexpected(entry.error());
      auto pieces = read_head(reader, address, **entry);
      if (!pieces) return std::unexpected(pieces.error());
      if (pieces->sequence == 0) continue;
      if (auto ended = end_value(reader, (*entry)->hash, pieces->sequence); !ended) return ended;
    }
    for (const auto& headless : std::span(state_.headless).first(state_.headless_count))
      if (auto ended = end_value(reader, headless.head, headless.sequence); !ended) return ended;
    return {};
  }

  // All pieces of a value leave the index, unless its key's record there names them.
  base::Expected<void> end_value(RecoveryReader& reader, const KeyHash& head, uint64_t sequence) {
    auto is_there = has_head(reader, head, sequence);
    if (!is_there) return std::unexpected(is_there.error());
    if (*is_there) return {};
    const uint64_t most = kValueBytesMax / PieceKey::value_bytes(geometry_) + 1;
    for (uint64_t number = 0; number < most; ++number) {
      const PieceKey key = {.head = head, .sequence = sequence, .number = number};
      const KeyHash hash = hash_piece(identity_.secret, key);
      Location all[Index::kCandidatesMax];
      const size_t count = index_->find_all(hash.low, all);
      for (size_t i = 0; i < count; ++i) {
        auto entry = entry_at(reader, all[i].address);
        if (!entry) return std::unexpected(entry.error());
        if (*entry == nullptr || (*entry)->hash != hash || !index_->remove(hash.low, all[i].address))
          continue;
        log_.release(all[i].address, all[i].size);
        ++reader.report.headless_pieces;
      }
    }
    return {};
  }

  base::Expected<Reading> read_at(RecoveryReader& reader, uint64_t address, const SummaryEntry& entry,
                                  Record& record) {
    const auto index = static_cast<uint32_t>(geometry_.segment_of(address));
    return reader.read_record(segments_[index], index, entry, record);
  }

  // False: it is damaged.
  base::Expected<bool> read_key(RecoveryReader& reader, uint64_t address, PieceKey& key) {
    auto entry = entry_at(reader, address);
    if (!entry) return std::unexpected(entry.error());
    Record record;
    auto reading = read_at(reader, address, **entry, record);
    if (!reading) return std::unexpected(reading.error());
    if (*reading != Reading::kWhole || record.key.size() != sizeof key) return false;
    memcpy(&key, record.key.data(), sizeof key);
    return true;
  }

  // One of sequence 0: it is damaged.
  base::Expected<PiecesOf> read_head(RecoveryReader& reader, uint64_t address, const SummaryEntry& entry) {
    Record record;
    auto reading = read_at(reader, address, entry, record);
    if (!reading) return std::unexpected(reading.error());
    PiecesOf pieces;
    if (*reading == Reading::kWhole && record.value.size() == sizeof pieces)
      memcpy(&pieces, record.value.data(), sizeof pieces);
    return pieces;
  }

  // Is there a head in the index, of this key, that names the sequence? What is damaged counts as if.
  base::Expected<bool> has_head(RecoveryReader& reader, const KeyHash& head, uint64_t sequence) {
    Location all[Index::kCandidatesMax];
    const size_t count = index_->find_all(head.low, all);
    for (size_t i = 0; i < count; ++i) {
      auto entry = entry_at(reader, all[i].address);
      if (!entry) return std::unexpected(entry.error());
      if (*entry == nullptr || (*entry)->hash != head || (*entry)->kind() != RecordKind::kHead) continue;
      auto pieces = read_head(reader, all[i].address, **entry);
      if (!pieces) return std::unexpected(pieces.error());
      return pieces->sequence == sequence || pieces->sequence == 0;
    }
    return false;
  }

  storage::Device& device_;
  const Identity& identity_;
  const Geometry& geometry_;
  Log& log_;
  Index* index_ = nullptr;
  std::vector<FoundSegment> segments_;
  std::vector<char> is_replayed_;
  std::vector<char> was_ready_;  // when the checkpoint began
  CheckpointState state_;
  RecoveredStore recovered_;
  std::unique_ptr<RecoveryReader[]> readers_;
  uint32_t reader_count_ = 0;
  sys::Mutex locks_[kLocks];  // of segments that are listed when they are needed
  std::vector<uint64_t> ended_heads_;
};

}  // namespace

base::Expected<RecoveredStore> recover(storage::Device& device, const Identity& identity, Log& log,
                                       Index*& index) {
  return Recovery(device, identity, log).run(index);
}

}  // namespace kv
