// The collector of a cache: what is dropped to make room, and what of it is kept.
//
// The segment whose last record is the oldest is dropped, and with it all records that are as old, wherever they are: the floor rises
// (SegmentHeader::floor), so that no older copy of what was dropped can come back. Before that, values that were read since they were written are
// kept: they are written anew as if their clients had done it, with new sequences and under their keys' locks. So that there is a gain, a part of
// the segment is dropped in any case (kGoneParts).
#include "kv/collection/collector.h"
#include "kv/index/entry.h"

namespace kv {
namespace {

constexpr uint64_t kGoneParts = 16;  // at least this part of a segment is dropped

}  // namespace

// Returns the segment to empty; kNone: there is none, or the medium does not accept the floor. The floor is durable before lookups use it: whoever
// is told that a key is not there must not find it after a crash.
uint32_t Collector::drop_oldest() {
  const uint32_t oldest = log_->choose_to_drop();
  if (oldest == Log::kNone) return Log::kNone;
  keep_used(oldest);
  const uint64_t floor = log_->segment(oldest).last_sequence.load(std::memory_order_relaxed) + 1;
  log_->drop_below(floor);
  if (log_->keep_floor(channel_, oldest) != 0) return Log::kNone;
  lifetimes_->drop_below(floor);
  return oldest;
}

void Collector::keep_used(uint32_t victim) {
  SegmentFooter footer;
  std::span<const SummaryEntry> entries;
  if (log_->segment(victim).live_grains.load(std::memory_order_acquire) == 0 ||
      read_summary(victim, footer, entries) != 0)
    return;
  list_used(victim, entries);
  for (Piece piece; piece.end < live_.size();) {
    plan(piece.end, piece);
    piece.memory = pieces_[0].memory;
    static_cast<void>(transfer({}, piece));
    if (piece.error == 0 && !write_anew(victim, piece)) return;
  }
}

void Collector::list_used(uint32_t victim, std::span<const SummaryEntry> entries) {
  live_.clear();
  uint64_t left = identity_->geometry.segment_grains() / kGoneParts * (kGoneParts - 1);
  for (const SummaryEntry& entry : entries) {
    Move move;
    move.from = entry;
    move.kind = entry.kind();
    move.old_address = identity_->geometry.address(victim, entry.grain);
    if (entry.kind() != RecordKind::kValue || entry.sequence() < lifetimes_->dropped_below() ||
        !used_->is_marked(move.old_address))
      continue;
    if (entry.grains > left) return;
    const Location there = index_->find_at(entry.hash.low, move.old_address);
    if (!there.found) continue;
    move.old_size = there.size;
    live_.push_back(move);
    left -= entry.grains;
  }
}

// Keeps the records of a piece that has been read, except those that were changed meanwhile or have ended. False: there is no room, or the medium
// does not accept them.
bool Collector::write_anew(uint32_t victim, const Piece& piece) {
  const Readers::Reading change(*changes_, change_place_);
  std::list<KeyLocks::Hold> locks;
  std::vector<Move> moves;
  writes_.clear();
  const uint32_t stream = log_->newest_stream();
  uint64_t used = 0;
  bool has_room = true;
  for (size_t i = piece.first; i < piece.end; ++i) {
    Move move = live_[i];
    Record record;
    const std::span from = bytes_of(piece, move);
    if (!is_as_listed(victim, from, move, record)) continue;
    // If somebody is changing the key, or has since it was listed, the new record must stay the newest: no copy of this one may get a sequence.
    locks.emplace_back(*key_locks_, move.from.hash.low, record.key, std::try_to_lock);
    if (!locks.back().is_held() || !index_->find_at(move.from.hash.low, move.old_address).found) {
      locks.pop_back();
      continue;
    }
    move.new_sequence = log_->next_sequence();
    if (!lifetimes_->may_be_renewed(record)) {
      locks.pop_back();
      continue;
    }
    Log::Request request = {
        .stream = stream,
        .grains = move.from.grains,
        .entry = {.hash = move.from.hash, .sequence_and_kind = with_kind(move.new_sequence, move.kind)},
        .expiry = record.header.expiry(),
        .is_kept = true};
    has_room = log_->allocate(request, move.to) == Log::Room::kDone;
    if (!has_room) break;
    const std::span to = written_.subspan(used, from.size());
    memcpy(to.data(), from.data(), from.size());
    renew_record(identity_->secret, move.to.generation, move.new_sequence, to);
    add_write(move.to.address, used, from.size());
    used += from.size();
    moves.push_back(move);
  }
  Piece nothing;
  const bool is_written = transfer(writes_, nothing) == 0;
  for (const Move& move : moves) install_anew(move, is_written);
  return is_written && has_room;
}

void Collector::install_anew(const Move& move, bool is_written) {
  const auto tell = [&](const Location& old) {
    snapshots_->renewed(move.from.hash, move.from.sequence(), move.new_sequence);
    snapshots_->moved(move.from.hash, move.old_address,
                      {.address = move.to.address, .size = old.size, .found = true});
  };
  if (!is_written ||
      !index_->replace(move.from.hash.low, move.old_address, move.to.address, move.old_size, tell))
    return finish_unused(move);
  log_->release(move.old_address, move.old_size);
  log_->finish(move.to, true);
  counts_.kept_records.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace kv
