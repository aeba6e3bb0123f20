#include "kv/media/channel.h"

#include <cerrno>

#include "storage/piece_io.h"

namespace kv {

bool is_of_medium(int error) {
  return error == EIO || error == ENODATA || error == EILSEQ || error == EREMOTEIO;
}

void Channel::begin(const storage::Device& device) {
  for (IoCounter& counter : io_) counter.reset();
  device_ = &device;
}

base::Expected<void> Channel::open(storage::Device& device, size_t depth) {
  begin(device);
  return channel_.open(device, depth);
}

base::Expected<void> Channel::open_for_threads(storage::Device& device, size_t batch_depth) {
  begin(device);
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

}  // namespace kv
