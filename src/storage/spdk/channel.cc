#include "storage/spdk/channel.h"

#include <errno.h>
#include <spdk/env.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "storage/backends/nvme_status.h"
#include "storage/spdk/environment.h"

namespace storage::spdk {
namespace {

constexpr size_t kMaxPieces = 256;
constexpr size_t kMaxBouncedPieces = 32;
constexpr uint64_t kPieceBytes = 128 << 10;
constexpr uint64_t kBouncedPieceBytes = 64 << 10;
constexpr uint64_t kDiscardedPieceBytes = uint64_t{1} << 36;
constexpr uint64_t kLongestGapNs = 100'000'000;

bool transfers(const Io& io) { return io.operation == Operation::kRead || io.operation == Operation::kWrite; }

}  // namespace

Channel* Channel::open(Target& target, size_t depth, SpdkError& error) {
  auto* channel = new Channel(target, depth);
  run_on_control(
      [&] {
        if (!channel->take_memory()) {
          error.number = ENOMEM;
          snprintf(error.reason, sizeof error.reason, "SPDK's memory is all in use");
          return;
        }
        channel->queue_ = target.open_queue_pair(depth, error);
      },
      &error);
  if (channel->queue_ != nullptr) return channel;
  channel->close();
  return nullptr;
}

bool Channel::take_memory() {
  const bool bounces = target_.text().bounces;
  const uint64_t block_bytes = target_.facts().block_bytes;
  piece_bytes_ = std::min<uint64_t>(bounces ? kBouncedPieceBytes : kPieceBytes,
                                    spdk_nvme_ns_get_max_io_xfer_size(target_.space()));
  piece_bytes_ = std::max(piece_bytes_ / block_bytes * block_bytes, block_bytes);
  pieces_.resize(std::min(std::max(slots_.size(), size_t{16}), bounces ? kMaxBouncedPieces : kMaxPieces));
  if (bounces) {
    bounces_ = static_cast<char*>(spdk_dma_malloc(pieces_.size() * kBouncedPieceBytes, 4096, nullptr));
    if (bounces_ == nullptr) return false;
  }
  for (size_t i = pieces_.size(); i-- > 0;) {
    pieces_[i].channel = this;
    pieces_[i].bounce = bounces ? bounces_ + i * kBouncedPieceBytes : nullptr;
    pieces_[i].next = free_pieces_;
    free_pieces_ = &pieces_[i];
  }
  for (size_t i = slots_.size(); i-- > 0;) {
    slots_[i].next = free_slots_;
    free_slots_ = &slots_[i];
  }
  return true;
}

void Channel::close() {
  // Frees the queue pair where it was made.
  run_on_control([this] { delete this; });
}

Channel::~Channel() {
  if (queue_ != nullptr) spdk_nvme_ctrlr_free_io_qpair(queue_);
  // A device that was given up on may still write there.
  if (bounces_ != nullptr && lost_error_ == 0) spdk_dma_free(bounces_);
}

void Channel::start(Io& io) {
  lose_if_connection_is();
  if (queue_ == nullptr) {
    io.error = lost_error_;
    ended_.append(io);
    return;
  }
  Slot& slot = *free_slots_;
  free_slots_ = slot.next;
  slot = {.io = &io, .give_up_ns = attended_ns() + uint64_t{target_.text().timeout_seconds} * 1'000'000'000};
  slot.before = last_;
  (last_ != nullptr ? last_->next : first_) = &slot;
  last_ = &slot;
  if (to_begin_ == nullptr) to_begin_ = &slot;
}

// Gives the target as many pieces as it takes.
void Channel::pump() {
  while (to_begin_ != nullptr) {
    Slot& slot = *to_begin_;
    const int result = slot.error == 0 ? begin_piece(slot) : 0;
    if (result == -ENOMEM && pieces_under_way_count_ > 0) return;  // continues when some pieces have ended
    if (result == -ENXIO) {
      lose(ENXIO);
      return;
    }
    if (result != 0) {
      slot.error = -result;
      slot.error_at_bytes = slot.begun_bytes;
    }
    if (slot.error == 0 && !slot.all_begun) continue;
    slot.all_begun = true;
    to_begin_ = slot.next;
    end_if_over(slot);
  }
}

// Begins the slot's next piece. Returns 0; or -ENOMEM, -ENXIO or another error of SPDK's, and nothing has begun.
int Channel::begin_piece(Slot& slot) {
  const Io& io = *slot.io;
  const bool does_nothing = (io.operation == Operation::kDiscard && !target_.facts().discards) ||
                            (io.operation == Operation::kFlush && !target_.flushes());
  if (does_nothing) {
    slot.all_begun = true;
    return 0;
  }
  if (free_pieces_ == nullptr) return -ENOMEM;
  Piece& piece = *free_pieces_;
  const uint64_t most_bytes = transfers(io) ? piece_bytes_ : kDiscardedPieceBytes;
  piece.slot = &slot;
  piece.at_bytes = slot.begun_bytes;
  piece.bytes = std::min(io.length_bytes - slot.begun_bytes, most_bytes);
  if (piece.bounce != nullptr && io.operation == Operation::kWrite) copy(piece, true);
  free_pieces_ = piece.next;
  ++pieces_under_way_count_;
  ++slot.under_way_count;
  if (const int result = give(piece); result != 0) {
    piece.next = free_pieces_;
    free_pieces_ = &piece;
    --pieces_under_way_count_;
    --slot.under_way_count;
    return result;
  }
  slot.begun_bytes += piece.bytes;
  slot.all_begun = io.operation == Operation::kFlush || slot.begun_bytes == io.length_bytes;
  return 0;
}

int Channel::give(Piece& piece) {
  const Io& io = *piece.slot->io;
  const uint64_t block_bytes = target_.facts().block_bytes;
  const uint64_t block = (io.offset_bytes + piece.at_bytes) / block_bytes;
  const auto count = static_cast<uint32_t>(piece.bytes / block_bytes);
  switch (io.operation) {
    case Operation::kRead:
      if (piece.bounce != nullptr)
        return spdk_nvme_ns_cmd_read(target_.space(), queue_, piece.bounce, block, count, on_completion,
                                     &piece, 0);
      return spdk_nvme_ns_cmd_readv(target_.space(), queue_, block, count, on_completion, &piece, 0,
                                    reset_segments, next_segment);
    case Operation::kWrite:
      if (piece.bounce != nullptr)
        return spdk_nvme_ns_cmd_write(target_.space(), queue_, piece.bounce, block, count, on_completion,
                                      &piece, 0);
      return spdk_nvme_ns_cmd_writev(target_.space(), queue_, block, count, on_completion, &piece, 0,
                                     reset_segments, next_segment);
    case Operation::kDiscard: {
      spdk_nvme_dsm_range range = {};
      range.starting_lba = block;
      range.length = count;
      return spdk_nvme_ns_cmd_dataset_management(target_.space(), queue_, SPDK_NVME_DSM_ATTR_DEALLOCATE,
                                                 &range, 1, on_completion, &piece);
    }
    case Operation::kFlush: return spdk_nvme_ns_cmd_flush(target_.space(), queue_, on_completion, &piece);
  }
  return -EINVAL;
}

void Channel::reset_segments(void* argument, uint32_t offset_bytes) {
  Piece& piece = *static_cast<Piece*>(argument);
  const iovec* segments = piece.slot->io->segments;
  uint64_t skipped_bytes = piece.at_bytes + offset_bytes;
  piece.segment = 0;
  while (skipped_bytes >= segments[piece.segment].iov_len) skipped_bytes -= segments[piece.segment++].iov_len;
  piece.segment_at_bytes = skipped_bytes;
}

int Channel::next_segment(void* argument, void** address, uint32_t* bytes) {
  Piece& piece = *static_cast<Piece*>(argument);
  const iovec& segment = piece.slot->io->segments[piece.segment];
  *address = static_cast<char*>(segment.iov_base) + piece.segment_at_bytes;
  // SPDK takes as much of it as it needs.
  *bytes = static_cast<uint32_t>(std::min<uint64_t>(segment.iov_len - piece.segment_at_bytes, piece.bytes));
  ++piece.segment;
  piece.segment_at_bytes = 0;
  return 0;
}

void Channel::copy(Piece& piece, bool to_bounce) {
  reset_segments(&piece, 0);
  for (uint64_t done_bytes = 0; done_bytes < piece.bytes;) {
    void* address;
    uint32_t bytes;
    next_segment(&piece, &address, &bytes);
    const auto part_bytes = std::min<uint64_t>(bytes, piece.bytes - done_bytes);
    char* bounce = piece.bounce + done_bytes;
    memcpy(to_bounce ? bounce : address, to_bounce ? address : bounce, part_bytes);
    done_bytes += part_bytes;
  }
}

void Channel::on_completion(void* argument, const spdk_nvme_cpl* completion) {
  Piece& piece = *static_cast<Piece*>(argument);
  Channel& channel = *piece.channel;
  int error = error_of_nvme_status(completion->status.sct, completion->status.sc, piece.slot->io->operation);
  // The namespace may be gone, and another one may take its number.
  if (error == ENXIO) channel.target_.connection().set_lost(error);
  // While the queue pair is being freed, everything that ends has this error.
  if (error != 0 && channel.lost_error_ != 0) error = channel.lost_error_;
  channel.piece_ended(piece, error);
}

void Channel::piece_ended(Piece& piece, int error) {
  Slot& slot = *piece.slot;
  if (error != 0) {
    if (slot.error == 0 || piece.at_bytes < slot.error_at_bytes) {
      slot.error = error;
      slot.error_at_bytes = piece.at_bytes;
    }
  } else if (piece.bounce != nullptr && slot.io->operation == Operation::kRead) {
    copy(piece, false);
  }
  piece.next = free_pieces_;
  free_pieces_ = &piece;
  --pieces_under_way_count_;
  --slot.under_way_count;
  end_if_over(slot);
}

void Channel::end_if_over(Slot& slot) {
  if (slot.under_way_count > 0 || !slot.all_begun) return;
  Io& io = *slot.io;
  io.error = slot.error;
  io.transferred_bytes = slot.error == 0 ? io.length_bytes : slot.error_at_bytes;
  (slot.before != nullptr ? slot.before->next : first_) = slot.next;
  (slot.next != nullptr ? slot.next->before : last_) = slot.before;
  slot.next = free_slots_;
  free_slots_ = &slot;
  ended_.append(io);
}

void Channel::poll(IoList& ended) {
  lose_if_connection_is();
  if (queue_ != nullptr && first_ != nullptr) {
    pump();
    if (queue_ != nullptr && spdk_nvme_qpair_process_completions(queue_, 0) < 0) lose(ENXIO);
    if (queue_ != nullptr && first_ != nullptr && attended_ns() > first_->give_up_ns) lose(ETIMEDOUT);
    if (queue_ != nullptr) pump();
  }
  while (!ended_.empty()) ended.append(ended_.take_first());
}

// For how long this channel has been attended to. Of a time in which it was not, such as while the process was stopped, at most
// kLongestGapNs count: the target is not to blame for the rest.
uint64_t Channel::attended_ns() {
  const uint64_t now = now_ns();
  attended_ns_ += std::min(now - attended_at_ns_, kLongestGapNs);
  attended_at_ns_ = now;
  return attended_ns_;
}

// When one queue pair is lost, all those of its connection are.
void Channel::lose_if_connection_is() {
  const int error = target_.connection().lost_error();
  if (queue_ != nullptr && error != 0) lose(error);
}

// Ends everything under way with `error`, or, if the connection was lost before, with that error.
void Channel::lose(int error) {
  error = lost_error_ = target_.connection().set_lost(error);
  spdk_nvme_ctrlr_free_io_qpair(queue_);  // calls on_completion for everything submitted to it
  queue_ = nullptr;
  to_begin_ = nullptr;
  while (first_ != nullptr) {
    Slot& slot = *first_;
    if (slot.error == 0) {
      slot.error = error;
      slot.error_at_bytes = slot.begun_bytes;
    }
    slot.all_begun = true;
    slot.under_way_count = 0;
    end_if_over(slot);
  }
}

}  // namespace storage::spdk
