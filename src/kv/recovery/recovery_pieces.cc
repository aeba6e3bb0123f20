// Recovery's step 7: pieces of large values leave the index if no head there names them.
#include <cstring>
#include <map>

#include "kv/recovery/recovery_inside.h"

namespace kv {

// Step 7. REQUIRES: has_read_all(), or a head that cannot be read would lose its pieces.
base::Expected<void> Recovery::end_pieces(Worker& worker) {
  // Replayed ones, by value.
  std::map<uint64_t, uint64_t> groups;
  for (uint32_t i = 0; i < segments_.size(); ++i)
    if (has_pieces_[i])
      for (const SummaryEntry& entry : segments_[i].entries)
        if (entry.kind() == RecordKind::kPiece)
          groups.emplace(entry.sequence(), geometry_.address(i, entry.grain));
  for (const auto& [sequence, address] : groups) {
    PieceKey key;
    auto read = read_key(worker, address, key);
    if (!read) return std::unexpected(read.error());
    if (!*read) continue;
    if (auto ended = end_value(worker, key.head, sequence); !ended) return ended;
  }
  for (uint32_t i = 0; i < worker_count_; ++i)
    for (const uint64_t address : workers_[i].ended_heads)
      if (auto ended = end_value_of(worker, address); !ended) return ended;
  for (const auto& headless : std::span(state_.headless).first(state_.headless_count))
    if (auto ended = end_value(worker, headless.head, headless.sequence); !ended) return ended;
  return {};
}

// Of a large value whose head was at this address.
base::Expected<void> Recovery::end_value_of(Worker& worker, uint64_t address) {
  auto entry = entry_at(worker, address);
  if (!entry) return std::unexpected(entry.error());
  auto pieces = read_head(worker, address, **entry);
  if (!pieces) return std::unexpected(pieces.error());
  if (pieces->sequence == 0) return {};
  return end_value(worker, (*entry)->hash, pieces->sequence);
}

// All pieces of a value leave the index, unless its key's record there names them.
base::Expected<void> Recovery::end_value(Worker& worker, const KeyHash& head, uint64_t sequence) {
  auto is_there = has_head(worker, head, sequence);
  if (!is_there) return std::unexpected(is_there.error());
  if (*is_there) return {};
  const uint64_t most = kValueBytesMax / PieceKey::value_bytes(geometry_) + 1;
  for (uint64_t number = 0; number < most; ++number) {
    const PieceKey key = {.head = head, .sequence = sequence, .number = number};
    const KeyHash hash = hash_piece(identity_.secret, key);
    Location all[Index::kCandidatesMax];
    const size_t count = index_->find_all(hash.low, all);
    for (size_t i = 0; i < count; ++i) {
      auto entry = entry_at(worker, all[i].address);
      if (!entry) return std::unexpected(entry.error());
      if (*entry == nullptr || (*entry)->hash != hash || !index_->remove(hash.low, all[i].address)) continue;
      log_.release(all[i].address, all[i].size);
      ++worker.reader.report.headless_pieces;
    }
  }
  return {};
}

base::Expected<Reading> Recovery::read_at(Worker& worker, uint64_t address, const SummaryEntry& entry,
                                          Record& record) {
  const auto index = static_cast<uint32_t>(segment_of(address));
  return worker.reader.read_record(segments_[index], index, entry, record);
}

// False: it is damaged.
base::Expected<bool> Recovery::read_key(Worker& worker, uint64_t address, PieceKey& key) {
  auto entry = entry_at(worker, address);
  if (!entry) return std::unexpected(entry.error());
  Record record;
  auto reading = read_at(worker, address, **entry, record);
  if (!reading) return std::unexpected(reading.error());
  if (*reading != Reading::kWhole || record.key.size() != sizeof key) return false;
  memcpy(&key, record.key.data(), sizeof key);
  return true;
}

// One of sequence 0: it is damaged.
base::Expected<PiecesOf> Recovery::read_head(Worker& worker, uint64_t address, const SummaryEntry& entry) {
  Record record;
  auto reading = read_at(worker, address, entry, record);
  if (!reading) return std::unexpected(reading.error());
  PiecesOf pieces;
  if (*reading == Reading::kWhole && record.value.size() == sizeof pieces)
    memcpy(&pieces, record.value.data(), sizeof pieces);
  return pieces;
}

// Is there a head in the index, of this key, that names the sequence? What is damaged counts as if, and so does what cannot be read.
base::Expected<bool> Recovery::has_head(Worker& worker, const KeyHash& head, uint64_t sequence) {
  Location all[Index::kCandidatesMax];
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
