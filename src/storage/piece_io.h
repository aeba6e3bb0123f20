// PieceIo: an Io over memory of one piece, with the segment that it needs.
#pragma once
#include "storage/device.h"

namespace storage {

struct PieceIo : Io {
  // The memory is the caller's, as of any Io; a write does not change it.
  PieceIo(Operation what, uint64_t at_bytes, const void* memory, uint64_t bytes)
      : piece{const_cast<void*>(memory), bytes} {
    operation = what;
    offset_bytes = at_bytes;
    segments = &piece;
    segment_count = 1;
    length_bytes = bytes;
  }
  PieceIo(const PieceIo&) = delete;
  PieceIo& operator=(const PieceIo&) = delete;

  const iovec piece;
};

}  // namespace storage
