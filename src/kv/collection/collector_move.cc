// The collector's steps 1 to 4: what is live in a victim is moved elsewhere.
#include <algorithm>

#include "kv/collection/collector.h"
#include "kv/index/entry.h"
#include "kv/media/clock.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint64_t kGapBytes = 16 << 10;  // a gap up to this is read as well, rather than reading in two Ios
// A device may try for seconds to read a bad place. After this many unreadable records in a victim, no more are tried one by one.
constexpr uint32_t kMaxUnreadable = 64;

}  // namespace

Collector::Whole::~Whole() {
  if (!memory.empty()) sys::unmap(memory.data(), memory.size());
}

// 0, or an errno value: EBADMSG when it is damaged.
int Collector::read_summary(uint32_t victim, SegmentFooter& footer, std::span<const SummaryEntry>& entries) {
  const Geometry& geometry = identity_->geometry;
  const Segment& segment = log_->segment(victim);
  if (segment.state.load(std::memory_order_relaxed) == Segment::State::kUnsealed) {
    footer.sealed_generation = log_->taken_generation();
    entries = log_->entries_of(segment);
    return 0;
  }
  const uint64_t end = geometry.segment_offset(victim) + geometry.segment_bytes;
  const std::span last = summary_.first(geometry.grain_bytes);
  if (const int error = channel_.read(end - last.size(), last); error != 0) return error;
  const uint64_t generation = segment.generation.load(std::memory_order_relaxed);
  if (!read_footer(*identity_, generation, last, footer)) return EBADMSG;
  const std::span all =
      summary_.first(uint64_t{summary_grains(geometry, footer.entry_count)} * geometry.grain_bytes);
  if (const int error = channel_.read(end - all.size(), all); error != 0) return error;
  entries = kv::read_summary(*identity_, footer, all);
  return entries.size() == footer.entry_count ? 0 : EBADMSG;
}

// Moves what is live and not damaged. 0, or an errno value: not all of that was moved.
int Collector::move_live(Victim& victim) {
  Segment& segment = log_->segment(victim.number);
  unreadable_count_ = 0;
  std::span<const SummaryEntry> entries;
  const int error = read_summary(victim.number, victim.footer, entries);
  const uint64_t place = identity_->geometry.address(victim.number, 0);
  if (error != 0 && error != EBADMSG && !is_given_up(segment, place, error)) return error;
  if (error == 0) note_read(segment, place, place);
  list_live(victim.number, entries);
  victim.to_gain = gain_with(segment.live_grains.load(std::memory_order_relaxed));
  const uint64_t damaged_before = counts_.damaged_records.load(std::memory_order_relaxed);
  const int moved = !live_.empty() && must_read_first() ? move_whole(victim) : move_in_pieces(victim);
  victim.is_damaged = error != 0 || counts_.damaged_records.load(std::memory_order_relaxed) != damaged_before;
  return moved;
}

// Reads all before it moves any.
int Collector::move_whole(Victim& victim) {
  Whole whole;
  const int read = read_all(victim.number, whole);
  if (read == EBADMSG) {
    log_->segment(victim.number).left_grains = victim.live_grains;
    victim.is_left = true;
    return 0;
  }
  if (read != 0) return read;
  Piece nothing;
  for (const Piece& piece : whole.pieces)
    if (const int error = move_piece(victim, piece, nothing); error != 0) return error;
  return 0;
}

// While one piece is written, the next is read.
int Collector::move_in_pieces(Victim& victim) {
  Piece *piece = &pieces_[0], *next = &pieces_[1];
  plan(0, *piece);
  static_cast<void>(transfer({}, *piece));
  for (; piece->first < live_.size(); std::swap(piece, next)) {
    plan(piece->end, *next);
    if (const int error = move_piece(victim, *piece, *next); error != 0) return error;
  }
  return 0;
}

// Moves a piece, and tells the log its share of what the victim gains.
int Collector::move_piece(Victim& victim, const Piece& piece, Piece& next) {
  const uint64_t part = victim.to_gain * (piece.end - piece.first) / (live_.size() - piece.first);
  if (const int error = move(victim.number, victim.footer, piece, next); error != 0) return error;
  log_->gained(part);
  victim.to_gain -= part;
  return 0;
}

// For a cache: a record below the floor leaves the index. Neither it nor an older copy comes back after a crash, since a header holds the floor,
// durably. A head has ended with its pieces (lifetimes.h), each of which leaves with its own segment. False: the record is not below the floor.
bool Collector::drop(uint32_t victim, const SummaryEntry& entry) {
  if (entry.sequence() >= lifetimes_->dropped_below()) return false;
  const uint64_t address = identity_->geometry.address(victim, entry.grain);
  if (entry.kind() == RecordKind::kTombstone) {
    Move ended;
    ended.from = entry;
    ended.old_address = address;
    tombstones_.push_back(ended);
    counts_.ended_tombstones.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  const auto tell = [&](const Location&) { snapshots_->removed(entry.hash, address); };
  if (index_->remove(entry.hash.low, address, tell)) {
    log_->release(address, size_code::of(entry.grains));
    gained_grains_ += entry.grains;
    counts_.dropped_records.fetch_add(1, std::memory_order_relaxed);
    counts_.dropped_bytes.fetch_add(entry.grains * uint64_t{identity_->geometry.grain_bytes},
                                    std::memory_order_relaxed);
  }
  return true;
}

void Collector::list_live(uint32_t victim, std::span<const SummaryEntry> entries) {
  live_.clear();
  for (const SummaryEntry& entry : entries) {
    Move move;
    move.from = entry;
    move.kind = entry.kind();
    move.old_address = identity_->geometry.address(victim, entry.grain);
    if (entry.kind() == RecordKind::kVoid || drop(victim, entry)) continue;
    if (entry.kind() == RecordKind::kTombstone) {
      live_.push_back(move);
      continue;
    }
    const Location there = index_->find_at(entry.hash.low, move.old_address);
    if (!there.found) continue;
    move.old_size = there.size;
    live_.push_back(move);
  }
}

// Plans what is read together from live_[first] on: kPieceBytes at most, or one record; nothing if `first` is the end.
void Collector::plan(size_t first, Piece& piece) {
  const uint64_t grain_bytes = identity_->geometry.grain_bytes;
  std::vector<Run>& runs = piece.runs;
  uint64_t used = 0;
  runs.clear();
  size_t i = first;
  for (; i < live_.size(); ++i) {
    Move& move = live_[i];
    const uint64_t offset = identity_->geometry.offset_of(move.old_address);
    const uint64_t bytes = move.from.grains * grain_bytes;
    Run* run = runs.empty() ? nullptr : &runs.back();
    const uint64_t gap = run != nullptr ? offset - (run->offset_bytes + run->bytes) : 0;
    if (run == nullptr || gap > kGapBytes || run->bytes + gap + bytes > kIoBytes) {
      if (used != 0 && used + bytes > kPieceBytes) break;
      runs.push_back({.offset_bytes = offset, .at = used, .bytes = 0});
      run = &runs.back();
    } else {
      if (used + gap + bytes > kPieceBytes) break;
      run->bytes += gap;
      used += gap;
    }
    move.read_offset = used;
    run->bytes += bytes;
    used += bytes;
  }
  piece.first = first;
  piece.end = i;
}

// Writes from written_ and reads a piece, together. 0, or the first error of a write; that of a read is in the piece.
int Collector::transfer(std::span<const Run> writes, Piece& reads) {
  std::vector<storage::Io> ios(writes.size() + reads.runs.size());
  std::vector<iovec> memory(ios.size());
  std::vector<storage::Io*> batch;
  const auto add = [&](storage::Operation operation, const Run& run, std::span<std::byte> bytes) {
    const size_t i = batch.size();
    memory[i] = {bytes.data() + run.at, run.bytes};
    ios[i].operation = operation;
    ios[i].offset_bytes = run.offset_bytes;
    ios[i].segments = &memory[i];
    ios[i].segment_count = 1;
    ios[i].length_bytes = run.bytes;
    batch.push_back(&ios[i]);
  };
  for (const Run& run : writes) add(storage::Operation::kWrite, run, written_);
  for (const Run& run : reads.runs) add(storage::Operation::kRead, run, reads.memory);
  for (std::span<storage::Io*> left = batch; !left.empty();) {
    const size_t together = std::min(left.size(), log_->is_awaited() ? kDepth : kGentleDepth);
    channel_.run(left.first(together));
    left = left.subspan(together);
  }
  int error = 0;
  reads.error = 0;
  for (const storage::Io& io : ios) {
    int& first = io.operation == storage::Operation::kWrite ? error : reads.error;
    if (!io.whole() && first == 0) first = io.error != 0 ? io.error : EIO;
  }
  return error;
}

// Reads all that is live in a victim. 0; EBADMSG: some of it is damaged, or unreadable for good; or an errno value.
int Collector::read_all(uint32_t victim, Whole& whole) {
  uint64_t bytes = 0;
  for (Piece piece; piece.end < live_.size();) {
    plan(piece.end, piece);
    bytes += piece.bytes();
    whole.pieces.push_back(piece);
  }
  auto memory = memory_of(bytes);
  if (!memory) return ENOMEM;
  whole.memory = *memory;
  uint64_t damaged = 0, used = 0;
  for (Piece& piece : whole.pieces) {
    piece.memory = whole.memory.subspan(used, piece.bytes());
    used += piece.bytes();
    static_cast<void>(transfer({}, piece));
    const std::span moves = std::span(live_).subspan(piece.first, piece.end - piece.first);
    if (piece.error != 0) {
      if (!is_given_up(log_->segment(victim), moves.front().old_address, piece.error)) return piece.error;
      if (const int error = read_singly(piece, moves); error != 0) return error;
      piece.error = 0;
    }
    Record record;
    damaged += static_cast<uint64_t>(std::ranges::count_if(
        moves, [&](const Move& move) { return !is_as_listed(victim, bytes_of(piece, move), move, record); }));
  }
  counts_.damaged_records.fetch_add(damaged, std::memory_order_relaxed);
  return damaged == 0 ? 0 : EBADMSG;
}

// Reads each record of a piece by itself, after the medium has failed again and again to read them together: what it cannot read may be dead records
// between them. A record that it cannot read becomes zeros, which fail every check. 0, or an errno value that is not the medium's.
int Collector::read_singly(const Piece& piece, std::span<const Move> moves) {
  const Geometry& geometry = identity_->geometry;
  for (const Move& move : moves) {
    const std::span to =
        piece.memory.subspan(move.read_offset, move.from.grains * uint64_t{geometry.grain_bytes});
    const bool is_tried = unreadable_count_ < kMaxUnreadable;
    const int error = is_tried ? channel_.read(geometry.offset_of(move.old_address), to) : EIO;
    if (error == 0) continue;
    if (!is_of_medium(error)) return error;
    std::ranges::fill(to, std::byte{0});
    ++unreadable_count_;
  }
  return 0;
}

// Moves a piece that has been read, while the next one is read. 0, or an errno value: the piece was not moved.
int Collector::move(uint32_t victim, const SegmentFooter& footer, const Piece& piece, Piece& next) {
  const std::span moves = std::span(live_).subspan(piece.first, piece.end - piece.first);
  if (piece.error != 0) {
    if (!is_given_up(log_->segment(victim), moves.front().old_address, piece.error)) return piece.error;
    if (const int error = read_singly(piece, moves); error != 0) return error;
  } else {
    note_read(log_->segment(victim), moves.front().old_address, moves.back().old_address);
  }
  for (const Run& run : piece.runs) counts_.read_bytes.fetch_add(run.bytes, std::memory_order_relaxed);
  const uint64_t oldest = log_->oldest_generation(victim);
  size_t kept = 0;
  for (Move& move : moves) {
    bool ends = false;
    if (!check(victim, footer, oldest, bytes_of(piece, move), move, ends)) {
      counts_.damaged_records.fetch_add(1, std::memory_order_relaxed);
    } else if (ends) {
      tombstones_.push_back(move);
      gained_grains_ += move.from.grains;
      counts_.ended_tombstones.fetch_add(1, std::memory_order_relaxed);
    } else {
      moves[kept++] = move;
    }
  }
  return write(piece, moves.first(kept), next);
}

// Is the record whole, and the one that the summary says?
bool Collector::is_as_listed(uint32_t victim, std::span<const std::byte> bytes, const Move& move,
                             Record& record) const {
  const uint64_t generation = log_->segment(victim).generation.load(std::memory_order_relaxed);
  return read_record(identity_->secret, generation, bytes, record) == Reading::kWhole &&
         hash_record(identity_->secret, record) == move.from.hash &&
         record.header.sequence_and_kind == move.from.sequence_and_kind;
}

// False: the record is damaged. Otherwise decides what becomes of it; `ends`: it is a tombstone that nobody needs any more.
bool Collector::check(uint32_t victim, const SegmentFooter& footer, uint64_t oldest,
                      std::span<const std::byte> bytes, Move& move, bool& ends) {
  Record record;
  if (!is_as_listed(victim, bytes, move, record)) return false;
  move.grains = move.from.grains;
  move.expiry = record.header.expiry();
  if (move.kind == RecordKind::kTombstone) {
    // It has not been moved before.
    if (move.expiry == 0) move.expiry = footer.sealed_generation;
    ends = move.expiry < oldest;
  } else if (move.kind != RecordKind::kPiece && lifetimes_->has_ended(record)) {
    if (record.value.size() == sizeof move.pieces)
      memcpy(&move.pieces, record.value.data(), sizeof move.pieces);
    move.kind = RecordKind::kTombstone;
    move.expiry = log_->taken_generation();
    move.grains =
        static_cast<uint32_t>(identity_->geometry.grains(record_bytes(record.header.key_bytes(), 0)));
    gained_grains_ += move.from.grains - move.grains;
  }
  return true;
}

// Adds a write of `bytes` of written_, from `at` on, to the address; joins it to the last write if that ends there.
void Collector::add_write(uint64_t address, uint64_t at, uint64_t bytes) {
  const uint64_t offset = identity_->geometry.offset_of(address);
  if (writes_.empty() || writes_.back().offset_bytes + writes_.back().bytes != offset ||
      writes_.back().bytes + bytes > kIoBytes)
    writes_.push_back({.offset_bytes = offset, .at = at, .bytes = 0});
  writes_.back().bytes += bytes;
}

// Steps 3 and 4.
int Collector::write(const Piece& piece, std::span<Move> moves, Piece& next) {
  const uint64_t grain_bytes = identity_->geometry.grain_bytes;
  uint64_t used = 0;
  writes_.clear();
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
    memcpy(to.data(), piece.memory.data() + move.read_offset, bytes);
    move_record(identity_->secret, move.to.generation, move.kind, move.expiry, to);
    add_write(move.to.address, used, bytes);
    used += bytes;
  }
  const int error = transfer(writes_, next);
  if (error != 0) {
    // Some of the copies may be on the medium.
    for (const Move& move : moves) finish_unused(move);
    return error;
  }
  counts_.moved_bytes.fetch_add(used, std::memory_order_relaxed);
  install(moves);
  return 0;
}

// Gives up a copy that the index does not get. If the key has been removed, or will be, its tombstone must not end before this copy does.
void Collector::finish_unused(const Move& move) {
  log_->segment(move.to.segment).has_old_copies.store(true, std::memory_order_relaxed);
  log_->finish(move.to, false);
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
    // If not, somebody has changed the key meanwhile.
    if (done)
      log_->finish(move.to, true);
    else
      finish_unused(move);
    counts_.moved_records.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace kv
