// Recovery's step 7: pieces of large values leave the index if no head there names them.
//
// Without a checkpoint, any piece in the log may lack a head. With one, values may have lost their head since: if the head's segment has been given
// back, nothing in the log says which value it was. So all pieces are looked at in either case, unless nothing has changed since the
// checkpoint. If all pieces of a value are damaged, nothing says whose they are: then all heads are looked at.
#include <algorithm>
#include <cstring>

#include "kv/index/entry.h"
#include "kv/recovery/recovery_inside.h"

namespace kv {

namespace {

constexpr uint64_t kValuesAtOnce = 16;

}  // namespace

// Step 7. REQUIRES: has_read_all(): a head that cannot be read must not lose its pieces.
base::Expected<void> Recovery::end_pieces() {
  if (!may_have_headless()) return {};
  if (auto listed = for_all_segments(&Recovery::list_pieces); !listed) return listed;
  if (!has_read_all()) return {};
  const std::vector<Placed> pieces = pieces_in_index();
  std::vector<std::span<const Placed>> values;
  for (size_t begin = 0, end = 0; begin < pieces.size(); begin = end) {
    while (end < pieces.size() && pieces[end].entry.sequence() == pieces[begin].entry.sequence()) ++end;
    values.push_back(std::span(pieces).subspan(begin, end - begin));
  }
  auto ended = for_all(values.size(), kValuesAtOnce, [&](Worker& worker, uint64_t begin, uint64_t end) {
    base::Expected<void> done;
    for (uint64_t i = begin; done && i < end; ++i) done = end_if_headless(worker, values[i]);
    return done;
  });
  return ended ? end_nameless(values) : ended;
}

bool Recovery::may_have_headless() const {
  return recovered_.report.checkpoint == 0 || state_.headless_count > 0 ||
         has_dropped_.load(std::memory_order_relaxed) ||
         std::ranges::any_of(parted_, [](const Parted& parted) { return parted.count > 0; });
}

base::Expected<void> Recovery::list_pieces(Worker& worker, uint32_t index) {
  const FoundSegment& segment = segments_[index];
  if (!segment.is_used() || segment.footer.piece_count == 0) return {};
  return list_once(worker, index);
}

// Sorted by value: the pieces of a value have the same sequence, which those of no other value have.
std::vector<Recovery::Placed> Recovery::pieces_in_index() const {
  std::vector<Placed> pieces;
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    if (!segments_[i].is_listed.load(std::memory_order_relaxed) || segments_[i].footer.piece_count == 0)
      continue;
    for (const SummaryEntry& entry : segments_[i].entries) {
      if (entry.kind() != RecordKind::kPiece) continue;
      const uint64_t address = geometry_.address(i, entry.grain);
      if (index_->find_at(entry.hash.low, address).found)
        pieces.push_back({.entry = entry, .address = address});
    }
  }
  std::ranges::sort(pieces, {}, [](const Placed& piece) { return piece.entry.sequence(); });
  return pieces;
}

// The pieces of a value leave the index, unless its key's record there names them, or all are damaged, so that nothing says which key that is
// (end_nameless()).
base::Expected<void> Recovery::end_if_headless(Worker& worker, std::span<const Placed> pieces) {
  PieceKey key;
  bool is_known = false;
  for (size_t i = 0; i < pieces.size() && !is_known; ++i) {
    auto read = read_key(worker, pieces[i], key);
    if (!read) return std::unexpected(read.error());
    is_known = *read;
  }
  if (!is_known) {
    worker.sequences.push_back(pieces.front().entry.sequence());
    return {};
  }
  auto is_there = has_head(worker, key.head, key.sequence);
  if (!is_there) return std::unexpected(is_there.error());
  if (*is_there) return {};
  end_all(worker, pieces);
  if (!has_left_damaged_.load(std::memory_order_relaxed)) return {};
  return end_unlisted(worker, key, pieces.size());
}

void Recovery::end_all(Worker& worker, std::span<const Placed> pieces) {
  for (const Placed& piece : pieces) {
    if (!index_->remove(piece.entry.hash.low, piece.address)) continue;
    log_.release(piece.address, size_code::of(piece.entry.grains));
    ++worker.reader.report.headless_pieces;
  }
}

// The same for values whose key end_if_headless() could not find out. They stay if a head cannot be read, since it may name them.
base::Expected<void> Recovery::end_nameless(std::span<const std::span<const Placed>> values) {
  nameless_ = take_sequences();
  if (nameless_.empty() || has_left_damaged_.load(std::memory_order_relaxed)) return {};
  if (auto noted = for_all_segments(&Recovery::note_named); !noted) return noted;
  const std::vector<uint64_t> named = take_sequences();
  if (!has_read_all() || (!named.empty() && named.front() == 0)) return {};
  for (const std::span<const Placed> pieces : values) {
    const uint64_t sequence = pieces.front().entry.sequence();
    if (std::ranges::binary_search(nameless_, sequence) && !std::ranges::binary_search(named, sequence))
      end_all(workers_[0], pieces);
  }
  return {};
}

// Notes which of the nameless values the segment's heads name; 0: a head is damaged.
base::Expected<void> Recovery::note_named(Worker& worker, uint32_t index) {
  if (!segments_[index].is_used()) return {};
  if (auto listed = list_once(worker, index); !listed) return listed;
  for (const SummaryEntry& entry : segments_[index].entries) {
    const uint64_t address = geometry_.address(index, entry.grain);
    if (entry.kind() != RecordKind::kHead || !index_->find_at(entry.hash.low, address).found) continue;
    auto pieces = read_head(worker, address, entry);
    if (!pieces) return std::unexpected(pieces.error());
    if (pieces->sequence == 0 || std::ranges::binary_search(nameless_, pieces->sequence))
      worker.sequences.push_back(pieces->sequence);
  }
  return {};
}

// What the workers have noted, sorted. They begin anew.
std::vector<uint64_t> Recovery::take_sequences() {
  std::vector<uint64_t> all;
  for (uint32_t i = 0; i < worker_count_; ++i) {
    std::vector<uint64_t>& some = workers_[i].sequences;
    all.insert(all.end(), some.begin(), some.end());
    some.clear();
  }
  std::ranges::sort(all);
  return all;
}

// As end_if_headless(), for damaged pieces of this value that only the checkpoint knows, so that nothing lists them: they are looked up by their
// keys. Otherwise their segments would stay as they are for good (is_left_damaged()). `count`: how many other pieces have left.
base::Expected<void> Recovery::end_unlisted(Worker& worker, PieceKey key, uint64_t count) {
  for (key.number = 0; key.number <= count; ++key.number) {
    const KeyHash hash = hash_piece(identity_.secret, key);
    Location all[Index::kMaxCandidates];
    const size_t found = index_->find_all(hash.low, all);
    for (size_t i = 0; i < found; ++i) {
      auto entry = entry_at(worker, all[i].address);
      if (!entry) return std::unexpected(entry.error());
      if (*entry != nullptr || !index_->remove(hash.low, all[i].address)) continue;
      log_.release(all[i].address, all[i].size);
      ++worker.reader.report.headless_pieces;
      ++count;
    }
  }
  return {};
}

// Reads which value a piece is of. False: it is damaged. Only its first grain is read, and its hash confirms the key.
base::Expected<bool> Recovery::read_key(Worker& worker, const Placed& piece, PieceKey& key) {
  auto bytes = worker.reader.read_grain(static_cast<uint32_t>(segment_of(piece.address)), piece.entry.grain);
  if (!bytes) return std::unexpected(bytes.error());
  if (bytes->empty()) return false;
  memcpy(&key, bytes->subspan(sizeof(RecordHeader)).data(), sizeof key);
  return hash_piece(identity_.secret, key) == piece.entry.hash;
}

// What a head names; the sequence is 0 if it is damaged.
base::Expected<PiecesOf> Recovery::read_head(Worker& worker, uint64_t address, const SummaryEntry& entry) {
  const auto index = static_cast<uint32_t>(segment_of(address));
  Record record;
  auto reading = worker.reader.read_record(segments_[index], index, entry, record);
  if (!reading) return std::unexpected(reading.error());
  PiecesOf pieces;
  if (*reading == Reading::kWhole && record.value.size() == sizeof pieces)
    memcpy(&pieces, record.value.data(), sizeof pieces);
  return pieces;
}

// Does the index have a head of this key that names the sequence? A head that is damaged or cannot be read counts as one.
base::Expected<bool> Recovery::has_head(Worker& worker, const KeyHash& head, uint64_t sequence) {
  Location all[Index::kMaxCandidates];
  const size_t count = index_->find_all(head.low, all);
  for (size_t i = 0; i < count; ++i) {
    auto entry = entry_at(worker, all[i].address);
    if (!entry) return std::unexpected(entry.error());
    if (*entry == nullptr && segments_[segment_of(all[i].address)].unreadable_grains > 0) return true;
    if (*entry == nullptr || (*entry)->hash != head || (*entry)->kind() != RecordKind::kHead) continue;
    auto pieces = read_head(worker, all[i].address, **entry);
    if (!pieces) return std::unexpected(pieces.error());
    return pieces->sequence == sequence || pieces->sequence == 0;
  }
  return false;
}

}  // namespace kv
