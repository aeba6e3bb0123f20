#include "storage/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>

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

// Returns null if there is no memory.
std::byte* BufferPool::add_chunk(size_t bytes) {
  // An OS page of its own records what to unmap.
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

BufferPool::Size& BufferPool::of_size(size_t bytes) {
  return sizes_[std::countr_zero(bytes / base::kOsPageBytes)];
}

void BufferPool::put(Size& of, std::byte* buffer) {
  of.first = new (buffer) Free{of.first};
  ++of.count;
}

std::span<std::byte> BufferPool::take(size_t bytes) {
  CHECK_LE(bytes, kMaxBytes);
  const size_t size = std::bit_ceil(std::max(bytes, base::kOsPageBytes));
  Size& of = of_size(size);
  if (of.first == nullptr && size <= reserved_.size() - reserved_used_bytes_) {
    put(of, reserved_.data() + reserved_used_bytes_);
    reserved_used_bytes_ += size;
  }
  if (of.first == nullptr) {
    const size_t chunk_bytes = std::max(size, kChunkBytes);
    std::byte* const memory = add_chunk(chunk_bytes);
    if (memory == nullptr) return {};
    for (size_t at = 0; at < chunk_bytes; at += size) put(of, memory + at);
  }
  Free* const taken = of.first;
  of.first = taken->next;
  of.least_count = std::min(of.least_count, --of.count);
  return {reinterpret_cast<std::byte*>(taken), size};
}

void BufferPool::give(std::span<std::byte> buffer) { put(of_size(buffer.size()), buffer.data()); }

bool BufferPool::is_reserved(const Free& buffer) const {
  const auto offset = reinterpret_cast<uintptr_t>(&buffer) - reinterpret_cast<uintptr_t>(reserved_.data());
  return offset < reserved_.size();
}

void BufferPool::trim() {
  size_t left_bytes = kMaxTrimmedBytes;
  for (unsigned i = 1; i < kSizes; ++i) {
    Size& of = sizes_[i];
    const size_t bytes = (base::kOsPageBytes << i) - base::kOsPageBytes;
    // Buffers are taken from the front, so this many of the first ones were in use at some time.
    size_t wanted_count = of.count - of.least_count;
    for (Free* free = of.first; free != nullptr; free = free->next) {
      const bool is_wanted = wanted_count > 0;
      if (is_wanted) --wanted_count;
      if (is_wanted || free->is_trimmed || is_reserved(*free)) continue;
      if (bytes > left_bytes) return;
      left_bytes -= bytes;
      sys::release(reinterpret_cast<std::byte*>(free) + base::kOsPageBytes, bytes);
      free->is_trimmed = true;
    }
    of.least_count = of.count;
  }
}

}  // namespace storage
