// ValueWriter (store.h): writes a value in pieces, one after the other.
#include <algorithm>

#include "base/check.h"
#include "kv/store.h"

namespace kv {

base::Expected<void> ValueWriter::open(Session& session, std::string_view key) {
  CHECK(session_ == nullptr);
  if (auto checked = check_key(key); !checked) return checked;
  const Store& store = *session.store_;
  if (store.options_.read_only) return std::unexpected(store.failure());
  const Geometry& geometry = store.identity_.geometry;
  key_memory_ = storage::Buffer(session.pool_, key.size());
  memory_ = storage::Buffer(session.pool_, geometry.value_bytes_max());
  if (key_memory_.bytes().empty() || memory_.bytes().empty())
    return base::failure(ENOMEM, "store: no memory for a value");
  memcpy(key_memory_.bytes().data(), key.data(), key.size());
  key_ = {reinterpret_cast<const char*>(key_memory_.bytes().data()), key.size()};
  pieces_ = {.head = hash_key(store.identity_.secret, key),
             .of = {.sequence = 0, .value_bytes = 0, .piece_bytes = PieceKey::value_bytes(geometry)}};
  filled_bytes_ = 0;
  number_ = 0;
  session_ = &session;
  return {};
}

PieceKey ValueWriter::piece_key() const {
  return {.head = pieces_.head, .sequence = pieces_.of.sequence, .number = number_};
}

base::Expected<void> ValueWriter::write_piece() {
  Store& store = *session_->store_;
  if (pieces_.of.sequence == 0) {
    pieces_.of.sequence = store.log_.next_sequence();
    store.large_values_.begin_write(pieces_);
  }
  if (auto written = session_->write_piece(piece_key(), memory_.bytes().first(filled_bytes_)); !written)
    return written;
  ++number_;
  pieces_.of.value_bytes += filled_bytes_;
  filled_bytes_ = 0;
  return {};
}

base::Expected<void> ValueWriter::append(Bytes part) {
  if (pieces_.of.value_bytes + filled_bytes_ + part.size() > kMaxValueBytes)
    return base::failure(E2BIG, "store: a value of more than ", kMaxValueBytes, " bytes");
  const uint64_t most = session_->store_->identity_.geometry.value_bytes_max();
  while (!part.empty()) {
    // A value that fits in one record is not cut into pieces; that it does not fit is known only when more comes.
    if (filled_bytes_ == most || (number_ > 0 && filled_bytes_ == pieces_.of.piece_bytes)) {
      const size_t left = filled_bytes_ - std::min<size_t>(filled_bytes_, pieces_.of.piece_bytes);
      filled_bytes_ -= left;
      if (auto written = write_piece(); !written) return written;
      memmove(memory_.bytes().data(), memory_.bytes().data() + pieces_.of.piece_bytes, left);
      filled_bytes_ = left;
    }
    const size_t room = (number_ > 0 ? pieces_.of.piece_bytes : most) - filled_bytes_;
    const size_t bytes = std::min(room, part.size());
    memcpy(memory_.bytes().data() + filled_bytes_, part.data(), bytes);
    filled_bytes_ += bytes;
    part = part.subspan(bytes);
  }
  return {};
}

base::Expected<Changed> ValueWriter::commit(const PutOptions& options) {
  SessionCounts& counts = *session_->calls_.counts;
  const uint64_t bytes = key_.size() + pieces_.of.value_bytes + filled_bytes_;
  Timing timing(counts, CallKind::kPut);
  auto done = do_commit(options);
  if (done && done->outcome == Changed::Outcome::kDone) {
    counts.put(bytes);
    timing.moved(bytes);
  }
  return done;
}

base::Expected<Changed> ValueWriter::do_commit(const PutOptions& options) {
  Session& session = *session_;
  if (number_ == 0) {
    auto done = session.do_put(key_, memory_.bytes().first(filled_bytes_), options);
    abandon();
    return done;
  }
  if (auto checked = check_options(options); !checked) return std::unexpected(checked.error());
  if (filled_bytes_ > 0)
    if (auto written = write_piece(); !written) return std::unexpected(written.error());
  // The pieces are made durable first: a head whose pieces a power cut has taken would hide the value that was there before.
  if (auto flushed = session.flush(); !flushed) return std::unexpected(flushed.error());
  bool has_room = false;
  auto done = session.change({.kind = RecordKind::kHead,
                              .key = key_,
                              .value = std::as_bytes(std::span(&pieces_.of, 1)),
                              .options = options},
                             &has_room);
  const bool is_done = done && done->outcome == Changed::Outcome::kDone;
  if (is_done) session.store_->large_values_.end_write(pieces_);
  // After an error the head may be on the medium all the same, and be found after a crash: its pieces stay then.
  if (is_done || (!done && has_room)) {
    pieces_.of.sequence = 0;
    number_ = 0;
  }
  abandon();
  return done;
}

void ValueWriter::abandon() {
  if (session_ != nullptr && pieces_.of.sequence != 0) session_->store_->abandon_pieces(pieces_);
  key_memory_.reset();
  memory_.reset();
  session_ = nullptr;
}

}  // namespace kv
