// CheckpointReader: from a checkpoint's segments to the index, on several threads.
//
//  1 one thread at a time reads some MiB of pieces, as they lie one behind the other; what is cut off at the end is left for the next one
//  2 it checks the pieces that it has read, and puts tables into the index, while others read on
#pragma once
#include <vector>

#include "kv/index/index.h"
#include "kv/media/checkpoint_format.h"
#include "kv/recovery/recovery_reader.h"
#include "sys/lock.h"

namespace kv {

class CheckpointReader {
 public:
  // Of this number, whose segments are `parts` in their order, into an index as it was opened. All outlive it.
  CheckpointReader(const Identity& identity, uint64_t number, std::span<const uint32_t> parts, Index& index);
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  // By each thread that helps, with a reader of its own. When all have returned, none with an error, the index has all images, and
  // state() is the checkpoint's. Errors: EBADMSG: it is not whole; those of I/O, ENOMEM.
  base::Expected<void> run(RecoveryReader& reader);
  const CheckpointState& state() const { return state_; }

 private:
  // Whole pieces, one behind the other.
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
  CheckpointState state_;  // of who finds the end

  sys::Mutex lock_;  // of what follows
  size_t part_ = 0;
  uint64_t at_ = 0;              // what of the part has not been read
  uint64_t step_bytes_;          // to read next
  std::vector<std::byte> rest_;  // what has been read of the next piece
  uint32_t piece_ = 0;           // its number
  bool has_end_ = false;         // it has been read
  bool has_failed_ = false;
};

}  // namespace kv
