// BufferPool: memory for I/O, and for what is too large for the stack of a task, which is kept when it is given back. Who uses it for long, with more
// at some times than at others, has it trimmed now and then.
#pragma once
#include <cstddef>
#include <span>
#include <utility>

namespace storage {

// Aligned to 4 KiB, in sizes of 4 KiB times powers of two. Thread contract: of one thread, or the tasks of one worker.
class BufferPool {
 public:
  static constexpr size_t kMaxBytes = 4 << 20;

  BufferPool() = default;
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Memory in one piece, which buffers are taken from as long as it lasts. Not more of it when it is there already. Empty: there is none.
  std::span<std::byte> reserve(size_t bytes);
  // At least so many bytes; empty when there is no memory. REQUIRES: bytes <= kMaxBytes. Cost: no system call, as a rule.
  std::span<std::byte> take(size_t bytes);
  void give(std::span<std::byte> buffer);
  // Gives the system the memory of buffers that nobody had since the last call, up to kMaxTrimmedBytes of it, but for the first 4 KiB of each. What was
  // reserved stays. Cost: a look at each free buffer; some ms where there is much to give.
  void trim();
  static constexpr size_t kMaxTrimmedBytes = 16 << 20;

 private:
  static constexpr unsigned kSizes = 11;
  static constexpr size_t kChunkBytes = 256 << 10;
  struct Free {
    Free* next;
    bool is_trimmed = false;
  };
  // The free buffers of a size, the one that was given back last first.
  struct Size {
    Free* first = nullptr;
    size_t count = 0;
    size_t least_count = 0;  // since trim() last looked at all of them
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
