// CheckpointReader: restores the index from a checkpoint's segments, on several threads.
//
//  1 One thread at a time reads some MiB of contiguous pieces; a piece that is cut off at the end is left for the next thread
//  2 It then checks the pieces that it has read and puts their tables into the index, while other threads read on
#pragma once
#include <vector>

#include "kv/index/index.h"
#include "kv/media/checkpoint_format.h"
#include "kv/recovery/recovery_reader.h"
#include "sys/lock.h"

namespace kv {

class CheckpointReader {
 public:
  // For the checkpoint of this number, whose segments are `parts` in their order. `index` has just been opened. All outlive it.
  CheckpointReader(const Identity& identity, uint64_t number, std::span<const uint32_t> parts, Index& index);
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  // Called by each thread that helps, with a reader of its own. When all calls have returned, none with an error, the index has all images, and
  // state() is the checkpoint's. Errors: EBADMSG: it is not whole; those of I/O, ENOMEM.
  base::Expected<void> run(RecoveryReader& reader);
  const CheckpointState& state() const { return state_; }

 private:
  // Whole, contiguous pieces.
  struct Pieces {
    Bytes bytes;
    uint32_t first = 0;  // the number of the first one
  };
  base::Expected<Pieces> next(RecoveryReader& reader);
  base::Expected<uint64_t> find_pieces(Bytes window);
  void begin_part(size_t part);
  base::Expected<void> use(const Pieces& pieces, TableImage& image);
  static base::Expected<void> not_whole();

  const Identity& identity_;
  const uint64_t number_;
  const std::span<const uint32_t> parts_;
  Index& index_;
  CheckpointState state_;  // set by the thread that reads the end

  sys::Mutex lock_;  // guards what follows
  size_t part_ = 0;
  uint64_t at_ = 0;              // how far the part has been read
  uint64_t step_bytes_;          // how much to read next
  std::vector<std::byte> rest_;  // what has been read of the next piece
  uint32_t piece_ = 0;           // the next piece's number
  bool has_end_ = false;         // the end has been read
  bool has_failed_ = false;
};

}  // namespace kv
