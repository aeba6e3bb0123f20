// Memory: bytes for a scope, of a pool if they are few, else of the OS.
#pragma once
#include <cstddef>
#include <span>
#include <utility>

#include "base/error.h"
#include "storage/buffer_pool.h"

namespace server {

// Thread contract: as the pool's, which outlives it.
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

  // At least so many bytes; what was there before is given back. Errors: ENOMEM; then there is none.
  base::Expected<void> take(storage::BufferPool& pool, size_t bytes);
  void reset();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  storage::BufferPool* pool_ = nullptr;  // null: of the OS
  std::span<std::byte> bytes_;
};

}  // namespace server
