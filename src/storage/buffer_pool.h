// BufferPool: memory for I/O, and for what is too large for a task's stack. Buffers that are given back are kept; long-lived users with varying needs
// call trim() from time to time.
#pragma once
#include <cstddef>
#include <span>
#include <utility>

namespace storage {

// Buffers are aligned to 4 KiB, in sizes of 4 KiB times powers of two. Thread contract: one thread, or the tasks of one worker.
class BufferPool {
 public:
  static constexpr size_t kMaxBytes = 4 << 20;

  BufferPool() = default;
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Reserves memory in one piece, from which buffers are taken first. Later calls return the same memory. Empty if there is none.
  std::span<std::byte> reserve(size_t bytes);
  // At least `bytes`; empty if there is no memory. REQUIRES: bytes <= kMaxBytes. Cost: usually no system call.
  std::span<std::byte> take(size_t bytes);
  void give(std::span<std::byte> buffer);
  // Returns to the OS the memory of buffers that nobody has taken since the last call, except the first 4 KiB of each; at most kMaxTrimmedBytes.
  // Reserved memory stays. Cost: a look at each free buffer; some ms if there is much to return.
  void trim();
  static constexpr size_t kMaxTrimmedBytes = 16 << 20;

 private:
  static constexpr unsigned kSizes = 11;
  static constexpr size_t kChunkBytes = 256 << 10;
  struct Free {
    Free* next;
    bool is_trimmed = false;
  };
  // The free buffers of one size, the most recently given back first.
  struct Size {
    Free* first = nullptr;
    size_t count = 0;
    size_t least_count = 0;  // the lowest count since trim() last looked at all of them
  };
  struct Chunk {
    Chunk* next;
    size_t bytes;
  };
  std::byte* add_chunk(size_t bytes);
  Size& of_size(size_t bytes);
  static void put(Size& of, std::byte* buffer);
  bool is_reserved(const Free& buffer) const;

  Size sizes_[kSizes];
  Chunk* chunks_ = nullptr;
  std::span<std::byte> reserved_;
  size_t reserved_used_bytes_ = 0;
};

// Memory of a pool, for a scope.
class Buffer {
 public:
  Buffer() = default;
  Buffer(BufferPool& pool, size_t bytes) : pool_(&pool), bytes_(pool.take(bytes)) {}
  ~Buffer() { reset(); }
  Buffer(Buffer&& from) noexcept : pool_(from.pool_), bytes_(from.bytes_) { from.bytes_ = {}; }
  Buffer& operator=(Buffer&& from) noexcept {
    std::swap(pool_, from.pool_);
    std::swap(bytes_, from.bytes_);
    return *this;
  }

  std::span<std::byte> bytes() const { return bytes_; }
  void reset() {
    if (!bytes_.empty()) pool_->give(bytes_);
    bytes_ = {};
  }

 private:
  BufferPool* pool_ = nullptr;
  std::span<std::byte> bytes_;
};

}  // namespace storage
