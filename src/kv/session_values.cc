// What sessions do with values in pieces: reading them, and writing a piece.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/index/entry.h"
#include "kv/store.h"

namespace kv {

void Found::swap(Found& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(record_, other.record_);
  std::swap(store_, other.store_);
  std::swap(is_large_, other.is_large_);
  std::swap(pieces_, other.pieces_);
  std::swap(piece_memory_, other.piece_memory_);
  std::swap(piece_number_, other.piece_number_);
  std::swap(piece_, other.piece_);
}

void Found::reset() {
  if (is_large_ && store_->large_values_.end_read(pieces_)) store_->log_.collector_wanted.notify_all();
  is_large_ = false;
  memory_.reset();
  piece_memory_.reset();
  piece_ = {};
}

// Counts only the key of a large value: its pieces are counted when they are read.
uint64_t Session::count_found(std::string_view key, const base::Expected<Found>& found) {
  if (!found || !found->found()) return 0;
  const uint64_t bytes = key.size() + found->value().size();
  calls_.counts->got(bytes);
  return bytes;
}

base::Expected<size_t> Session::read_value(Found& found, uint64_t offset, std::span<std::byte> to) {
  if (offset >= found.value_bytes()) return size_t{0};
  to = to.first(std::min<uint64_t>(to.size(), found.value_bytes() - offset));
  for (size_t done = 0; done < to.size();) {
    Bytes from = found.value();
    uint64_t at = offset + done;
    if (found.is_large_) {
      const uint64_t number = at / found.pieces_.of.piece_bytes;
      if (found.piece_.empty() || found.piece_number_ != number)
        if (auto read = read_piece(found, number); !read) return std::unexpected(read.error());
      from = found.piece_;
      at %= found.pieces_.of.piece_bytes;
    }
    const size_t bytes = std::min<size_t>(from.size() - at, to.size() - done);
    memcpy(to.data() + done, from.data() + at, bytes);
    done += bytes;
  }
  return to.size();
}

base::Expected<void> Session::read_piece(Found& found, uint64_t number) {
  const Pieces& pieces = found.pieces_;
  const PieceKey key = {.head = pieces.head, .sequence = pieces.of.sequence, .number = number};
  const KeyHash hash = hash_piece(store_->identity_.secret, key);
  found.piece_ = {};
  // An error of reading a candidate, which may be of another key with the same tag.
  base::Expected<void> unread;
  const Readers::Reading reading(store_->readers_, place_);
  Index::Candidates all;
  const size_t count = store_->index_->find_all(hash.low, all);
  for (size_t i = 0; i < count; ++i) {
    Record record;
    auto match = read(all[i], key.text(), About::kPiece, true, IoFor::kGets, found.piece_memory_, record);
    if (!match && unread) unread = std::unexpected(match.error());
    if (!match || *match != Match::kYes) continue;
    const uint64_t left = pieces.of.value_bytes - number * pieces.of.piece_bytes;
    if (record.value.size() != std::min<uint64_t>(left, pieces.of.piece_bytes)) break;
    calls_.counts->got(record.value.size());
    found.piece_ = record.value;
    found.piece_number_ = number;
    return {};
  }
  if (store_->lifetimes_.has_dropped(pieces.of))
    return base::failure(ESTALE,
                         "store: the value was dropped while it was read, to make room; read it anew");
  return std::unexpected(unread ? damaged() : unread.error());
}

base::Expected<void> Session::write_piece(const PieceKey& key, Bytes value) {
  const KeyHash hash = hash_piece(store_->identity_.secret, key);
  const New next = {
      .kind = RecordKind::kPiece, .key = key.text(), .value = value, .options = {}, .sequence = key.sequence};
  Log::Request request = request_for(next);
  Written written;
  Current none;
  if (auto wrote = write(hash, next, request, none, written); !wrote) return wrote;
  for (;;) {
    Index::Candidates all;
    uint64_t others[Index::kMaxCandidates];
    const size_t count = store_->index_->find_all(hash.low, all);
    for (size_t i = 0; i < count; ++i)
      others[i] = all[i].address;  // a piece's key is new: these are records of others
    const auto done = store_->index_->insert(hash.low, written.extent.address, written.size, {others, count});
    if (done == Index::Inserted::kOther) continue;
    store_->log_.finish(written.extent, done == Index::Inserted::kDone);
    if (done == Index::Inserted::kDone) return {};
    return base::failure(ENOMEM, "store: no memory for the index");
  }
}

base::Expected<void> Session::flush() {
  if (const int error = store_->log_.flush(channel_, &store_->sync_flush_times_); error != 0) {
    store_->fail(error, true);
    return std::unexpected(io_error(error, "flush"));
  }
  return {};
}

}  // namespace kv
