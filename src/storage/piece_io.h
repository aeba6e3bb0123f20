// PieceIo: an Io over one contiguous piece of memory, with its segment; and PieceIos, several to be run together.
#pragma once
#include <new>
#include <type_traits>

#include "storage/device.h"

namespace storage {

struct PieceIo : Io {
  // The memory is the caller's, as with any Io; a write does not change it.
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

// Up to Most of them. Each has some 200 bytes, so many of them do not belong on the stack.
template <size_t Most>
class PieceIos {
 public:
  size_t size() const { return count_; }
  bool is_full() const { return count_ == Most; }
  // The Io stays in place until clear(). REQUIRES: not full.
  Io& add(Operation what, uint64_t at_bytes, const void* memory, uint64_t bytes) {
    Io* const io = new (&memory_[count_]) PieceIo(what, at_bytes, memory, bytes);
    all_[count_++] = io;
    return *io;
  }
  // In the order in which they were added, unless the caller reorders them here.
  std::span<Io*> all() { return {all_, count_}; }
  const Io& operator[](size_t index) const { return *all_[index]; }
  // REQUIRES: none is under way.
  void clear() { count_ = 0; }

 private:
  static_assert(std::is_trivially_destructible_v<PieceIo>);
  struct alignas(PieceIo) Memory {
    std::byte bytes[sizeof(PieceIo)];
  };
  Memory memory_[Most];
  Io* all_[Most];
  size_t count_ = 0;
};

}  // namespace storage
