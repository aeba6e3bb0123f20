// Channel: how one thread, or the tasks of one worker, reach the store's device, counted; and the memory that they read into. All I/O
// of the store but recovery's goes this way.
// Thread contract: of the thread that opens it, or of the tasks of its worker.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "kv/media/io_counts.h"
#include "storage/device.h"
#include "task/channel.h"

namespace kv {

class Channel {
 public:
  // As task::Channel's.
  base::Expected<void> open(storage::Device& device, size_t depth);
  base::Expected<void> open_for_threads(storage::Device& device,
                                        size_t batch_depth = task::Channel::kBatchDepth);
  void close() { channel_.close(); }
  void fix_memory(std::span<std::byte> memory) { channel_.fix_memory(memory); }
  bool overlaps() const { return channel_.overlaps(); }

  // What is done from now on is counted as done for that, where a call does not say so itself.
  void counts_as(IoFor purpose) { purpose_ = purpose; }
  // Adds what has been done since it was opened to counts by IoFor. Any thread.
  void add_io(IoCounts (&to)[kIoForCount]) const {
    for (size_t i = 0; i < kIoForCount; ++i) to[i].add(io_[i].counts());
  }

  // All or nothing: 0, or an errno value; EIO for what ended early.
  int read(uint64_t offset_bytes, std::span<std::byte> to) { return read(offset_bytes, to, purpose_); }
  int read(uint64_t offset_bytes, std::span<std::byte> to, IoFor purpose);
  int write(uint64_t offset_bytes, std::span<const std::byte> from);
  int flush();
  // The medium may forget what is there. Cost: none where it cannot.
  int discard(uint64_t offset_bytes, uint64_t bytes);
  // As task::Channel's.
  void run(std::span<storage::Io* const> batch) { run(batch, purpose_); }
  void run(std::span<storage::Io* const> batch, IoFor purpose);

 private:
  void run(storage::Io& io, IoFor purpose);
  int transfer(storage::Operation operation, uint64_t offset_bytes, const void* memory, size_t bytes,
               IoFor purpose);

  task::Channel channel_;
  IoFor purpose_ = IoFor::kChanges;
  IoCounter io_[kIoForCount];
};

// Memory for I/O, aligned to 4 KiB, in sizes of 4 KiB times powers of two; kept when given back. Of one channel's user.
class BufferPool {
 public:
  static constexpr size_t kBytesMax = 4 << 20;

  BufferPool() = default;
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Memory in one piece, which buffers are taken from as long as it lasts. Not more of it when it is there already. Empty: there is none.
  std::span<std::byte> reserve(size_t bytes);
  // At least so many bytes; empty when there is no memory. REQUIRES: bytes <= kBytesMax. Cost: no system call, as a rule.
  std::span<std::byte> take(size_t bytes);
  void give(std::span<std::byte> buffer);

 private:
  static constexpr unsigned kSizes = 11;
  static constexpr size_t kChunkBytes = 256 << 10;
  struct Free {
    Free* next;
  };
  struct Chunk {
    Chunk* next;
    size_t bytes;
  };
  std::byte* add_chunk(size_t bytes);

  Free* free_[kSizes] = {};
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

}  // namespace kv
