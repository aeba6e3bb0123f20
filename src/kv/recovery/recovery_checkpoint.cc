#include "kv/recovery/recovery_checkpoint.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/ids.h"

namespace kv {
namespace {

// In a checkpoint's last segment reads begin small and grow, since most checkpoints are small; other segments are read to their ends.
constexpr uint64_t kFirstBytes = 512 << 10;
constexpr uint64_t kMaxStepBytes = RecoveryReader::kMaxBytes - kFirstBytes;
static_assert(kFirstBytes >= kMaxPieceBytes + 4096,
              "there is a whole piece in what is read at a time, and less is left");

}  // namespace

CheckpointReader::CheckpointReader(const Identity& identity, uint64_t number, std::span<const uint32_t> parts,
                                   Index& index)
    : identity_(identity), number_(number), parts_(parts), index_(index) {
  begin_part(0);
}

base::Expected<void> CheckpointReader::not_whole() {
  return base::failure(EBADMSG, "store: a checkpoint is not whole");
}

base::Expected<void> CheckpointReader::run(RecoveryReader& reader) {
  const auto image = std::make_unique<TableImage>();
  for (;;) {
    base::Expected<Pieces> pieces;
    {
      sys::LockGuard scope(lock_);
      if (has_end_ || has_failed_) return {};
      pieces = next(reader);
      has_failed_ = !pieces;
    }
    if (!pieces) return std::unexpected(pieces.error());
    if (auto used = use(*pieces, *image); !used) {
      sys::LockGuard scope(lock_);
      has_failed_ = true;
      return used;
    }
  }
}

// REQUIRES: the lock.
base::Expected<CheckpointReader::Pieces> CheckpointReader::next(RecoveryReader& reader) {
  const uint64_t end = identity_.geometry.segment_bytes - identity_.geometry.grain_bytes;
  while (part_ < parts_.size()) {
    const uint64_t bytes = std::min(step_bytes_, end - at_);
    const std::span window = reader.memory().first(rest_.size() + bytes);
    std::ranges::copy(rest_, window.begin());
    if (auto got = reader.read_into(parts_[part_], at_, window.subspan(rest_.size())); !got)
      return std::unexpected(got.error());
    at_ += bytes;
    step_bytes_ = std::min(2 * step_bytes_, kMaxStepBytes);
    const uint32_t first = piece_;
    auto found_bytes = find_pieces(window);
    if (!found_bytes) return std::unexpected(found_bytes.error());
    if (*found_bytes != 0) return Pieces{.bytes = window.first(*found_bytes), .first = first};
  }
  return std::unexpected(not_whole().error());
}

// How many of these bytes are whole pieces. What follows them, if it may be the beginning of another piece, goes to rest_.
base::Expected<uint64_t> CheckpointReader::find_pieces(Bytes window) {
  const Geometry& geometry = identity_.geometry;
  const uint64_t end = geometry.segment_bytes - geometry.grain_bytes;
  uint64_t found_bytes = 0;
  bool goes_on = at_ < end;
  while (found_bytes < window.size()) {
    const Bytes left = window.subspan(found_bytes);
    PieceHeader header;
    const bool is_piece = read_piece_header(identity_, left, header) && header.checkpoint == number_;
    const uint64_t bytes = geometry.grains(header.bytes) * geometry.grain_bytes;
    goes_on = goes_on && is_piece && bytes <= left.size() + (end - at_);
    if (!is_piece || bytes > left.size()) break;
    if (header.kind == PieceKind::kTable)
      if (auto known = index_.restore_shape(header.shape()); !known) return std::unexpected(known.error());
    found_bytes += bytes;
    ++piece_;
    has_end_ = header.kind == PieceKind::kEnd;
    if (has_end_) break;
  }
  if (!goes_on) {
    begin_part(part_ + 1);
    return found_bytes;
  }
  const Bytes rest = window.subspan(found_bytes);
  rest_.assign(rest.begin(), rest.end());
  return found_bytes;
}

void CheckpointReader::begin_part(size_t part) {
  rest_.clear();
  part_ = part;
  at_ = identity_.geometry.grain_bytes;
  step_bytes_ = part_ + 1 < parts_.size() ? kMaxStepBytes : kFirstBytes;
}

base::Expected<void> CheckpointReader::use(const Pieces& pieces, TableImage& image) {
  Bytes left = pieces.bytes;
  for (uint32_t expected = pieces.first; !left.empty(); ++expected) {
    PieceHeader header;
    if (!read_piece_header(identity_, left, header) || header.number != expected) return not_whole();
    if (header.kind == PieceKind::kEnd)
      return read_piece(identity_, header, left, state_) ? base::Expected<void>() : not_whole();
    if (!read_piece(identity_, header, left, image)) return not_whole();
    if (auto restored = index_.restore_slots(image); !restored) return restored;
    left = left.subspan(identity_.geometry.grains(header.bytes) * identity_.geometry.grain_bytes);
  }
  return {};
}

}  // namespace kv
