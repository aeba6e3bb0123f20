#include "storage/buffer_pool.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/ids.h"
#include "sys/memory.h"

namespace storage {

BufferPool::~BufferPool() {
  while (chunks_ != nullptr) {
    Chunk* const chunk = chunks_;
    chunks_ = chunk->next;
    sys::unmap(chunk, chunk->bytes);
  }
}

// Null: there is no memory.
std::byte* BufferPool::add_chunk(size_t bytes) {
  // A page of its own says what to give back.
  const size_t chunk_bytes = base::kOsPageBytes + bytes;
  auto memory = sys::map_anonymous(chunk_bytes, "buffers for I/O");
  if (!memory) return nullptr;
  chunks_ = new (*memory) Chunk{chunks_, chunk_bytes};
  return reinterpret_cast<std::byte*>(*memory) + base::kOsPageBytes;
}

std::span<std::byte> BufferPool::reserve(size_t bytes) {
  if (!reserved_.empty()) return reserved_;
  if (std::byte* const memory = add_chunk(bytes); memory != nullptr) reserved_ = {memory, bytes};
  return reserved_;
}

std::span<std::byte> BufferPool::take(size_t bytes) {
  CHECK_LE(bytes, kMaxBytes);
  const size_t size = std::bit_ceil(std::max(bytes, base::kOsPageBytes));
  Free*& free = free_[std::countr_zero(size / base::kOsPageBytes)];
  if (free == nullptr && size <= reserved_.size() - reserved_used_bytes_) {
    free = new (reserved_.data() + reserved_used_bytes_) Free{nullptr};
    reserved_used_bytes_ += size;
  }
  if (free == nullptr) {
    const size_t chunk_bytes = std::max(size, kChunkBytes);
    std::byte* const memory = add_chunk(chunk_bytes);
    if (memory == nullptr) return {};
    for (size_t at = 0; at < chunk_bytes; at += size) free = new (memory + at) Free{free};
  }
  Free* const taken = free;
  free = taken->next;
  return {reinterpret_cast<std::byte*>(taken), size};
}

void BufferPool::give(std::span<std::byte> buffer) {
  Free*& free = free_[std::countr_zero(buffer.size() / base::kOsPageBytes)];
  free = new (buffer.data()) Free{free};
}

}  // namespace storage
