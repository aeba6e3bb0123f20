#include "storage/backends/memory.h"

#include <string.h>

#include "base/ids.h"
#include "storage/objects.h"

namespace storage {
namespace {

class MemoryDevice final : public Device {
 public:
  MemoryDevice(char* bytes, uint64_t capacity_bytes) : bytes_(bytes) {
    capacity_bytes_ = capacity_bytes;
    discards_ = true;
    whereabouts_.memory = bytes;
    copied_by_fork_ = true;
    ends_at_once_ = true;
    base::TextRef(name_, sizeof name_) << "memory:" << base::Bytes{capacity_bytes};
  }

  char* at(uint64_t offset_bytes) { return bytes_ + offset_bytes; }

 private:
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  void do_close() override {
    sys::unmap(bytes_, capacity_bytes_);
    free_object(this, 0);
  }

  char* bytes_;
};

// A read may overlap a concurrent write as long as nobody uses these bytes: as on a disk, that is no race.
[[clang::no_sanitize("thread")]] void copy(char* to, const char* from, size_t bytes) {
#if __has_feature(thread_sanitizer)
  for (size_t i = 0; i < bytes / 8; ++i)
    reinterpret_cast<uint64_t*>(to)[i] = reinterpret_cast<const uint64_t*>(from)[i];
#else
  memcpy(to, from, bytes);
#endif
}

class MemoryQueue final : public Queue {
 public:
  MemoryQueue(MemoryDevice& device, size_t depth) : Queue(device, depth), memory_(device) {}

 private:
  void do_start(Io& io) override {
    if (io.operation == Operation::kDiscard) discard(io);
    char* at = memory_.at(io.offset_bytes);
    for (uint32_t i = 0; i < io.segment_count; ++i) {
      const iovec& segment = io.segments[i];
      auto* const memory = static_cast<char*>(segment.iov_base);
      copy(io.operation == Operation::kRead ? memory : at, io.operation == Operation::kRead ? at : memory,
           segment.iov_len);
      at += segment.iov_len;
    }
    io.transferred_bytes = io.length_bytes;
    complete(io);
  }
  void do_poll(bool) override {}  // nothing is ever left to finish
  void do_close() override { free_object(this, 0); }

  // Whole OS pages go back to the OS; partial ones at the ends are zeroed.
  void discard(const Io& io) {
    uint64_t end = io.offset_bytes + io.length_bytes;
    uint64_t first_whole = base::round_up(io.offset_bytes, base::kOsPageBytes);
    uint64_t end_whole = base::round_down(end, base::kOsPageBytes);
    if (first_whole >= end_whole) {
      memset(memory_.at(io.offset_bytes), 0, io.length_bytes);
      return;
    }
    memset(memory_.at(io.offset_bytes), 0, first_whole - io.offset_bytes);
    sys::release(memory_.at(first_whole), end_whole - first_whole);
    memset(memory_.at(end_whole), 0, end - end_whole);
  }

  MemoryDevice& memory_;
};

base::Expected<Queue*> MemoryDevice::do_open_queue(size_t depth, const QueueUse&) {
  return make_object<MemoryQueue>(0, "a storage queue", *this, depth);
}

}  // namespace

base::Expected<Device*> make_memory_device(uint64_t capacity_bytes) {
  capacity_bytes = base::round_down(capacity_bytes, base::kOsPageBytes);
  if (capacity_bytes == 0) return base::failure(EINVAL, "a memory device needs at least 4K");
  auto bytes = sys::map_anonymous(capacity_bytes, "a memory device");
  if (!bytes) return std::unexpected(bytes.error());
  auto device = make_object<MemoryDevice>(0, "a memory device", *bytes, capacity_bytes);
  if (!device) sys::unmap(*bytes, capacity_bytes);
  return device;
}

}  // namespace storage
