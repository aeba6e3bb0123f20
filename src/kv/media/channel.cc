#include "kv/media/channel.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/ids.h"
#include "storage/piece_io.h"
#include "sys/memory.h"

namespace kv {

base::Expected<void> Channel::open(storage::Device& device, size_t depth) {
  for (IoCounter& counter : io_) counter.reset();
  return channel_.open(device, depth);
}

base::Expected<void> Channel::open_for_threads(storage::Device& device, size_t batch_depth) {
  for (IoCounter& counter : io_) counter.reset();
  return channel_.open_for_threads(device, batch_depth);
}

void Channel::run(storage::Io& io, IoFor purpose) {
  channel_.run(io);
  io_[static_cast<size_t>(purpose)].count(io);
}

void Channel::run(std::span<storage::Io* const> batch, IoFor purpose) {
  channel_.run(batch);
  for (const storage::Io* io : batch) io_[static_cast<size_t>(purpose)].count(*io);
}

int Channel::transfer(storage::Operation operation, uint64_t offset_bytes, const void* memory, size_t bytes,
                      IoFor purpose) {
  storage::PieceIo io(operation, offset_bytes, memory, bytes);
  run(io, purpose);
  if (io.whole()) return 0;
  return io.error != 0 ? io.error : EIO;
}

int Channel::read(uint64_t offset_bytes, std::span<std::byte> to, IoFor purpose) {
  return transfer(storage::Operation::kRead, offset_bytes, to.data(), to.size(), purpose);
}

int Channel::write(uint64_t offset_bytes, std::span<const std::byte> from) {
  return transfer(storage::Operation::kWrite, offset_bytes, from.data(), from.size(), purpose_);
}

int Channel::flush() {
  storage::Io io;
  io.operation = storage::Operation::kFlush;
  run(io, purpose_);
  return io.error;
}

int Channel::discard(uint64_t offset_bytes, uint64_t bytes) {
  storage::Io io;
  io.operation = storage::Operation::kDiscard;
  io.offset_bytes = offset_bytes;
  io.length_bytes = bytes;
  run(io, purpose_);
  return io.error;
}

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
  auto memory = sys::map_anonymous(chunk_bytes, "buffers of a store");
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
  CHECK_LE(bytes, kBytesMax);
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

}  // namespace kv
