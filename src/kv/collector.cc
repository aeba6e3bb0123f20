#include "kv/collector.h"

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "kv/clock.h"
#include "kv/entry.h"
#include "storage/piece_io.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint64_t kBufferBytes = 2 << 20;  // more than any record
constexpr uint64_t kIoBytes = 128 << 10;    // others' small reads wait behind no more than this, kDepth times
constexpr size_t kDepth = 4;
// Moved at a time, and writers that are paced are granted their part: they wait for no more than this.
constexpr uint64_t kPieceBytes = kDepth * kIoBytes;
constexpr uint64_t kGapBytes = 16 << 10;  // what is read and not needed rather than read in two
constexpr uint8_t kReadTries = 3;
// A start looks at so many records in some 0.1 s.
constexpr uint64_t kReplayedMin = 1 << 18;

base::Expected<std::span<std::byte>> memory_of(uint64_t bytes) {
  auto memory = sys::map_anonymous(bytes, "collection in a store");
  if (!memory) return std::unexpected(memory.error());
  return std::span(reinterpret_cast<std::byte*>(*memory), bytes);
}

}  // namespace

base::Expected<void> Collector::open(const Parts& parts, uint64_t checkpoint_records,
                                     const RecoveredStore& recovered) {
  device_ = parts.device;
  identity_ = parts.identity;
  index_ = parts.index;
  log_ = parts.log;
  readers_ = parts.readers;
  large_values_ = parts.large_values;
  snapshots_ = parts.snapshots;
  checkpointer_.open(*identity_, *index_, *log_, *parts.changes, *large_values_, recovered.last_checkpoint,
                     recovered.checkpoint_segments);
  checkpoint_records_ = checkpoint_records;
  takes_checkpoints_ = recovered.report.has_read_all();
  // What had to be replayed is to be in the next one.
  const uint64_t replayed = std::min(recovered.report.replayed_records, log_->last_sequence());
  checkpoint_sequence_ = log_->last_sequence() - replayed;
  // Recovery may have found some.
  to_settle_ = static_cast<uint32_t>(log_->counts().emptied_segments);
  const Geometry& geometry = identity_->geometry;
  if (auto opened = channel_.open_for_threads(*device_, kDepth); !opened) return opened;
  channel_.counts_as(IoFor::kCollection);
  const uint64_t most = uint64_t{summary_grains(geometry, geometry.segment_grains())} * geometry.grain_bytes;
  for (auto [to, bytes] : {std::pair(&summary_, most), {&read_, kBufferBytes}, {&written_, kBufferBytes}}) {
    auto memory = memory_of(bytes);
    if (!memory) return std::unexpected(memory.error());
    *to = *memory;
  }
  return {};
}

void Collector::close() {
  for (auto* memory : {&summary_, &read_, &written_})
    if (!memory->empty()) sys::unmap(memory->data(), memory->size());
  channel_.close();
}

Collector::Failure Collector::step(bool& did) {
  did = false;
  for (Pieces pieces; large_values_->take_removed(pieces);)
    if (const int error = release_pieces(pieces); error != 0) {
      large_values_->remove(pieces);
      return {.error = error};
    }
  const Log::Need need = log_->need();
  const bool collects = need.collects || wants_all_.load(std::memory_order_relaxed);
  uint32_t victim = Log::kNone;
  if (need.is_over_limit) victim = log_->choose_victim(now_ms());
  if (victim == Log::kNone && collects) victim = log_->choose_victim(0);
  if (victim != Log::kNone && is_in_vain()) victim = Log::kNone;
  if (victim != Log::kNone && log_->may_start_victim()) {
    did = true;
    if (const int error = empty(victim); error != 0) return {.error = error};
    if (to_settle_ < Log::kEmptiedMax) return {};
  }
  if (to_settle_ > 0) {
    did = true;
    return settle();
  }
  if (victim == Log::kNone && need.collects) {
    if (const Log::Room why = log_->would_refuse();
        why != Log::Room::kDone && snapshots_->cancel_oldest(why)) {
      did = true;
      victims_looked_at_ = 0;
      gained_grains_ = 0;
    } else {
      log_->tell_waiting();
    }
  }
  if (takes_checkpoints_ && !need.collects &&
      log_->last_sequence() - checkpoint_sequence_ >= checkpoint_interval() && !log_->has_failed())
    did = take_checkpoint();
  return {.error = log_->flush_error(), .is_of_flush = log_->flush_error() != 0};
}

uint64_t Collector::checkpoint_interval() const {
  if (checkpoint_records_ != 0) return checkpoint_records_;
  if (log_->last_sequence() - checkpoint_sequence_ < kReplayedMin) return kReplayedMin;
  return std::max(kReplayedMin, index_->counts().entries / 2);
}

// Returns whether there is something to settle.
bool Collector::take_checkpoint() {
  const uint64_t sequence = log_->last_sequence();
  channel_.counts_as(IoFor::kCheckpoints);
  const Checkpointer::Taken taken = checkpointer_.take(channel_);
  channel_.counts_as(IoFor::kCollection);
  checkpoint_sequence_ = sequence;
  if (taken == Checkpointer::Taken::kDone) {
    counts_.checkpoints.fetch_add(1, std::memory_order_relaxed);
    counts_.checkpoint_bytes.fetch_add(checkpointer_.bytes(), std::memory_order_relaxed);
  } else {
    // Later, and sooner than after a good one.
    checkpoint_sequence_ -= std::min(sequence, checkpoint_interval() / 2);
  }
  if (taken == Checkpointer::Taken::kFailed)
    base::log("store: ", device_->name(),
              " has no new checkpoint: ", base::error_name(checkpointer_.error()));
  if (taken != Checkpointer::Taken::kNotNow) ++to_settle_;
  return taken != Checkpointer::Taken::kNotNow;
}

void Collector::end() {
  for (Pieces pieces; large_values_->take_removed(pieces);)
    if (release_pieces(pieces) != 0) return;
  const bool is_due = checkpoint_records_ != 0 || log_->sealed_records() >= kReplayedMin / 4;
  if (!takes_checkpoints_ || !is_due || log_->last_sequence() == checkpoint_sequence_) return;
  take_checkpoint();
  static_cast<void>(log_->give_back(channel_));
}

// All segments have been collected twice, and all that together has not gained one. Nothing but a change will.
bool Collector::is_in_vain() {
  const uint32_t all = log_->segment_count();
  if (victims_looked_at_ < 2 * all) return false;
  const bool in_vain = gained_grains_ < identity_->geometry.segment_grains();
  victims_looked_at_ = 0;
  gained_grains_ = 0;
  return in_vain;
}

int Collector::release_pieces(const Pieces& pieces) {
  const Geometry& geometry = identity_->geometry;
  for (uint64_t number = 0; number < pieces.of.count(); ++number) {
    const PieceKey key = {.head = pieces.head, .sequence = pieces.of.sequence, .number = number};
    const KeyHash hash = hash_piece(identity_->secret, key);
    Index::Candidates all;
    const size_t count = index_->find_all(hash.low, all);
    for (size_t i = 0; i < count; ++i) {
      const std::span head = read_.first(geometry.grain_bytes);
      const int error = channel_.read(geometry.offset_of(all[i].address), head);
      if (is_of_medium(error)) continue;  // it stays, as one that is damaged
      if (error != 0) return error;
      const uint64_t generation =
          log_->segment(geometry.segment_of(all[i].address)).generation.load(std::memory_order_relaxed);
      Record record;
      if (read_record(identity_->secret, generation, head, record) == Reading::kDamaged ||
          record.header.kind() != RecordKind::kPiece || record.key != key.text())
        continue;
      const auto tell = [&](const Location& old) { snapshots_->removed(hash, old.address); };
      if (index_->remove(hash.low, all[i].address, tell)) log_->release(all[i].address, all[i].size);
    }
  }
  return 0;
}

Collector::Failure Collector::settle() {
  int error = log_->flush(channel_);
  if (error == 0) {
    readers_->wait();
    error = log_->give_back(channel_);
  }
  if (error == 0) to_settle_ = 0;
  return {.error = error, .is_of_flush = error != 0 && log_->flush_error() != 0};
}

// 0 when it is EMPTIED, or found to be damaged; else an errno value: it is as it was, but for what has been moved.
int Collector::empty(uint32_t victim) {
  Segment& segment = log_->segment(victim);
  // Pairs with the release in Log::release().
  const uint64_t all = log_->usable_grains(0), live = segment.live_grains.load(std::memory_order_acquire);
  uint64_t to_grant = all > live ? all - live : 0;
  bool is_damaged = false;
  tombstones_.clear();
  if (live > 0) {
    SegmentFooter footer;
    std::span<const SummaryEntry> entries;
    const int error = read_summary(victim, footer, entries);
    if (error != 0 && error != EBADMSG && ++segment.failed_reads < kReadTries) return error;
    is_damaged = error != 0;
    list_live(victim, entries);
    const uint64_t damaged_before = counts_.damaged_records.load(std::memory_order_relaxed);
    for (size_t first = 0; first < live_.size();) {
      const size_t end = plan(first);
      const uint64_t part = to_grant * (end - first) / (live_.size() - first);
      if (const int moved = move(victim, footer, std::span(live_).subspan(first, end - first)); moved != 0)
        return moved;
      log_->grant(part);
      to_grant -= part;
      first = end;
    }
    is_damaged = is_damaged || counts_.damaged_records.load(std::memory_order_relaxed) != damaged_before;
  }
  if (is_kept(victim)) return 0;
  // Not before: a victim that is left for an error is begun anew.
  for (const Move& move : tombstones_) log_->release_tombstone(move.old_address, move.from.grains);
  if (is_damaged) {
    segment.is_damaged = true;
    base::log("store: ", device_->name(), " has damaged records in segment ", victim,
              ", which is left as it is; spillway check says which");
    return 0;
  }
  counts_.victims.fetch_add(1, std::memory_order_relaxed);
  ++victims_looked_at_;
  if (segment.used_grains - 1 > live) gained_grains_ += segment.used_grains - 1 - live;
  ++to_settle_;
  log_->emptied(victim);
  log_->grant(to_grant);
  return 0;
}

// Has a snapshot kept something of it? REQUIRES: nothing in it is live, as far as could be.
bool Collector::is_kept(uint32_t victim) {
  // Pairs with the release in Snapshots::give_back(). What was kept before the index changed is seen by who has found that change.
  const auto keeps = [&] { return log_->segment(victim).keeps.load(std::memory_order_acquire); };
  if (keeps() == 0) return false;
  while (!log_->may_leave_victim() && keeps() != 0 && snapshots_->cancel_oldest(Log::Room::kWait)) {
  }
  return keeps() != 0;
}

// 0, or an errno value: EBADMSG when it is damaged.
int Collector::read_summary(uint32_t victim, SegmentFooter& footer, std::span<const SummaryEntry>& entries) {
  const Geometry& geometry = identity_->geometry;
  const uint64_t end = geometry.segment_offset(victim) + geometry.segment_bytes;
  const std::span last = summary_.first(geometry.grain_bytes);
  if (const int error = channel_.read(end - last.size(), last); error != 0) return error;
  const uint64_t generation = log_->segment(victim).generation.load(std::memory_order_relaxed);
  if (!read_footer(*identity_, generation, last, footer)) return EBADMSG;
  const std::span all =
      summary_.first(uint64_t{summary_grains(geometry, footer.entry_count)} * geometry.grain_bytes);
  if (const int error = channel_.read(end - all.size(), all); error != 0) return error;
  entries = kv::read_summary(*identity_, footer, all);
  return entries.size() == footer.entry_count ? 0 : EBADMSG;
}

void Collector::list_live(uint32_t victim, std::span<const SummaryEntry> entries) {
  live_.clear();
  for (const SummaryEntry& entry : entries) {
    Move move;
    move.from = entry;
    move.kind = entry.kind();
    move.old_address = identity_->geometry.address(victim, entry.grain);
    if (entry.kind() == RecordKind::kVoid) continue;
    if (entry.kind() == RecordKind::kTombstone) {
      live_.push_back(move);
      continue;
    }
    Index::Candidates all;
    const size_t count = index_->find_all(entry.hash.low, all);
    for (size_t i = 0; i < count; ++i) {
      if (all[i].address != move.old_address) continue;
      move.old_size = all[i].size;
      live_.push_back(move);
    }
  }
}

// The reads of the next piece, from `first` on: kPieceBytes at most, or one record. One behind the last.
size_t Collector::plan(size_t first) {
  const uint64_t grain_bytes = identity_->geometry.grain_bytes;
  uint64_t used = 0;
  runs_.clear();
  size_t i = first;
  for (; i < live_.size(); ++i) {
    Move& move = live_[i];
    const uint64_t offset = identity_->geometry.offset_of(move.old_address);
    const uint64_t bytes = move.from.grains * grain_bytes;
    Run* run = runs_.empty() ? nullptr : &runs_.back();
    const uint64_t gap = run != nullptr ? offset - (run->offset_bytes + run->bytes) : 0;
    if (run == nullptr || gap > kGapBytes || run->bytes + gap + bytes > kIoBytes) {
      if (used != 0 && used + bytes > kPieceBytes) break;
      runs_.push_back({.offset_bytes = offset, .at = used, .bytes = 0});
      run = &runs_.back();
    } else {
      if (used + gap + bytes > kPieceBytes) break;
      run->bytes += gap;
      used += gap;
    }
    move.read_offset = used;
    run->bytes += bytes;
    used += bytes;
  }
  return i;
}

// All runs, between the medium and this memory. 0, or the first error.
int Collector::transfer(storage::Operation operation, std::span<std::byte> memory) {
  std::vector<storage::Io> ios(runs_.size());
  std::vector<iovec> pieces(runs_.size());
  std::vector<storage::Io*> batch;
  for (size_t i = 0; i < runs_.size(); ++i) {
    pieces[i] = {memory.data() + runs_[i].at, runs_[i].bytes};
    ios[i].operation = operation;
    ios[i].offset_bytes = runs_[i].offset_bytes;
    ios[i].segments = &pieces[i];
    ios[i].segment_count = 1;
    ios[i].length_bytes = runs_[i].bytes;
    batch.push_back(&ios[i]);
  }
  channel_.run(batch);
  for (const storage::Io& io : ios)
    if (!io.whole()) return io.error != 0 ? io.error : EIO;
  return 0;
}

int Collector::move(uint32_t victim, const SegmentFooter& footer, std::span<Move> moves) {
  // What the medium cannot read, again and again, cannot be moved.
  if (const int error = transfer(storage::Operation::kRead, read_); error != 0) {
    if (++log_->segment(victim).failed_reads < kReadTries) return error;
    counts_.damaged_records.fetch_add(moves.size(), std::memory_order_relaxed);
    return 0;
  }
  for (const Run& run : runs_) counts_.read_bytes.fetch_add(run.bytes, std::memory_order_relaxed);
  const uint64_t oldest = log_->oldest_generation(victim);
  size_t kept = 0;
  for (Move& move : moves) {
    bool ends = false;
    if (!check(victim, footer, oldest, move, ends)) {
      counts_.damaged_records.fetch_add(1, std::memory_order_relaxed);
    } else if (ends) {
      tombstones_.push_back(move);
      gained_grains_ += move.from.grains;
      counts_.ended_tombstones.fetch_add(1, std::memory_order_relaxed);
    } else {
      moves[kept++] = move;
    }
  }
  return write(moves.first(kept));
}

// Is the record what the summary says? Then what becomes of it: `ends` is a tombstone that nobody needs.
bool Collector::check(uint32_t victim, const SegmentFooter& footer, uint64_t oldest, Move& move, bool& ends) {
  const std::span bytes =
      read_.subspan(move.read_offset, move.from.grains * uint64_t{identity_->geometry.grain_bytes});
  const uint64_t generation = log_->segment(victim).generation.load(std::memory_order_relaxed);
  Record record;
  if (read_record(identity_->secret, generation, bytes, record) != Reading::kWhole ||
      hash_record(identity_->secret, record) != move.from.hash ||
      record.header.sequence_and_kind != move.from.sequence_and_kind)
    return false;
  move.grains = move.from.grains;
  move.expiry = record.header.expiry();
  if (move.kind == RecordKind::kTombstone) {
    // Of a first move.
    if (move.expiry == 0) move.expiry = footer.sealed_generation;
    ends = move.expiry < oldest;
  } else if (has_expired(record.header)) {
    if (record.value.size() == sizeof move.pieces)
      memcpy(&move.pieces, record.value.data(), sizeof move.pieces);
    move.kind = RecordKind::kTombstone;
    move.expiry = log_->taken_generation();
    move.grains =
        static_cast<uint32_t>(identity_->geometry.grains(record_bytes(record.header.key_bytes(), 0)));
  }
  return true;
}

// Steps 3 and 4.
int Collector::write(std::span<Move> moves) {
  const uint64_t grain_bytes = identity_->geometry.grain_bytes;
  uint64_t used = 0;
  runs_.clear();
  for (Move& move : moves) {
    Log::Request request = {
        .stream = log_->relocation_stream(),
        .grains = move.grains,
        .entry = {.hash = move.from.hash, .sequence_and_kind = with_kind(move.from.sequence(), move.kind)},
        .expiry = move.kind == RecordKind::kTombstone ? 0 : move.expiry};
    for (;;) {
      const uint64_t seen = log_->room_changes();
      const Log::Room room = log_->allocate(request, move.to);
      if (room == Log::Room::kDone) break;
      if (!log_->wait_for_room(seen, room, request)) {
        for (const Move& earlier : moves.first(static_cast<size_t>(&move - moves.data())))
          log_->finish(earlier.to, false);
        return ENOSPC;
      }
    }
    const uint64_t bytes = move.grains * grain_bytes;
    const std::span to = written_.subspan(used, bytes);
    memcpy(to.data(), read_.data() + move.read_offset, bytes);
    move_record(identity_->secret, move.to.generation, move.kind, move.expiry, to);
    const uint64_t offset = identity_->geometry.offset_of(move.to.address);
    if (runs_.empty() || runs_.back().offset_bytes + runs_.back().bytes != offset ||
        runs_.back().bytes + bytes > kIoBytes)
      runs_.push_back({.offset_bytes = offset, .at = used, .bytes = 0});
    runs_.back().bytes += bytes;
    used += bytes;
  }
  const int error = transfer(storage::Operation::kWrite, written_);
  if (error != 0) {
    for (const Move& move : moves) log_->finish(move.to, false);
    return error;
  }
  counts_.moved_bytes.fetch_add(used, std::memory_order_relaxed);
  install(moves);
  return 0;
}

void Collector::install(std::span<const Move> moves) {
  for (const Move& move : moves) {
    const bool was_tombstone = move.from.kind() == RecordKind::kTombstone;
    bool done = was_tombstone;
    const auto tell = [&](const Location& old) {
      const bool is_gone = move.kind == RecordKind::kTombstone;
      snapshots_->moved(move.from.hash, move.old_address,
                        {.address = move.to.address, .size = old.size, .found = !is_gone});
    };
    if (was_tombstone)
      tombstones_.push_back(move);
    else if (move.kind == RecordKind::kTombstone)
      done = index_->remove(move.from.hash.low, move.old_address, tell);
    else
      done = index_->replace(move.from.hash.low, move.old_address, move.to.address, move.old_size, tell);
    if (done && !was_tombstone) {
      log_->release(move.old_address, move.old_size);
      if (move.kind == RecordKind::kTombstone)
        counts_.expired_records.fetch_add(1, std::memory_order_relaxed);
      if (move.kind == RecordKind::kTombstone && move.from.kind() == RecordKind::kHead)
        large_values_->remove({.head = move.from.hash, .of = move.pieces});
    }
    // Somebody has changed the key meanwhile. If that was a removal, its tombstone may end before this copy does.
    if (!done) log_->segment(move.to.segment).has_old_copies.store(true, std::memory_order_relaxed);
    log_->finish(move.to, done);
    counts_.moved_records.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace kv
