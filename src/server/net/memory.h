// Memory: bytes for a scope, from a pool if the pool has that many in one piece, else from the OS.
#pragma once
#include <cstddef>
#include <span>
#include <utility>

#include "base/error.h"
#include "storage/buffer_pool.h"

namespace server {

// Thread contract: that of the pool, which outlives this.
class Memory {
 public:
  Memory() = default;
  ~Memory() { reset(); }
  Memory(Memory&& from) noexcept { *this = std::move(from); }
  Memory& operator=(Memory&& from) noexcept {
    std::swap(pool_, from.pool_);
    std::swap(bytes_, from.bytes_);
    return *this;
  }

  // Takes at least this many bytes, and gives back those that it had before. Errors: ENOMEM; then it has none.
  base::Expected<void> take(storage::BufferPool& pool, size_t bytes);
  void reset();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  storage::BufferPool* pool_ = nullptr;  // null: the bytes are from the OS
  std::span<std::byte> bytes_;
};

}  // namespace server
