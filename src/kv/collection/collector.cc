#include "kv/collection/collector.h"

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/probe.h"
#include "kv/media/clock.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint64_t kBufferBytes = 2 << 20;  // more than any record
// A start replays this many records in some 0.1 s.
constexpr uint64_t kMinReplayed = 1 << 18;
constexpr uint64_t kPauseNs = 100'000'000, kMaxPauseNs = 6'400'000'000;

}  // namespace

void Collector::Pause::begin() {
  length_ns = std::clamp(2 * length_ns, kPauseNs, kMaxPauseNs);
  end_ns = sys::monotonic_ns() + length_ns;
}

bool Collector::Pause::is_over() const { return sys::monotonic_ns() >= end_ns; }

base::Expected<std::span<std::byte>> Collector::memory_of(uint64_t bytes) {
  auto memory = sys::map_anonymous(bytes, "collection in a store");
  if (!memory) return std::unexpected(memory.error());
  return std::span(reinterpret_cast<std::byte*>(*memory), bytes);
}

base::Expected<void> Collector::open(const Parts& parts, uint64_t checkpoint_records,
                                     const RecoveredStore& recovered) {
  device_ = parts.device;
  identity_ = parts.identity;
  index_ = parts.index;
  log_ = parts.log;
  readers_ = parts.readers;
  large_values_ = parts.large_values;
  snapshots_ = parts.snapshots;
  lifetimes_ = parts.lifetimes;
  changes_ = parts.changes;
  key_locks_ = parts.key_locks;
  used_ = parts.used;
  checkpointer_.open(*identity_, *index_, *log_, *parts.changes, *large_values_, recovered.last_checkpoint,
                     recovered.checkpoint_segments);
  changes_->add(change_place_);
  checkpoint_records_ = checkpoint_records;
  takes_checkpoints_ = recovered.report.has_read_all();
  // What this start had to replay counts as changed since the last checkpoint.
  const uint64_t replayed = std::min(recovered.report.replayed_records, log_->last_sequence());
  checkpoint_sequence_ = log_->last_sequence() - replayed;
  // Recovery may have found emptied segments.
  to_settle_ = static_cast<uint32_t>(log_->counts().emptied_segments);
  const Geometry& geometry = identity_->geometry;
  if (auto opened = channel_.open_for_threads(*device_, kDepth); !opened) return opened;
  channel_.counts_as(IoFor::kCollection);
  const uint64_t most = uint64_t{summary_grains(geometry, geometry.segment_grains())} * geometry.grain_bytes;
  for (auto [to, bytes] : {std::pair(&summary_, most),
                           {&written_, kBufferBytes},
                           {&pieces_[0].memory, kBufferBytes},
                           {&pieces_[1].memory, kBufferBytes}}) {
    auto memory = memory_of(bytes);
    if (!memory) return std::unexpected(memory.error());
    *to = *memory;
  }
  return {};
}

void Collector::close() {
  if (changes_ != nullptr) changes_->remove(change_place_);
  for (auto* memory : {&summary_, &written_, &pieces_[0].memory, &pieces_[1].memory})
    if (!memory->empty()) sys::unmap(memory->data(), memory->size());
  channel_.close();
}

Collector::Failure Collector::step(bool& did) {
  did = false;
  if (log_->has_failed()) return flush_failure();
  retry_left_pieces();
  for (Pieces pieces; large_values_->take_removed(pieces);)
    if (const int error = release_pieces(pieces); error != 0) {
      large_values_->remove(pieces);
      return {.error = error};
    }
  log_->retry_seals();
  const Log::Need need = log_->need();
  const bool collects = need.collects || wants_all();
  uint32_t victim = Log::kNone;
  const uint64_t now_ms = lifetimes_->clock().now_ms(), floor = lifetimes_->floor();
  if (need.is_over_limit) victim = log_->choose_victim(now_ms, floor);
  if (victim == Log::kNone && collects) victim = log_->choose_victim(0, floor);
  if (victim == Log::kNone && collects && need.waits) victim = log_->choose_victim(now_ms, floor);
  if (victim == Log::kNone && need.collects && identity_->is_cache) victim = drop_oldest();
  if (victim == Log::kNone && collects) log_->fill_oldest();
  if (victim != Log::kNone && is_in_vain()) victim = Log::kNone;
  if (victim != Log::kNone && log_->may_start_victim()) {
    did = true;
    const int error = empty(victim);
    // If it lacked room, settling may give it some.
    if (error != 0 && (error != ENOSPC || !has_to_settle())) return {.error = error};
    if (error == 0 && to_settle_ < Log::kMaxEmptied && !log_->is_short()) return {};
  }
  if (has_to_settle()) {
    did = true;
    return settle();
  }
  is_in_vain_ = false;
  if (victim == Log::kNone && need.collects) {
    if (const Log::Room why = log_->would_refuse();
        why != Log::Room::kDone && (log_->hurry_put_offs() || retry_unread())) {
      did = true;
    } else if (why != Log::Room::kDone && snapshots_->cancel_oldest(why)) {
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
  return flush_failure();
}

uint64_t Collector::checkpoint_interval() const {
  if (checkpoint_records_ != 0) return checkpoint_records_;
  if (log_->last_sequence() - checkpoint_sequence_ < kMinReplayed) return kMinReplayed;
  return std::max(kMinReplayed, index_->counts().entries / 2);
}

// Returns whether there is anything to settle afterwards.
bool Collector::take_checkpoint() {
  const uint64_t sequence = log_->last_sequence();
  channel_.counts_as(IoFor::kCheckpoints);
  const Checkpointer::Taken taken = checkpointer_.take(channel_);
  channel_.counts_as(IoFor::kCollection);
  checkpoint_sequence_ = sequence;
  base::probes::kv_checkpoint(checkpointer_.bytes(), static_cast<uint64_t>(taken));
  if (taken == Checkpointer::Taken::kDone) {
    counts_.checkpoints.fetch_add(1, std::memory_order_relaxed);
    counts_.checkpoint_bytes.fetch_add(checkpointer_.bytes(), std::memory_order_relaxed);
  } else {
    // The next try comes sooner than another checkpoint would be due.
    checkpoint_sequence_ -= std::min(sequence, checkpoint_interval() / 2);
  }
  if (taken == Checkpointer::Taken::kFailed)
    base::log({.name = "checkpoint_failed", .fields = {{"error", checkpointer_.error()}}},
              "store: ", device_->name(),
              " has no new checkpoint: ", base::error_name(checkpointer_.error()));
  if (taken != Checkpointer::Taken::kNotNow) ++to_settle_;
  return taken != Checkpointer::Taken::kNotNow;
}

void Collector::end() {
  large_values_->retry_left();
  for (Pieces pieces; large_values_->take_removed(pieces);)
    if (release_pieces(pieces) != 0) return;
  const bool is_due = checkpoint_records_ != 0 || log_->sealed_records() >= kMinReplayed / 4;
  if (!takes_checkpoints_ || !is_due || log_->last_sequence() == checkpoint_sequence_) return;
  take_checkpoint();
  static_cast<void>(settle());
}

// Collection is in vain once twice as many victims as there are segments have together not gained one segment, and stays so until something changes.
bool Collector::is_in_vain() {
  if (victims_looked_at_ >= 2 * log_->segment_count()) {
    is_in_vain_ = is_in_vain_ || gained_grains_ < identity_->geometry.segment_grains();
    victims_looked_at_ = 0;
    gained_grains_ = 0;
  }
  return is_in_vain_;
}

// Is the record there the piece with this key? Its first grain tells; if that says something else, the whole record is read, since it may be the
// first grain that is damaged. 0, or an errno value.
int Collector::read_candidate(const Location& at, const PieceKey& key, bool& is_piece, bool& is_damaged) {
  const Geometry& geometry = identity_->geometry;
  const uint64_t generation =
      log_->segment(geometry.segment_of(at.address)).generation.load(std::memory_order_relaxed);
  const uint64_t most = std::min<uint64_t>(size_code::grains(at.size),
                                           geometry.segment_grains() - geometry.grain_of(at.address));
  for (const uint64_t grains : {uint64_t{1}, most}) {
    const std::span bytes = written_.first(grains * geometry.grain_bytes);
    if (const int error = channel_.read(geometry.offset_of(at.address), bytes); error != 0) return error;
    Record record;
    const Reading reading = read_record(identity_->secret, generation, bytes, record);
    is_piece = reading != Reading::kDamaged && record.header.kind() == RecordKind::kPiece &&
               record.key == key.text();
    is_damaged = reading == Reading::kDamaged;
    if (is_piece || reading != Reading::kPart) return 0;
  }
  is_damaged = true;  // its header says that it is longer than it can be
  return 0;
}

int Collector::release_pieces(const Pieces& pieces) {
  const Geometry& geometry = identity_->geometry;
  // The head's check was right, but no store writes such a head: nobody knows what it names.
  if (!pieces.of.is_possible(geometry)) return 0;
  bool is_left = false;
  for (uint64_t number = 0; number < pieces.of.count(); ++number) {
    const PieceKey key = {.head = pieces.head, .sequence = pieces.of.sequence, .number = number};
    const KeyHash hash = hash_piece(identity_->secret, key);
    Index::Candidates all;
    const size_t count = index_->find_all(hash.low, all);
    const Location* own = nullptr;
    for (size_t i = 0; i < count; ++i) {
      bool is_piece, is_damaged;
      const int error = read_candidate(all[i], key, is_piece, is_damaged);
      is_left = is_left || is_of_medium(error);
      if (is_of_medium(error)) continue;
      if (error != 0) return error;
      if (!is_damaged && !is_piece) continue;
      // A damaged candidate has the piece's tag, and so nearly always is the piece.
      if (own == nullptr || !is_damaged) own = &all[i];
    }
    const auto tell = [&](const Location& old) { snapshots_->removed(hash, old.address); };
    if (own != nullptr && index_->remove(hash.low, own->address, tell))
      log_->release(own->address, own->size);
  }
  if (is_left) large_values_->leave(pieces);
  return 0;
}

// Tries again to release pieces that could not be read.
void Collector::retry_left_pieces() {
  if (!large_values_->has_left()) {
    left_pause_ = {};
    return;
  }
  if (!left_pause_.is_over()) return;
  // The first delay begins when they have just been tried.
  if (left_pause_.has_begun()) large_values_->retry_left();
  left_pause_.begin();
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

// 0: it is EMPTIED, or stays because a snapshot keeps it or because not all of it can be read or moved. Otherwise an errno value: it is begun anew
// later, and what has been moved stays moved.
int Collector::empty(uint32_t number) {
  // Pairs with the release in Log::release().
  const uint64_t live = log_->segment(number).live_grains.load(std::memory_order_acquire);
  Victim victim = {.number = number, .live_grains = live, .to_gain = gain_with(live)};
  const uint64_t moved_before = counts_.moved_bytes.load(std::memory_order_relaxed);
  tombstones_.clear();
  if (live > 0)
    if (const int error = move_live(victim); error != 0) return error;
  if (victim.is_left || is_kept(number)) return 0;
  // Only now, since all tombstones of a victim that is begun anew are moved again.
  for (const Move& move : tombstones_) log_->release_tombstone(move.old_address, move.from.grains);
  if (victim.is_damaged)
    leave_damaged(number);
  else
    finish(victim, counts_.moved_bytes.load(std::memory_order_relaxed) - moved_before);
  return 0;
}

void Collector::leave_damaged(uint32_t victim) {
  log_->segment(victim).is_damaged = true;
  base::log({.name = "segment_damaged", .level = base::LogLevel::kError, .fields = {{"segment", victim}}},
            "store: ", device_->name(), " has damaged records in segment ", victim,
            ", which is left as it is; spillway check says which");
}

// The victim is EMPTIED from now on.
void Collector::finish(const Victim& victim, uint64_t moved_bytes) {
  const Segment& segment = log_->segment(victim.number);
  has_failed_reads_ = false;
  if (segment.failed_reads != 0) unread_pause_ = {};
  counts_.victims.fetch_add(1, std::memory_order_relaxed);
  ++victims_looked_at_;
  const uint64_t used = segment.used_grains - 1;
  if (used > victim.live_grains) gained_grains_ += used - victim.live_grains;
  ++to_settle_;
  log_->emptied(victim.number);
  base::probes::kv_collected(victim.number, moved_bytes);
  if (identity_->is_cache)
    used_->clear(identity_->geometry.address(victim.number, 0), identity_->geometry.segment_grains());
  log_->gained(victim.to_gain);
}

// Counts an error in reading something in the segment. True: the medium has failed so often that this is given up. Errors other than the
// medium's say nothing about the place.
bool Collector::is_given_up(Segment& segment, uint64_t address, int error) {
  if (!is_of_medium(error)) return false;
  has_failed_reads_ = true;
  segment.failed_address = address;
  if (segment.failed_reads < kReadTries) ++segment.failed_reads;
  return segment.failed_reads == kReadTries;
}

// For writers that would be refused: each segment that the medium could not read is tried once more. False: there is none, or it is too early.
bool Collector::retry_unread() {
  if (!unread_pause_.is_over()) return false;
  bool any = false;
  for (uint32_t i = 0; i < log_->segment_count(); ++i) {
    Segment& segment = log_->segment(i);
    if (segment.failed_reads < kReadTries) continue;
    // A damaged segment whose summary was read has been moved in part: its tombstones would be moved and released twice.
    if (segment.is_damaged && segment.failed_address != identity_->geometry.address(i, 0)) continue;
    segment.failed_reads = kReadTries - 1;
    segment.left_grains = 0;
    segment.is_damaged = false;
    any = true;
  }
  if (any) unread_pause_.begin();
  return any;
}

// Records from `first` to `last` have been read: if what had failed is among them, the count begins anew. A segment that was given up stays so,
// since more of it may be unreadable.
void Collector::note_read(Segment& segment, uint64_t first, uint64_t last) {
  if (segment.failed_reads < kReadTries && first <= segment.failed_address && segment.failed_address <= last)
    segment.failed_reads = 0;
}

// Does a snapshot keep a record of it? Snapshots are cancelled for it when room is short. REQUIRES: all that can be moved has been.
bool Collector::is_kept(uint32_t victim) {
  // Pairs with the release in Snapshots::give_back(). `keeps` is raised before the index changes: whoever has seen that change sees this, too.
  const auto keeps = [&] { return log_->segment(victim).keeps.load(std::memory_order_acquire); };
  if (keeps() == 0) return false;
  while (!log_->has_more_than(Log::kReserve) && keeps() != 0 && snapshots_->cancel_oldest(Log::Room::kWait)) {
  }
  return keeps() != 0;
}

}  // namespace kv
