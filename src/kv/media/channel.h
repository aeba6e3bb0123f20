// Channel: how one thread, or the tasks of one worker, access the store's device. Counts I/O by purpose.
//
// Thread contract: for the thread that opens it, or for the tasks of its worker.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "kv/media/io_counts.h"
#include "storage/device.h"
#include "task/channel.h"

namespace kv {

// Does the error concern one place of the medium, rather than the device or this process?
bool is_of_medium(int error);

class Channel {
 public:
  // As task::Channel's.
  base::Expected<void> open(storage::Device& device, size_t depth);
  base::Expected<void> open_for_threads(storage::Device& device,
                                        size_t batch_depth = task::Channel::kBatchDepth);
  void close() { channel_.close(); }
  void fix_memory(std::span<std::byte> memory) { channel_.fix_memory(memory); }
  // As Device's.
  bool has_room_at(uint64_t offset_bytes, uint64_t bytes) const {
    return device_->has_room_at(offset_bytes, bytes);
  }
  bool overlaps() const { return channel_.overlaps(); }

  // Later I/O is counted for this purpose where a call names none.
  void counts_as(IoFor purpose) { purpose_ = purpose; }
  // Adds the I/O since it was opened to `to`, which is indexed by IoFor. Any thread.
  void add_io(IoCounts (&to)[kIoForCount]) const {
    for (size_t i = 0; i < kIoForCount; ++i) to[i].add(io_[i].counts());
  }

  // Transfer everything, or fail: 0, or an errno value; EIO for a transfer that ended early.
  int read(uint64_t offset_bytes, std::span<std::byte> to) { return read(offset_bytes, to, purpose_); }
  int read(uint64_t offset_bytes, std::span<std::byte> to, IoFor purpose);
  int write(uint64_t offset_bytes, std::span<const std::byte> from);
  int flush();
  // Lets the medium forget what is there. Costs nothing if it cannot.
  int discard(uint64_t offset_bytes, uint64_t bytes);
  // As task::Channel's.
  void run(std::span<storage::Io* const> batch) { run(batch, purpose_); }
  void run(std::span<storage::Io* const> batch, IoFor purpose);

 private:
  void begin(const storage::Device& device);
  void run(storage::Io& io, IoFor purpose);
  int transfer(storage::Operation operation, uint64_t offset_bytes, const void* memory, size_t bytes,
               IoFor purpose);

  task::Channel channel_;
  const storage::Device* device_ = nullptr;
  IoFor purpose_ = IoFor::kChanges;
  IoCounter io_[kIoForCount];
};

}  // namespace kv
