// Channel: how one thread, or the tasks of one worker, reach the store's device; and the memory that they read into.
//
// Calls of the store are written as if I/O blocked. A thread's does; a task's lets other tasks of its worker run meanwhile.
// It is also where the store counts its I/O: all but recovery's goes this way.
// Thread contract: of the thread that opens it, or of the tasks of its worker.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "kv/media/io_counts.h"
#include "storage/device.h"
#include "task/io_queue.h"

namespace kv {

class Channel {
 public:
  // For the calling thread; in a task for the tasks of its worker, of which `depth` Ios go to the device at a time.
  // Errors: EMFILE, ENOMEM, ENOSPC when a worker has too many pollers.
  base::Expected<void> open(storage::Device& device, size_t depth);
  // For threads, one at a time, whoever opens it: calls block the thread, also under a task. Of a batch `batch_depth` Ios go to the
  // device at a time. Errors: EMFILE, ENOMEM.
  static constexpr size_t kBatchDepth = 64;
  base::Expected<void> open_for_threads(storage::Device& device, size_t batch_depth = kBatchDepth);
  // Of one that is not open: nothing. REQUIRES: nothing is under way.
  void close();

  // Tasks' reads and writes of this memory, which stays mapped until the channel is closed, are to cost less.
  void fix_memory(std::span<std::byte> memory) {
    if (is_of_tasks_ && !memory.empty())
      static_cast<void>(tasks_queue_.fix_memory(memory.data(), memory.size()));
  }

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
  // Ios of reads, and of writes that overlap with nothing, in flight together; returns when all have ended, and each says how. A thread's
  // first such call opens a queue for them; without one (EMFILE, ENOMEM) they run one after the other.
  void run(std::span<storage::Io* const> batch) { run(batch, purpose_); }
  void run(std::span<storage::Io* const> batch, IoFor purpose);
  // Is what runs together as cheap as one after the other? For threads it may take others, which do the work.
  bool overlaps() const { return is_of_tasks_; }

 private:
  void run(storage::Io& io, IoFor purpose);
  void do_run(std::span<storage::Io* const> batch);
  int transfer(storage::Operation operation, uint64_t offset_bytes, const void* memory, size_t bytes,
               IoFor purpose);

  storage::Queue* queue_ = nullptr;        // of threads
  storage::Queue* batch_queue_ = nullptr;  // the same, for batches; once there has been one
  task::IoQueue tasks_queue_;              // else, if
  size_t batch_depth_ = kBatchDepth;
  bool is_of_tasks_ = false;
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
